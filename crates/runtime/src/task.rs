//! One conversation's surroundings: everything that lives from call to call.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hermes_core::{
    ApprovalBook, ApprovalReviewer, Asker, CancellationToken, EditReviewer, Environment, Judge, Limits, Processes,
    Scratch, Todos, ToolCx,
};

use crate::dispatch::Budget;
use crate::guardrails::{self, Guardrails};

/// The tools whose last call had broken arguments.
#[derive(Default)]
struct Invalid {
    /// Whether there are any. Changed only under the lock of `tools`.
    any: AtomicBool,
    tools: Mutex<HashSet<String>>,
}

/// How questions about calls are decided and written down.
#[derive(Clone)]
pub struct Approvals {
    /// The model that looks first, in [`ApprovalMode::Smart`](crate::ApprovalMode::Smart).
    pub reviewer: Option<Arc<dyn ApprovalReviewer>>,
    /// Where requests and lasting approvals are written down.
    pub book: Option<Arc<dyn ApprovalBook>>,
    /// How long a question may wait for its answer.
    pub expires: Duration,
}

impl Default for Approvals {
    /// No reviewer, no book, and 60 s for an answer (spec exec §10.2).
    fn default() -> Self {
        Self { reviewer: None, book: None, expires: Duration::from_secs(60) }
    }
}

impl fmt::Debug for Approvals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approvals").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// What the calls of one task share.
pub struct Task {
    /// Where commands run and files live.
    pub environment: Arc<dyn Environment>,
    /// The person, when there is one to ask.
    pub asker: Option<Arc<dyn Asker>>,
    /// The agent's todo list, when an agent drives the task.
    pub todos: Option<Arc<dyn Todos>>,
    /// The processes in the background, where there can be any.
    pub processes: Option<Arc<dyn Processes>>,
    /// How much tools may show and how long they may take.
    pub limits: Limits,
    /// How long results may be that a model reads.
    pub budget: Budget,
    /// The brakes against repetition; `None` for a program that may repeat itself as it likes.
    pub guardrails: Option<Guardrails>,
    /// How questions about calls are decided and written down.
    pub approval: Approvals,
    /// The editor whose user looks at every change of a file, when one drives the task.
    pub reviewer: Option<Arc<dyn EditReviewer>>,
    /// What hooks are told the conversation is called.
    pub id: String,
    /// The session's directory when the task began.
    root: PathBuf,
    scratch: Arc<Scratch>,
    approved: Mutex<HashSet<String>>,
    result_names: Mutex<HashSet<String>>,
    segment: Option<AtomicU64>,
    turn: AtomicU64,
    repetition: Mutex<guardrails::Turn>,
    invalid: Invalid,
}

impl Task {
    /// A task in `environment`, with nobody to ask and no agent.
    pub fn new(environment: Arc<dyn Environment>) -> Self {
        Self {
            root: environment.cwd(),
            environment,
            asker: None,
            todos: None,
            processes: None,
            limits: Limits::default(),
            budget: Budget::default(),
            guardrails: None,
            approval: Approvals::default(),
            reviewer: None,
            id: "default".into(),
            scratch: Arc::default(),
            approved: Mutex::default(),
            result_names: Mutex::default(),
            segment: None,
            turn: AtomicU64::new(0),
            repetition: Mutex::default(),
            invalid: Invalid::default(),
        }
    }

    /// Adds the person to ask.
    #[must_use]
    pub fn with_asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Adds the agent's todo list.
    #[must_use]
    pub fn with_todos(mut self, todos: Arc<dyn Todos>) -> Self {
        self.todos = Some(todos);
        self
    }

    /// Adds the table of processes in the background.
    #[must_use]
    pub fn with_processes(mut self, processes: Arc<dyn Processes>) -> Self {
        self.processes = Some(processes);
        self
    }

    /// Sets the limits of its tools.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how long results may be.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Puts on the brakes against repetition.
    #[must_use]
    pub fn with_guardrails(mut self, guardrails: Guardrails) -> Self {
        self.guardrails = Some(guardrails);
        self
    }

    /// Adds the editor that shows every change of a file.
    #[must_use]
    pub fn with_reviewer(mut self, reviewer: Arc<dyn EditReviewer>) -> Self {
        self.reviewer = Some(reviewer);
        self
    }

    /// Says that a conversation reads the answers, which remembers what it was told. Without it a program does.
    #[must_use]
    pub fn in_conversation(mut self) -> Self {
        self.segment = Some(AtomicU64::new(0));
        self
    }

    /// The conversation was made shorter: what it was told before, it may have to be told again.
    pub fn begin_segment(&self) {
        if let Some(segment) = &self.segment {
            segment.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A new message of the person: what was repeated before it is forgotten.
    pub fn begin_turn(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
        *self.repetition() = guardrails::Turn::default();
    }

    /// Counts the messages of the person.
    pub(crate) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Relaxed)
    }

    pub(crate) fn repetition(&self) -> MutexGuard<'_, guardrails::Turn> {
        self.repetition.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session's directory when the task began; the session may have moved since.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The context of one call of this task; `judge` is the one of the dispatcher that takes it.
    pub fn context(&self, call_id: &str, judge: &Arc<dyn Judge>, cancel: &CancellationToken) -> ToolCx {
        ToolCx {
            call_id: call_id.to_owned(),
            environment: Arc::clone(&self.environment),
            asker: self.asker.clone(),
            todos: self.todos.clone(),
            processes: self.processes.clone(),
            judge: Some(Arc::clone(judge)),
            segment: self.segment.as_ref().map(|segment| segment.load(Ordering::Relaxed)),
            scratch: Arc::clone(&self.scratch),
            limits: Limits { result_chars: self.budget.per_result, ..self.limits },
            cancel: cancel.clone(),
        }
    }

    /// A file name for the stored result of a call, used for no other result of this task.
    pub(crate) fn result_name(&self, call_id: &str) -> String {
        let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let base: String = call_id.chars().map(fits).take(80).collect();
        let mut used = self.result_names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut name = format!("{base}.txt");
        let mut n = 1;
        while !used.insert(name.clone()) {
            n += 1;
            name = format!("{base}-{n}.txt");
        }
        name
    }

    /// Remembers that `tool` was called with broken arguments; true if its last call was broken too.
    pub(crate) fn invalid_again(&self, tool: &str) -> bool {
        let mut tools = self.invalid.tools.lock().unwrap_or_else(PoisonError::into_inner);
        self.invalid.any.store(true, Ordering::Relaxed);
        !tools.insert(tool.to_owned())
    }

    /// Remembers that `tool` was called with arguments that are in order.
    pub(crate) fn valid_now(&self, tool: &str) {
        // Nearly all calls are in order; they take no lock.
        if self.invalid.any.load(Ordering::Relaxed) {
            let mut tools = self.invalid.tools.lock().unwrap_or_else(PoisonError::into_inner);
            tools.remove(tool);
            self.invalid.any.store(!tools.is_empty(), Ordering::Relaxed);
        }
    }

    /// A name for a request, unlike that of any other request of this machine.
    pub(crate) fn request_id(now: SystemTime) -> String {
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        // Seeded by the operating system: tasks of one process may ask within the same microsecond.
        let random = RandomState::new().build_hasher().finish();
        format!("{:x}-{random:016x}", since.as_micros())
    }

    /// Remembers that the person allowed exactly this for the rest of the task.
    pub(crate) fn approve(&self, scope_key: String) {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner).insert(scope_key);
    }

    /// Whether the person allowed exactly this before.
    pub(crate) fn is_approved(&self, scope_key: &str) -> bool {
        self.approved.lock().unwrap_or_else(PoisonError::into_inner).contains(scope_key)
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("cwd", &self.environment.cwd()).finish_non_exhaustive()
    }
}
