//! Takes a checkpoint before the first call of a turn that may change files, and closes it when the turn is over.
//!
//! What a file tool writes it says itself; what a command writes the judge says, as far as that can be told. Either way the
//! project is kept as a whole before the first change, and whatever a call names beyond it, or in a part of it that is not
//! kept, is kept on its own.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use hermes_core::{Changes, Checkpointer, CommandPlace, HookCall, ToolCx, Touches};

use super::difference::between;
use super::snapshot::Snapshot;
use super::store::{Sharing, Store};
use super::{CheckpointError, Checkpoints, Note, Project, Purpose, Target, Totals, WAIT, Wish, wish_of};

/// The longest reason that is kept, in characters.
const REASON: usize = 120;

/// Takes the checkpoints of everything that goes on in this process. A handle: clones are the same recorder.
#[derive(Clone, Debug)]
pub struct Recorder {
    checkpoints: Checkpoints,
    state: Arc<Mutex<State>>,
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

/// What a call would change.
#[derive(Debug)]
struct Plan {
    /// Where it works.
    folder: PathBuf,
    named: Vec<PathBuf>,
    /// More than what is named.
    is_open: bool,
}

impl Recorder {
    /// One that keeps them there.
    pub fn new(checkpoints: Checkpoints) -> Self {
        Self { checkpoints, state: Arc::default() }
    }

    fn keep(&self, task: &str, turn: u64, reason: &str, plan: &Plan) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.open.get(task).is_some_and(|open| open.turn != turn)
            && let Some(open) = state.open.remove(task)
        {
            // A turn that nobody closed is closed by the next one.
            self.close(&open).map_err(|error| error.to_string())?;
        }
        let refused = self.add(&mut state, task, turn, reason, plan).map_err(|error| error.to_string())?;
        // Who is told the same before every call does not listen.
        let new = refused.into_iter().find(|why| state.told.insert((task.to_owned(), why.clone())));
        new.map_or(Ok(()), Err)
    }

    /// Keeps what the plan needs beyond what is kept already. Answers what cannot be.
    fn add(
        &self,
        state: &mut State,
        task: &str,
        turn: u64,
        reason: &str,
        plan: &Plan,
    ) -> Result<Vec<String>, CheckpointError> {
        let root = self.checkpoints.project(&plan.folder);
        let mut wish = Wish::default();
        let open = state.open.get(task);
        if open.is_none_or(|open| !open.tried.contains(&root)) {
            wish.areas.push(root.clone());
        }
        for path in plan.named.iter().flat_map(|path| real_paths(path)) {
            let is_new = open.is_none_or(|open| !open.snapshot.covers(&path));
            if is_new && !self.checkpoints.own.iter().any(|own| path.starts_with(own)) {
                wish.named.push(path);
            }
        }
        if wish == Wish::default() {
            return Ok(Vec::new());
        }
        let _store = self.checkpoints.lock_store(Sharing::Shared, Instant::now() + WAIT)?;
        let store = Store::open(&self.checkpoints.store())?;
        if open.is_none() {
            let project = Project::of(&root);
            let id = store.new_id(&project.key);
            let note = Note {
                project: root.to_string_lossy().into_owned(),
                purpose: Purpose::Turn,
                reason: reason.to_owned(),
                task: task.to_owned(),
                undoes: None,
            };
            let message = note.message();
            let open = Open { turn, project, id, message, snapshot: Snapshot::default(), tried: HashSet::new() };
            state.open.insert(task.to_owned(), open);
        }
        let Some(open) = state.open.get_mut(task) else { return Ok(Vec::new()) };
        let _project = self.checkpoints.lock_project(&open.project)?;
        open.tried.insert(root);
        let place = || Target { reference: open.project.reference(&open.id, "before"), message: open.message.clone() };
        let refused = self.checkpoints.take(&store, &open.project, &wish, &mut open.snapshot, |_| Some(place()))?;
        let matters = |why: &CheckpointError| {
            plan.is_open
                || !matches!(
                    why,
                    CheckpointError::TooMany { .. } | CheckpointError::TooLarge { .. } | CheckpointError::Everything(_)
                )
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
        let place = |now: &Snapshot| {
            let changes = between(&open.snapshot, now);
            changed.set(!changes.is_empty());
            let message = || Totals::of(&changes).message();
            changed.get().then(|| Target { reference: open.project.reference(&open.id, "after"), message: message() })
        };
        checkpoints.take(&store, &open.project, &wish_of(&open.snapshot), &mut now, place)?;
        if changed.get() { Ok(()) } else { store.point(&[(&open.project.reference(&open.id, "before"), None)]) }
    }

    fn settled(&self, task: &str) -> Result<(), CheckpointError> {
        let open = self.state.lock().unwrap_or_else(PoisonError::into_inner).open.remove(task);
        open.map_or(Ok(()), |open| self.close(&open))
    }
}

/// A path as somebody names it, and where it leads if it is a link: both free of links in the folders above.
fn real_paths(path: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    // The deepest folder that is there, with the rest as written.
    let real_parent = parent.ancestors().find_map(|above| {
        let rest = parent.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    let stated = real_parent.unwrap_or_else(|| parent.to_path_buf()).join(name);
    let led = stated.canonicalize().ok().filter(|led| *led != stated);
    std::iter::once(stated).chain(led).collect()
}

/// The part of a path before its first pattern.
fn before_patterns(path: &Path) -> PathBuf {
    let has_pattern =
        |name: &std::path::Component<'_>| name.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    path.components().take_while(|name| !has_pattern(name)).collect()
}

/// What a call would change; `None`: nothing.
fn plan(touches: &Touches, cx: &ToolCx) -> Option<Plan> {
    let cwd = cx.environment.cwd();
    let folder = touches.runs_in.clone().unwrap_or_else(|| cwd.clone());
    let mut named = touches.writes.clone();
    let mut is_open = false;
    if let Some(command) = &touches.command {
        let carried = cx.environment.carried();
        let place = CommandPlace { cwd: &folder, carried: &carried, shares_our_files: true };
        let changes = cx.judge.as_ref().map_or(Changes::Anything(Vec::new()), |judge| judge.changes(command, &place));
        match changes {
            Changes::Nothing => {}
            Changes::Only(paths) => named.extend(paths.iter().map(|path| before_patterns(path))),
            Changes::Anything(paths) => {
                named.extend(paths.iter().map(|path| before_patterns(path)));
                is_open = true;
            }
        }
    }
    (is_open || !named.is_empty()).then_some(Plan { folder, named, is_open })
}

/// The call in a few words.
fn reason(tool: &str, touches: &Touches, cwd: &Path) -> String {
    let what = match (&touches.command, &touches.writes[..]) {
        (Some(command), _) => command.trim().lines().next().unwrap_or_default().to_owned(),
        (None, [path]) => path.strip_prefix(cwd).unwrap_or(path).display().to_string(),
        (None, paths) => format!("{} files", paths.len()),
    };
    format!("{tool}: {what}")
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(REASON)
        .collect()
}

#[async_trait]
impl Checkpointer for Recorder {
    async fn before(&self, call: HookCall<'_>, touches: &Touches, cx: &ToolCx) -> Result<(), String> {
        if !cx.environment.shares_our_files() {
            return Ok(());
        }
        let Some(plan) = plan(touches, cx) else { return Ok(()) };
        let (recorder, task, turn) = (self.clone(), call.task.to_owned(), call.turn);
        let reason = reason(call.spec.name.as_str(), touches, &cx.environment.cwd());
        let kept = tokio::task::spawn_blocking(move || recorder.keep(&task, turn, &reason, &plan)).await;
        kept.unwrap_or_else(|error| Err(error.to_string()))
    }

    async fn settle(&self, task: &str) -> Result<(), String> {
        let (recorder, task) = (self.clone(), task.to_owned());
        let settled =
            tokio::task::spawn_blocking(move || recorder.settled(&task).map_err(|error| error.to_string())).await;
        settled.unwrap_or_else(|error| Err(error.to_string()))
    }
}
