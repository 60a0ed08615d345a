//! A conversation with one tool and a judge that doubts every part of its command, and a book of approvals in memory:
//! everything can be made to fail.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by test programs, each of which uses a part of it"
)]

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};

use hermes_core::{
    Answer, Approval, ApprovalBook, ApprovalRequest, ApprovalScope, Asker, Concern, Doubt, Effect, Judge, JudgeRequest,
    RequestEnd, Touches, Verdict,
};
use hermes_runtime::{CallReport, Status};
use hermes_testkit::{FakeTool, ScriptedPerson};
use serde_json::json;

use super::setting::{Setting, error};

pub const ONCE: Answer = Answer::Approval(Approval::Once);
pub const SESSION: Answer = Answer::Approval(Approval::Session);
pub const ALWAYS: Answer = Answer::Approval(Approval::Always);
pub const DENY: Answer = Answer::Approval(Approval::Deny);

/// Doubts every part of a command between semicolons. `rm X` can be approved for good, `sh X` only once, `make X` for a
/// session, `ls` is no doubt, `ask X` is for a person, and `mkfs` never runs.
pub struct Parts;

impl Judge for Parts {
    fn judge(&self, request: &JudgeRequest<'_>) -> Verdict {
        let command = request.touches.command.clone().unwrap();
        let mut doubts = Vec::new();
        for part in command.split(';').map(str::trim) {
            let scope = |lasting| {
                let (key, words) = (format!("key of {part}"), format!("whatever {part} does"));
                Some(ApprovalScope { key, words, lasting })
            };
            let scope = match part.split(' ').next().unwrap() {
                "ls" => continue,
                "mkfs" => return Verdict::Refuse("it formats the disk".into()),
                "rm" => scope(true),
                "make" => scope(false),
                _ => None,
            };
            let id = (doubts.len() + 1).to_string();
            let by_person = part.starts_with("ask ");
            doubts.push(Doubt {
                id,
                what: format!("{part} does harm"),
                by_person,
                rehearsable: false,
                deletes: None,
                scope,
            });
        }
        if doubts.is_empty() {
            return Verdict::Allow;
        }
        Verdict::Ask(Concern { reason: "does harm".into(), note: None, doubts })
    }
}

pub fn shell() -> Arc<FakeTool> {
    let tool = FakeTool::new("shell").effect(Effect::Execute);
    Arc::new(tool.touching(|arguments, cx| {
        let mut touches = Touches::executing(arguments["command"].as_str().unwrap());
        touches.runs_in = arguments.get("workdir").map(|workdir| cx.resolve(workdir.as_str().unwrap()));
        touches
    }))
}

pub fn person(answers: impl IntoIterator<Item = Answer>) -> Arc<ScriptedPerson> {
    Arc::new(ScriptedPerson::new(answers))
}

/// A conversation with `shell`, in which everything can be made to fail.
pub fn talk(shell: &Arc<FakeTool>, person: &Arc<impl Asker + 'static>, book: &Arc<Book>) -> Setting {
    let mut setting = Setting::new([shell]).judged_by(Parts).asking(person);
    setting.task.approval.book = Some(Arc::clone(book) as _);
    setting
}

pub async fn run(setting: &Setting, command: &str) -> CallReport {
    setting.call("shell", json!({ "command": command })).await
}

pub fn assert_refused(report: &CallReport, why: &str) {
    assert_eq!(report.status, Status::Refused, "{}", report.text);
    assert!(error(report).contains(why), "{why:?}: {}", error(report));
}

/// What the book was told, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Opened(String),
    Closed(String, RequestEnd, String),
    Granted(String),
}

/// A book in memory, in which what a test names fails.
#[derive(Default)]
pub struct Book {
    entries: Mutex<Vec<Entry>>,
    requests: Mutex<Vec<ApprovalRequest>>,
    pub granted: Mutex<HashSet<String>>,
    pub fails: Mutex<Option<(&'static str, bool)>>,
}

impl Book {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// `what` is `open`, `close`, `grant` or `covers`.
    pub fn failing(what: &'static str) -> Arc<Self> {
        Arc::new(Self { fails: Mutex::new(Some((what, false))), ..Self::default() })
    }

    pub fn panicking(what: &'static str) -> Arc<Self> {
        Arc::new(Self { fails: Mutex::new(Some((what, true))), ..Self::default() })
    }

    pub fn attempt(&self, what: &'static str) -> Result<(), String> {
        let fails = *self.fails.lock().unwrap();
        match fails {
            Some((failing, false)) if failing == what => Err("no space left on device".into()),
            Some((failing, true)) if failing == what => panic!("the book fell into the water"),
            _ => Ok(()),
        }
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }

    pub fn requests(&self) -> Vec<ApprovalRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The ends so far. Every request that was opened has exactly one, and ids are unique.
    pub fn ends(&self) -> Vec<(RequestEnd, String)> {
        let mut opened = BTreeSet::new();
        let mut open = BTreeSet::new();
        let mut ends = Vec::new();
        for entry in self.entries() {
            match entry {
                Entry::Opened(id) => assert!(opened.insert(id.clone()) && open.insert(id.clone()), "{id} twice"),
                Entry::Closed(id, end, by) => {
                    assert!(open.remove(&id), "{id} is not open");
                    ends.push((end, by));
                }
                Entry::Granted(_) => {}
            }
        }
        assert_eq!(open, BTreeSet::new(), "without an end");
        ends
    }

    pub fn only_end(&self) -> RequestEnd {
        let [(end, _)] = <[_; 1]>::try_from(self.ends()).unwrap();
        end
    }
}

impl ApprovalBook for Book {
    fn covers(&self, key: &str) -> bool {
        self.attempt("covers").is_ok() && self.granted.lock().unwrap().contains(key)
    }

    fn open(&self, request: &ApprovalRequest) -> Result<(), String> {
        self.attempt("open")?;
        self.requests.lock().unwrap().push(request.clone());
        self.entries.lock().unwrap().push(Entry::Opened(request.id.clone()));
        Ok(())
    }

    fn close(&self, id: &str, end: RequestEnd, by: &str) -> Result<(), String> {
        self.attempt("close")?;
        self.entries.lock().unwrap().push(Entry::Closed(id.into(), end, by.into()));
        Ok(())
    }

    fn grant(&self, scope: &ApprovalScope) -> Result<(), String> {
        self.attempt("grant")?;
        self.granted.lock().unwrap().insert(scope.key.clone());
        self.entries.lock().unwrap().push(Entry::Granted(scope.key.clone()));
        Ok(())
    }
}
