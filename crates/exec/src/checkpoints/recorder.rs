//! Takes a checkpoint before the first call of a turn that may change files, and closes it when the turn is over.
//!
//! What a file tool writes it says itself; what a command writes the judge says, as far as that can be told. Either way the
//! project is kept as a whole before the first change, and whatever a call names beyond it, or in a part of it that is not
//! kept, is kept on its own.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use hermes_core::{Changes, Checkpointer, CommandPlace, HookCall, Redactor, ToolCx, Touches};

use super::difference::between;
use super::notes::Note;
use super::snapshot::Snapshot;
use super::store::{Sharing, Store};
use super::{CheckpointError, Checkpoints, Project, Purpose, Target, Totals, WAIT, Wish};

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
    pub fn new(checkpoints: Checkpoints, redactor: Option<Arc<dyn Redactor>>) -> Self {
        Self { checkpoints, redactor, state: Arc::default() }
    }

    fn keep(&self, task: &str, turn: u64, reason: &str, plan: &Plan) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.open.get(task).is_some_and(|open| open.turn != turn)
            && let Some(open) = state.open.remove(task)
        {
            // A turn that nobody closed is closed by the next one. If that fails, it stays without an end.
            let _ = self.close(&open);
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
        let is_new = |path: &Path| open.is_none_or(|open| !open.snapshot.keeps(path));
        // A project within one that is kept already is a part of it.
        if open.is_none_or(|open| !open.tried.contains(&root)) && is_new(&root) {
            wish.areas.push(root.clone());
        }
        for path in plan.named.iter().flat_map(|path| real_paths(path)) {
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
            None => {
                let project = Project::of(&root);
                let id = store.new_id(&project.key);
                let note = Note {
                    key: project.key.clone(),
                    project: root.to_string_lossy().into_owned(),
                    purpose: Purpose::Turn,
                    reason: reason.to_owned(),
                    task: task.to_owned(),
                    undoes: None,
                };
                let message = note.message();
                Open { turn, project, id, message, snapshot: Snapshot::default(), tried: HashSet::new() }
            }
        };
        let is_begun = !open.tried.is_empty();
        let place = || Target { reference: open.project.reference(&open.id, "before"), message: open.message.clone() };
        let taken = self.checkpoints.lock_project(&open.project).and_then(|_lock| {
            self.checkpoints.take(&store, &open.project, &wish, &mut open.snapshot, |_, _| Some(place()))
        });
        if taken.is_ok() {
            open.tried.insert(root);
        }
        // Without a beginning there is nothing to go on with: the next call tries again.
        if taken.is_ok() || is_begun {
            state.open.insert(task.to_owned(), open);
        }
        let refused = taken?;
        let matters = |why: &CheckpointError| {
            let is_about_the_rest = match why {
                CheckpointError::TooMany { folder, .. } | CheckpointError::TooLarge { folder, .. } => {
                    !wish.named.contains(folder)
                }
                CheckpointError::Everything(_) | CheckpointError::Own(_) => true,
                _ => false,
            };
            plan.is_open || !is_about_the_rest
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
        let mut reason = reason(call.spec.name.as_str(), touches, &cx.environment.cwd());
        if let Some(redactor) = &self.redactor {
            reason = redactor.redact(&reason).into_owned();
        }
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
