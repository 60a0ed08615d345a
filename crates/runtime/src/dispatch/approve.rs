//! Step: the judge looks at what the call would do, and where it says so, a person decides.
//!
//! Paths are resolved through links here, once, immediately before the call runs: a judgement made earlier in the turn
//! could be about a different directory. A path that cannot be resolved asks.

use std::path::{Path, PathBuf};
use std::time::Instant;

use async_trait::async_trait;
use hermes_core::{
    Answer, Approval, ApprovalScope, Concern, Environment, FileErrorKind, FileKind, JudgeRequest, Question, ToolError,
    Touches, Verdict, grouped, shown_path,
};

use super::{ApprovalMode, Call, Phase, Status, Step, stopped_before_it_began};
use crate::task::Task;

#[derive(Debug)]
pub(super) struct Approve;

#[async_trait]
impl Step for Approve {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn apply(&self, call: &mut Call<'_>) {
        judge_and_ask(call).await;
        if let Some((board, index)) = call.place {
            board.decided(index);
        }
    }
}

async fn judge_and_ask(call: &mut Call<'_>) {
    let Some(entry) = call.entry else { return };
    let spec = entry.tool.spec();
    let task = call.scope.task;
    let stated = entry.tool.touches(&call.arguments, &task.context(&call.request.id, call.scope.cancel));
    let mut facts = Vec::new();
    let judged = |touches: &Touches, root: &Path, cwd: &Path, own_folders: &[PathBuf]| {
        let arguments = &call.arguments;
        call.judge.judge(&JudgeRequest { spec, arguments, touches, root, cwd, own_folders })
    };
    let verdict = if stated == Touches::nothing() {
        // There is no path to follow, so nobody has to wait for the disk.
        let verdict = judged(&stated, task.root(), &task.environment.cwd(), &[]);
        call.touches = Some(stated.clone());
        verdict
    } else {
        match resolved(task, &stated).await {
            Ok((touches, root, cwd, scratch)) => {
                facts = where_links_lead(&stated, &touches);
                facts.extend(what_is_there(task, &touches.writes).await);
                let verdict = judged(&touches, &root, &cwd, &[scratch]);
                call.touches = Some(touches);
                verdict
            }
            Err(why) => Verdict::Ask(Concern {
                reason: format!("touches a path that cannot be resolved: {why}"),
                note: Some(format!("this path cannot be resolved: {why}")),
                scope: ApprovalScope { key: Vec::new(), words: "nothing more than this once".into() },
            }),
        }
    };
    let verdict = with_hooks(verdict, std::mem::take(&mut call.asks));
    let refusal = match verdict {
        Verdict::Allow => None,
        Verdict::Refuse(why) => Some(format!("{why}; nothing was run, and no approval can change that")),
        Verdict::Ask(concern) => {
            let began = Instant::now();
            if let Some((board, index)) = call.place {
                tokio::select! {
                    biased;
                    () = call.no_more.cancelled() => {}
                    () = board.turn_to_ask(index) => {}
                }
            }
            let refusal = if call.no_more.is_cancelled() { None } else { decide(call, &stated, facts, concern).await };
            call.waited += began.elapsed();
            if call.no_more.is_cancelled() {
                return call.refuse(Status::NotStarted, stopped_before_it_began());
            }
            // The answer may have taken a while, and is about what was shown.
            match (refusal, &call.touches) {
                (None, Some(shown)) if call.scope.approve == ApprovalMode::Ask => match resolved(task, &stated).await {
                    Ok((now, ..)) if now == *shown => None,
                    _ => Some("a path in it leads elsewhere than when it was asked about; try again".into()),
                },
                (refusal, _) => refusal,
            }
        }
    };
    if let Some(why) = refusal {
        let error = ToolError::tell(format!("{} was not run: {why}", spec.name)).with("status", "refused");
        call.refuse(Status::Refused, error);
    }
}

/// A hook that wants a person to decide makes a question of a yes; to a question of the judge it adds its reason, and the
/// answer then covers this once, because nobody gave the two reasons a name in common.
fn with_hooks(verdict: Verdict, asks: Vec<Concern>) -> Verdict {
    asks.into_iter().fold(verdict, |verdict, ask| match verdict {
        Verdict::Allow => Verdict::Ask(ask),
        Verdict::Refuse(why) => Verdict::Refuse(why),
        Verdict::Ask(concern) => Verdict::Ask(Concern {
            reason: format!("{}, and {}", concern.reason, ask.reason),
            note: [concern.note, ask.note].into_iter().flatten().reduce(|all, note| format!("{all}; {note}")),
            scope: ApprovalScope { key: Vec::new(), words: "nothing more than this once".into() },
        }),
    })
}

/// `None` if the call may run, else why not.
async fn decide(call: &Call<'_>, stated: &Touches, facts: Vec<String>, concern: Concern) -> Option<String> {
    let Concern { reason, note, scope } = concern;
    let task = call.scope.task;
    let named = !scope.key.is_empty();
    match call.scope.approve {
        ApprovalMode::All => return None,
        ApprovalMode::None => return Some(format!("it {reason}, and approvals are switched off (--approve none)")),
        ApprovalMode::Ask if named && task.is_approved(&scope.key) => return None,
        ApprovalMode::Ask => {}
    }
    let Some(asker) = &task.asker else {
        return Some(format!("it {reason}, which needs approval, and nobody is here to ask (--approve all allows it)"));
    };
    let question = Question::Approval {
        tool: call.entry.as_ref().map(|entry| entry.tool.spec().name.to_string()).unwrap_or_default(),
        cwd: stated.runs_in.clone().unwrap_or_else(|| task.environment.cwd()),
        subject: subject(call, stated),
        explain: facts.into_iter().chain(note).chain(stated.explain.iter().cloned()).collect(),
        scope: scope.words,
    };
    match asker.ask(question, call.no_more).await {
        Answer::Approval(Approval::Once) => None,
        Answer::Approval(Approval::Session) => {
            if named {
                task.approve(scope.key);
            }
            None
        }
        Answer::Approval(Approval::Deny) => {
            Some(format!("it {reason}, and the user said no. Do not try it another way"))
        }
        // No answer, and an answer to some other question, are no yes.
        Answer::Text(_) | Answer::None => Some(format!("it {reason}, which needs approval, and nobody answered")),
    }
}

fn subject(call: &Call<'_>, stated: &Touches) -> String {
    let cwd = call.scope.task.environment.cwd();
    let paths: Vec<String> = stated.writes.iter().chain(&stated.reads).map(|path| shown_path(path, &cwd)).collect();
    let paths = (!paths.is_empty()).then(|| paths.join("\n"));
    let headline = || call.entry.as_ref().map(|entry| entry.tool.headline(&call.arguments)).unwrap_or_default();
    stated.command.clone().or(paths).unwrap_or_else(headline)
}

/// A person who allows a write should know what it meets.
async fn what_is_there(task: &Task, writes: &[PathBuf]) -> Vec<String> {
    let mut lines = Vec::new();
    for path in writes {
        let name = shown_path(path, &task.environment.cwd());
        lines.push(match task.environment.stat(path).await {
            Ok(stat) if stat.kind == FileKind::File => format!("{name} exists: {} bytes", grouped(stat.len)),
            Ok(stat) => format!("{name} is {}", stat.kind.in_words()),
            Err(error) if error.kind == FileErrorKind::NotFound => format!("{name} does not exist yet"),
            Err(error) => error.to_string(),
        });
    }
    lines
}

/// A person who reads the name of a link is told what is behind it.
fn where_links_lead(stated: &Touches, real: &Touches) -> Vec<String> {
    let paths = |touches: &Touches| -> Vec<PathBuf> {
        touches.reads.iter().chain(&touches.writes).chain(&touches.runs_in).cloned().collect()
    };
    let pairs = paths(stated).into_iter().zip(paths(real));
    pairs
        .filter(|(stated, real)| stated != real)
        .map(|(stated, real)| format!("{} leads to {}", stated.display(), real.display()))
        .collect()
}

/// What is touched, where the task began, where the session is, and the session's own folder: all through links.
async fn resolved(task: &Task, stated: &Touches) -> Result<(Touches, PathBuf, PathBuf, PathBuf), String> {
    let environment = &*task.environment;
    let mut touches = stated.clone();
    for path in touches.reads.iter_mut().chain(&mut touches.writes).chain(&mut touches.runs_in) {
        *path = real(environment, path).await?;
    }
    let root = real(environment, task.root()).await?;
    let cwd = real(environment, &environment.cwd()).await?;
    let scratch = real(environment, environment.scratch()).await?;
    Ok((touches, root, cwd, scratch))
}

async fn real(environment: &dyn Environment, path: &Path) -> Result<PathBuf, String> {
    environment.real_path(path).await.map_err(|error| error.to_string())
}
