//! The book of approvals: `approvals.jsonl` in the home of Hermes, one line for each request and one for its end.
//!
//! Lines are only ever added, under a lock and synced to the disk before anybody acts on them. What is approved for good
//! stands in `config.yaml`, where a person can read and change it.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hermes_core::{ApprovalBook, ApprovalRequest, ApprovalScope, RequestEnd};
use hermes_guard::policy::Scope;
use hermes_guard::redact::Secrets;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{self, Config, edit};
use crate::world::World;

/// A line of the book.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line {
    Asked { at: u64, request: ApprovalRequest },
    Ended { at: u64, id: String, end: RequestEnd, by: String },
}

/// A request with its end, if it has one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    /// Seconds since 1970.
    pub(crate) at: u64,
    pub(crate) request: ApprovalRequest,
    pub(crate) end: Option<RequestEnd>,
    pub(crate) by: Option<String>,
}

/// See the top of this file.
pub(crate) struct Book {
    world: World,
    path: PathBuf,
    secrets: Arc<Secrets>,
    /// The requests of this process that have not ended.
    open: Mutex<HashSet<String>>,
}

/// Where the book is.
pub(crate) fn log_path(world: &World) -> PathBuf {
    world.home.join("approvals.jsonl")
}

impl Book {
    pub(crate) fn new(world: &World, secrets: Arc<Secrets>) -> Self {
        Self { world: world.clone(), path: log_path(world), secrets, open: Mutex::default() }
    }

    fn append(&self, line: &Line) -> Result<(), String> {
        let trouble = |error: std::io::Error| format!("{}: {error}", self.path.display());
        if let Some(folder) = self.path.parent() {
            edit::private_folder(folder).map_err(trouble)?;
        }
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true).create(true).mode(0o600);
        let file = options.open(&self.path).map_err(trouble)?;
        file.lock().map_err(trouble)?;
        // A line that was cut off, because the disk was full, must not take this one with it.
        let cut = !ends_a_line(&file).map_err(trouble)?;
        let line = serde_json::to_string(line).map_err(|error| error.to_string())?;
        let text = format!("{}{line}\n", if cut { "\n" } else { "" });
        (&file).write_all(text.as_bytes()).map_err(trouble)?;
        file.sync_data().map_err(trouble)
    }

    fn open_requests(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the file is empty or ends with the end of a line.
fn ends_a_line(mut file: &File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl ApprovalBook for Book {
    fn covers(&self, key: &str) -> bool {
        // Read anew each time: what is revoked elsewhere does not hold here any more. A file that cannot be read covers
        // nothing.
        Config::load(&self.world)
            .is_ok_and(|config| config.list("command_allowlist").iter().any(|entry| is_same(entry, key)))
    }

    fn open(&self, request: &ApprovalRequest) -> Result<(), String> {
        let mut shown = request.clone();
        shown.subject = self.secrets.clean(&request.subject).into_owned();
        shown.doubts = request.doubts.iter().map(|doubt| self.secrets.clean(doubt).into_owned()).collect();
        let mut open = self.open_requests();
        if open.contains(&request.id) {
            return Err(format!("the request {} was made twice", request.id));
        }
        self.append(&Line::Asked { at: now(), request: shown })?;
        open.insert(request.id.clone());
        Ok(())
    }

    fn close(&self, id: &str, end: RequestEnd, by: &str) -> Result<(), String> {
        if !self.open_requests().remove(id) {
            return Err(format!("the request {id} is not open"));
        }
        self.append(&Line::Ended { at: now(), id: id.to_owned(), end, by: by.to_owned() })
    }

    fn grant(&self, scope: &ApprovalScope) -> Result<(), String> {
        add(&self.world, std::slice::from_ref(&scope.key)).map_err(|failure| failure.message)
    }
}

/// Adds entries to `command_allowlist`; those that are there already stay as they are.
pub(crate) fn add(world: &World, keys: &[String]) -> Result<(), crate::words::Failure> {
    let path = config::path(world);
    edit::update(&path, |text| {
        let config = Config::of(world, text)?;
        let mut list = config.list("command_allowlist");
        for key in keys {
            if !list.iter().any(|known| is_same(known, key)) {
                list.push(key.clone());
            }
        }
        Ok((vec![("command_allowlist".to_owned(), Value::from(list))], ()))
    })
}

/// However a place is written, it is the same approval.
fn is_same(a: &str, b: &str) -> bool {
    let plain = |text: &str| text.trim().parse::<Scope>().map_or_else(|_| text.trim().to_owned(), |it| it.to_string());
    plain(a) == plain(b)
}

/// Takes an entry off `command_allowlist`; answers whether it was there.
pub(crate) fn remove(world: &World, entry: &str) -> Result<bool, crate::words::Failure> {
    let path = config::path(world);
    edit::update(&path, |text| {
        let list = Config::of(world, text)?.list("command_allowlist");
        let kept: Vec<String> = list.iter().filter(|known| !is_same(known, entry)).cloned().collect();
        let found = kept.len() < list.len();
        Ok((if found { vec![("command_allowlist".to_owned(), Value::from(kept))] } else { Vec::new() }, found))
    })
}

/// Everything in the book, oldest first, and how many lines could not be read.
pub(crate) fn read_log(path: &Path) -> std::io::Result<(Vec<Entry>, usize)> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let mut entries: Vec<Entry> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut unreadable = 0;
    for line in BufReader::new(file).lines() {
        match serde_json::from_str(&line?) {
            Ok(Line::Asked { at, request }) => {
                index.insert(request.id.clone(), entries.len());
                entries.push(Entry { at, request, end: None, by: None });
            }
            Ok(Line::Ended { id, end, by, .. }) => {
                // The first end counts: there is only one.
                if let Some(entry) = index.get(&id).and_then(|at| entries.get_mut(*at))
                    && entry.end.is_none()
                {
                    entry.end = Some(end);
                    entry.by = Some(by);
                }
            }
            Err(_) => unreadable += 1,
        }
    }
    Ok((entries, unreadable))
}
