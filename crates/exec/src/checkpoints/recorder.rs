//! Takes a checkpoint before the first call of a turn that may change files, and closes it when the turn is over.
//!
//! What a file tool writes it says itself; what a command writes the judge says, as far as that can be told. Either way the
//! project is kept as a whole before the first change, and whatever a call names beyond it, or in a part of it that is not
//! kept, is kept on its own.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use hermes_core::{CancellationToken, Changes, Checkpointer, CommandPlace, HookCall, Redactor, ToolCx, Touches};

use super::difference::between;
use super::notes::Note;
use super::snapshot::Snapshot;
use super::store::{Sharing, Store};
use super::{CheckpointError, Checkpoints, Project, Purpose, Target, Totals, WAIT, Wish};
use crate::files::real_path;

/// The longest reason that is kept, in characters.
const REASON: usize = 120;

/// Takes the checkpoints of everything that goes on in this process. A handle: clones are the same recorder.
#[derive(Clone)]
pub struct Recorder {
    checkpoints: Checkpoints,
    /// Takes secrets out of what is written down about a call.
    redactor: Option<Arc<dyn Redactor>>,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("checkpoints", &self.checkpoints).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct State {
    /// The turn of each conversation that has changed something.
    open: HashMap<String, Open>,
    /// Folders of which a conversation has been told that they are not kept.
    told: HashSet<(String, String)>,
}

/// A checkpoint of a turn that goes on.
#[derive(Debug)]
struct Open {
    turn: u64,
    project: Project,
    id: String,
    message: String,
    snapshot: Snapshot,
    /// Folders that were tried.
    tried: HashSet<PathBuf>,
}

impl Open {
    /// One that begins with this call; it has no name yet.
    fn of(root: &Path, call: &Call) -> Self {
        let project = Project::of(root);
        let note = Note {
            key: project.key.clone(),
            project: root.to_string_lossy().into_owned(),
            purpose: Purpose::Turn,
            reason: call.reason.clone(),
            task: call.task.clone(),
            undoes: None,
        };
        Self {
            turn: call.turn,
            project,
            id: String::new(),
            message: note.message(),
            snapshot: Snapshot::default(),
            tried: HashSet::new(),
        }
    }
}

/// Whose call it is, and in a few words which.
#[derive(Debug)]
struct Call {
    task: String,
    turn: u64,
    reason: String,
}

/// What a call would change.
#[derive(Debug)]
struct Plan {
    /// Where it works.
    folder: PathBuf,
    named: Vec<PathBuf>,
    /// Paths of a command, which may have patterns in them.
    patterns: Vec<PathBuf>,
    /// More than what is named.
    is_open: bool,
}

impl Recorder {
    /// One that keeps them there.
    pub fn new(checkpoints: Checkpoints, redactor: Option<Arc<dyn Redactor>>) -> Self {
        Self { checkpoints, redactor, state: Arc::default() }
    }

    /// `nobody_waits` fires when the call has gone on without it: what is there from then on may be the call's own doing.
    fn keep(&self, call: &Call, plan: &Plan, nobody_waits: &CancellationToken) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Call { task, turn, .. } = call;
        if state.open.get(task).is_some_and(|open| open.turn != *turn)
            && let Some(open) = state.open.remove(task)
        {
            // A turn that nobody closed is closed by the next one. If that fails, it stays without an end.
            let _ = self.close(&open);
        }
        let refused = self.add(&mut state, call, plan, nobody_waits).map_err(|error| error.to_string())?;
        // Who is told the same before every call does not listen.
        let new = refused.into_iter().find(|why| state.told.insert((task.clone(), why.clone())));
        new.map_or(Ok(()), Err)
    }

    /// Keeps what the plan needs beyond what is kept already. Answers what cannot be.
    fn add(
        &self,
        state: &mut State,
        call: &Call,
        plan: &Plan,
        nobody_waits: &CancellationToken,
    ) -> Result<Vec<String>, CheckpointError> {
        if nobody_waits.is_cancelled() {
            return Ok(Vec::new());
        }
        let (task, root) = (&call.task, self.checkpoints.project(&plan.folder));
        let mut wish = Wish::default();
        let open = state.open.get(task);
        let is_new = |path: &Path| open.is_none_or(|open| !open.snapshot.keeps(path));
        // A project within one that is kept already is a part of it.
        if open.is_none_or(|open| !open.tried.contains(&root)) && is_new(&root) {
            wish.areas.push(root.clone());
        }
        let matching = plan.patterns.iter().flat_map(|path| expanded(path));
        for path in plan.named.iter().cloned().chain(matching).flat_map(|path| real_paths(&path)) {
            if is_new(&path) && !self.checkpoints.own.iter().any(|own| path.starts_with(own)) {
                wish.named.push(path);
            }
        }
        if wish == Wish::default() {
            return Ok(Vec::new());
        }
        let _store = self.checkpoints.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
        let store = Store::open(&self.checkpoints.store())?;
        let mut open = match state.open.remove(task) {
            Some(open) => open,
            None => Open::of(&root, call),
        };
        let (is_begun, is_in_time) = (!open.tried.is_empty(), Cell::new(true));
        let taken = self.checkpoints.lock_project(&open.project).and_then(|lock| {
            if open.id.is_empty() {
                open.id = store.new_id(&open.project.key, &lock);
            }
            let reference = open.project.reference(&open.id, "before");
            let target = Target { reference, message: open.message.clone() };
            let in_time = |_: &_, _: &_| {
                is_in_time.set(!nobody_waits.is_cancelled());
                is_in_time.get().then(|| target.clone())
            };
            self.checkpoints.take(&store, &open.project, &wish, &mut open.snapshot, in_time)
        });
        let is_kept = taken.is_ok() && is_in_time.get();
        if is_kept {
            open.tried.insert(root);
        }
        // Without a beginning there is nothing to go on with: the next call tries again.
        if is_kept || is_begun {
            state.open.insert(task.clone(), open);
        }
        let refused = taken?;
        let is_named = |folder: &PathBuf| wish.named.contains(folder);
        let matters = |why: &CheckpointError| match why {
            CheckpointError::TooMany { folder, .. }
            | CheckpointError::TooLarge { folder, .. }
            | CheckpointError::Everything(folder)
            | CheckpointError::Own(folder) => plan.is_open || is_named(folder),
            _ => true,
        };
        Ok(refused.iter().filter(|why| matters(why)).map(ToString::to_string).collect())
    }

    /// Looks at everything once more. A turn that changed nothing leaves no checkpoint.
    fn close(&self, open: &Open) -> Result<(), CheckpointError> {
        let checkpoints = &self.checkpoints;
        let _store = checkpoints.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
        let _project = checkpoints.lock_project(&open.project)?;
        let store = Store::open(&checkpoints.store())?;
        let mut now = Snapshot::default();
        let changed = Cell::new(false);
        let place = |now: &Snapshot, refused: &[CheckpointError]| {
            let changes = between(&open.snapshot, now);
            // Where not everything could be looked at, nobody can say that nothing changed.
            changed.set(!changes.is_empty() || !refused.is_empty());
            let message = || Totals::of(&changes).message();
            changed.get().then(|| Target { reference: open.project.reference(&open.id, "after"), message: message() })
        };
        let wish = Wish::again(&open.snapshot);
        let refused = checkpoints.take(&store, &open.project, &wish, &mut now, place)?;
        if !changed.get() {
            store.point(&[(&open.project.reference(&open.id, "before"), None)])?;
        }
        // What could not be kept as a whole before is no news.
        let is_news = |why: &CheckpointError| !matches!(why, CheckpointError::Everything(_) | CheckpointError::Own(_));
        refused.into_iter().find(is_news).map_or(Ok(()), Err)
    }

    fn settled(&self, task: &str) -> Result<(), CheckpointError> {
        let open = self.state.lock().unwrap_or_else(PoisonError::into_inner).open.remove(task);
        open.map_or(Ok(()), |open| self.close(&open))
    }
}

/// A path as somebody names it, and where it leads if it is a link: both free of links in the folders above.
fn real_paths(path: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let stated = real_path(parent).unwrap_or_else(|_| parent.to_path_buf()).join(name);
    let led = stated.canonicalize().ok().filter(|led| *led != stated);
    std::iter::once(stated).chain(led).collect()
}

/// What a path with patterns in it stands for, as far as one part of it tells: everything in the folder before the first
/// pattern that begins as the pattern does.
fn expanded(path: &Path) -> Vec<PathBuf> {
    const SPECIAL: [char; 4] = ['*', '?', '[', '{'];
    let has_pattern = |name: &Component<'_>| name.as_os_str().to_string_lossy().contains(SPECIAL);
    let Some(pattern) = path.components().find(has_pattern) else { return vec![path.to_path_buf()] };
    let folder: PathBuf = path.components().take_while(|name| !has_pattern(name)).collect();
    let pattern = pattern.as_os_str().to_string_lossy();
    let start = pattern.split(SPECIAL).next().unwrap_or_default();
    let fits = |name: &OsStr| name.as_encoded_bytes().starts_with(start.as_bytes());
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.filter(|entry| fits(&entry.file_name())).map(|entry| entry.path()).collect();
    // It may be a name with such letters in it.
    if !all.iter().any(|one| path.starts_with(one)) {
        all.push(path.to_path_buf());
    }
    all
}

/// What a call would change; `None`: nothing.
fn plan(touches: &Touches, cx: &ToolCx) -> Option<Plan> {
    let cwd = cx.environment.cwd();
    let folder = touches.runs_in.clone().unwrap_or_else(|| cwd.clone());
    let named = touches.writes.clone();
    let (mut patterns, mut is_open) = (Vec::new(), false);
    if let Some(command) = &touches.command {
        let carried = cx.environment.carried();
        let place = CommandPlace { cwd: &folder, carried: &carried, shares_our_files: true };
        // What is typed is read by a program, and nobody knows which.
        let judge = cx.judge.as_ref().filter(|_| touches.typed.is_none());
        let changes = judge.map_or(Changes::Anything(Vec::new()), |judge| judge.changes(command, &place));
        is_open = matches!(changes, Changes::Anything(_));
        if let Changes::Only(paths) | Changes::Anything(paths) = changes {
            patterns = paths;
        }
    }
    let is_any = is_open || !named.is_empty() || !patterns.is_empty();
    is_any.then_some(Plan { folder, named, patterns, is_open })
}

/// The call in a few words, without secrets.
fn reason(tool: &str, touches: &Touches, cwd: &Path, redactor: Option<&dyn Redactor>) -> String {
    let what = match (&touches.command, &touches.writes[..]) {
        (Some(command), _) => command.trim().lines().next().unwrap_or_default().to_owned(),
        (None, [path]) => path.strip_prefix(cwd).unwrap_or(path).display().to_string(),
        (None, paths) => format!("{} files", paths.len()),
    };
    let whole = format!("{tool}: {what}");
    // The half of a secret that is left when a line is cut is not seen to be one.
    let whole = redactor.map_or(Cow::Borrowed(&*whole), |redactor| redactor.redact(&whole));
    whole.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(REASON).collect()
}

#[async_trait]
impl Checkpointer for Recorder {
    async fn before(&self, call: HookCall<'_>, touches: &Touches, cx: &ToolCx) -> Result<(), String> {
        if !cx.environment.shares_our_files() {
            return Ok(());
        }
        let Some(plan) = plan(touches, cx) else { return Ok(()) };
        let reason = reason(call.spec.name.as_str(), touches, &cx.environment.cwd(), self.redactor.as_deref());
        let call = Call { task: call.task.to_owned(), turn: call.turn, reason };
        let nobody_waits = CancellationToken::new();
        let _fires_at_the_end = nobody_waits.clone().drop_guard();
        let recorder = self.clone();
        let kept = tokio::task::spawn_blocking(move || recorder.keep(&call, &plan, &nobody_waits)).await;
        kept.unwrap_or_else(|error| Err(error.to_string()))
    }

    async fn settle(&self, task: &str) -> Result<(), String> {
        let (recorder, task) = (self.clone(), task.to_owned());
        let settled =
            tokio::task::spawn_blocking(move || recorder.settled(&task).map_err(|error| error.to_string())).await;
        settled.unwrap_or_else(|error| Err(error.to_string()))
    }
}
