//! Joining what the other crates offer into something that can take calls.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hermes_agent::{Agent, ModelReviewer, Setup, Sight, TodoList, project_file, system_prompt};
use hermes_core::{Asker, Clock, plural};
use hermes_exec::LocalEnvironment;
use hermes_exec::checkpoints::Recorder;
use hermes_exec::local::{Reach, RehearsalSetup, SandboxWish, Strictness};
use hermes_exec::processes::{ProcessTable, TableSetup, reap};
use hermes_exec::sandbox::preflight;
use hermes_guard::Guard;
use hermes_guard::injection;
use hermes_guard::redact::Secrets;
use hermes_runtime::{
    ApprovalMode, Approvals, Budget, Checks, Definitions, Dispatcher, Hooks, Profile, Registry, Selection, Task,
    UnknownToolset, Verdict, Wanted, toolset,
};

use crate::approvals;
use crate::args::{AgentArgs, Approve, PlaceArgs, Walled};
use crate::commands::{checkpoints, env, rehearsals};
use crate::config::Config;
use crate::env_file::Machine;
use crate::granted::Granted;
use crate::models::{self, Chosen};
use crate::network::Hosts;
use crate::sudo;
use crate::terminal::out;
use crate::terminal::text::visible;
use crate::words::Failure;
use crate::workspace;
use crate::world::{SystemClock, World};

/// Every tool there is, what can be used here, and the lists made of both.
pub(crate) fn definitions(world: &World, config: &Config) -> Result<Arc<Definitions>, Failure> {
    let registry = Arc::new(Registry::new());
    registry.built_in(&hermes_tools::Builtins).map_err(|error| Failure::new(error.to_string()))?;
    let definitions = Definitions::new(registry, Checks::new(Arc::new(Machine::new(world))));
    define_toolsets(config, definitions.registry())?;
    // Slow checks get a moment, so that the first list is the right one; after that they come when they come.
    definitions.checks().settle(&definitions.registry().snapshot(), PATIENCE);
    Ok(Arc::new(definitions))
}

/// How long one of the user's shell files may take.
const INIT_FILE_LIMIT: Duration = Duration::from_secs(10);
/// How long the answers of slow checks are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Makes the user's own toolsets, and forgets those that are not there any more.
pub(crate) fn define_toolsets(config: &Config, registry: &Registry) -> Result<(), Failure> {
    registry
        .set_toolsets(config.custom_toolsets())
        .map_err(|error| Failure::new(format!("custom_toolsets in config.yaml: {error}")))
}

/// What takes calls.
pub(crate) fn dispatcher(world: &World, config: &Config, registry: &Arc<Registry>, guard: &Arc<Guard>) -> Judged {
    let secrets = Arc::new(approvals::secrets(world, config));
    let keeps = config.flag("checkpoints.enabled");
    let recorder =
        keeps.then(|| Arc::new(Recorder::new(checkpoints::kept(world, config), Some(Arc::clone(&secrets) as _))) as _);
    let hooks = Hooks { redactor: Some(Arc::clone(&secrets) as _), checkpointer: recorder, ..Hooks::default() };
    let dispatcher = Dispatcher::new(Arc::clone(registry), Arc::clone(guard) as _).with_hooks(hooks);
    Judged { dispatcher, secrets }
}

/// What takes calls, and what it hides.
pub(crate) struct Judged {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) secrets: Arc<Secrets>,
}

/// What happens to dangerous calls: what the command line says, else the configuration.
pub(crate) fn approve(config: &Config, said: Option<Approve>) -> ApprovalMode {
    match (said, config.text("approvals.mode").as_deref()) {
        (Some(said), _) => said.into(),
        (None, Some("off")) => ApprovalMode::All,
        (None, Some("smart")) => ApprovalMode::Smart,
        (None, Some("rehearse")) => ApprovalMode::Rehearse,
        (None, _) => ApprovalMode::Ask,
    }
}

/// How a task's questions are written down, and how long they wait.
pub(crate) fn task_approvals(world: &World, config: &Config, secrets: &Arc<Secrets>) -> Approvals {
    Approvals {
        reviewer: None,
        book: Some(Arc::new(approvals::Book::new(world, Arc::clone(secrets)))),
        expires: Duration::from_secs(config.whole("approvals.timeout")),
    }
}

/// Which tools are in sight: what the command line says, else what is stored for the surface, else `toolsets` of the
/// configuration, else what the surface has by itself.
pub(crate) fn selection(
    config: &Config,
    platform: &str,
    toolsets: Option<&Vec<String>>,
    disable: Option<&Vec<String>>,
) -> Selection {
    let named =
        |names: &[String]| names.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    let stored = || toolset::platform_key(platform).and_then(|key| config.platform_toolsets(key));
    let general = || config.is_set("toolsets").then(|| config.list("toolsets"));
    let mut disabled: Vec<String> = named(&config.list("agent.disabled_toolsets"));
    disabled.extend(disable.map(|names| named(names)).unwrap_or_default());
    Selection {
        platform: platform.to_owned(),
        also: if config.on_the_board { vec!["kanban".into()] } else { Vec::new() },
        with_sources: toolsets.is_none(),
        toolsets: toolsets.map(|names| named(names)).or_else(stored).or_else(general),
        disabled,
        ..Selection::default()
    }
}

/// Why the tools that are on cannot be told, with the place of the mistake.
pub(crate) fn unknown(config: &Config, error: UnknownToolset) -> Failure {
    let is_it = |name: &String| *name == error.name || name.strip_prefix('-') == Some(error.name.as_str());
    let named_in = |list: &[String]| list.iter().any(is_it);
    let stored = config.value("platform_toolsets");
    for (key, list) in stored.as_object().into_iter().flatten() {
        if named_in(&config.platform_toolsets(key).unwrap_or_default()) && !list.is_null() {
            return Failure::usage(format!("platform_toolsets.{key} in config.yaml: {error} (hermes toolsets list)"));
        }
    }
    for key in ["toolsets", "agent.disabled_toolsets"] {
        if config.is_set(key) && named_in(&config.list(key)) {
            return Failure::usage(format!("{key} in config.yaml: {error} (hermes toolsets list)"));
        }
    }
    error.into()
}

/// As [`selection`] says, and where the user wants to focus and `cwd` (else where we are) is in a code base, the toolset
/// `coding` stands where that of the terminal stood. What somebody named or took away besides stays so.
pub(crate) fn focused(world: &World, config: &Config, selection: Selection, cwd: Option<&Path>) -> Selection {
    let mode = config.text("agent.coding_context").unwrap_or_default();
    let is_cli = |name: &str| toolset::platform(name) == Some("hermes-cli");
    let wanted = matches!(mode.as_str(), "focus" | "strict" | "lean") && is_cli(&selection.platform);
    // What stands on the command line is meant as it is written.
    if !wanted || !selection.with_sources || !workspace::is_code(&start(world, config, cwd), &world.user_home) {
        return selection;
    }
    let coding = |name: String| if is_cli(&name) { "coding".to_owned() } else { name };
    let names = selection.toolsets.unwrap_or_else(|| vec![selection.platform.clone()]);
    Selection { toolsets: Some(names.into_iter().map(coding).collect()), ..selection }
}

/// The tools of a conversation.
fn agent_selection(world: &World, config: &Config, args: &AgentArgs) -> Selection {
    let selection = selection(config, "cli", args.toolsets.as_ref(), args.disable.as_ref());
    focused(world, config, selection, args.place.cwd.as_deref())
}

/// What an agent is shown.
pub(crate) fn wanted(
    world: &World,
    config: &Config,
    args: &AgentArgs,
    profile: Profile,
    config_version: u64,
) -> Wanted {
    let selection = agent_selection(world, config, args);
    Wanted { context: config.context_length(), config: config_version, ..Wanted::new(selection, profile) }
}

/// Where a task starts: `cwd` (given on the command line), else where the configuration says, else where we are.
fn start(world: &World, config: &Config, cwd: Option<&Path>) -> PathBuf {
    let configured = || config.text("terminal.cwd").map(|cwd| world.path(&cwd));
    cwd.map(|cwd| world.cwd.join(cwd)).or_else(configured).unwrap_or_else(|| world.cwd.clone())
}

/// A task that runs at `place`, and where that says nothing, as the configuration does. `asker` answers what its commands
/// want to know, `secrets` learns what must not be seen of that, and `granted` is what they get.
pub(crate) async fn task(
    world: &World,
    config: &Config,
    place: &PlaceArgs,
    asker: Option<Arc<dyn Asker>>,
    secrets: &Arc<Secrets>,
    granted: &Granted,
) -> Result<Task, Failure> {
    if let Some(backend) = &place.backend {
        env::must_be_here(backend)?;
    }
    let cwd = start(world, config, place.cwd.as_deref());
    let (by_reference, mut said) = granted.variables(world, config, secrets).await?;
    let mut names = config.list("terminal.env_passthrough");
    names.extend(by_reference.iter().filter_map(|(name, _)| name.to_str().map(str::to_owned)));
    let variables = world.variables().chain(by_reference);
    let environment = LocalEnvironment::new(&cwd, &world.user_home, variables, &names)?;
    let mut environment = environment.with_rehearsals(rehearsals(world, config, secrets));
    let files = paths(world, config, "terminal.shell_init_files");
    said.extend(environment.read_init_files(&files, INIT_FILE_LIMIT).await);
    if let Some(setup) = sudo::setup(world, asker.clone(), secrets)
        && let Err(error) = environment.let_sudo_ask(setup)
    {
        said.push(format!("sudo cannot ask for a password in this session: {error}"));
    }
    for said in said {
        out::error(&format!("hermes: {}", visible(&said)));
    }
    let environment = match config.whole("terminal.lifetime_seconds") {
        0 => environment,
        idle => environment.resting_after(Duration::from_secs(idle)),
    };
    let environment = confined(world, config, wall(config, place), environment).await?;
    let mut task = Task::new(Arc::new(environment)).with_todos(Arc::new(TodoList::default()));
    task.id = session_id();
    task.asker = asker;
    Ok(task.with_limits(config.limits()))
}

/// The wall around the commands of a task at `place`.
pub(crate) fn wall(config: &Config, place: &PlaceArgs) -> Walled {
    place.sandbox.unwrap_or_else(|| match config.text("terminal.sandbox").as_deref() {
        Some("workspace") => Walled::Workspace,
        Some("strict") => Walled::Strict,
        _ => Walled::Off,
    })
}

fn paths(world: &World, config: &Config, key: &str) -> Vec<PathBuf> {
    config.list(key).iter().map(|path| world.path(path)).collect()
}

/// What commands in the sandbox must not see.
fn hidden(world: &World, config: &Config) -> Vec<PathBuf> {
    let configured = paths(world, config, "terminal.sandbox_hidden");
    world.secret_places().into_iter().chain(configured).collect()
}

/// How rehearsals are set up.
fn rehearsals(world: &World, config: &Config, secrets: &Arc<Secrets>) -> RehearsalSetup {
    let (stages, undo) = (stages(world), rehearsals::folder(world));
    let redactor = Arc::clone(secrets) as _;
    let (world, config) = (world.clone(), config.clone());
    let hidden = Arc::new(move || hidden(&world, &config));
    RehearsalSetup { stages, undo, hidden, redactor: Some(redactor) }
}

/// Where stand-ins are kept: beside what can be taken back, or, for somebody who works in their home folder, outside of
/// it.
fn stages(world: &World) -> Vec<PathBuf> {
    let elsewhere = format!("/var/tmp/hermes-stages-{}", nix::unistd::geteuid());
    vec![world.home.join("rehearsals").join("stages"), elsewhere.into()]
}

/// The environment with this wall, as the configuration says what is in it. One that is not possible here is an error: nobody
/// who asked for a wall works without it by accident.
async fn confined(
    world: &World,
    config: &Config,
    wall: Walled,
    environment: LocalEnvironment,
) -> Result<LocalEnvironment, Failure> {
    let strictness = match wall {
        Walled::Off => return Ok(environment),
        Walled::Workspace => Strictness::Workspace,
        Walled::Strict => Strictness::Strict,
    };
    let reach = match config.text("terminal.sandbox_network").as_deref() {
        Some("open") => Reach::Open,
        Some("hosts") => Reach::Through(Arc::new(Hosts::new(config))),
        _ => Reach::Off,
    };
    let wish = SandboxWish {
        strictness,
        writable: paths(world, config, "terminal.sandbox_writable"),
        hidden: hidden(world, config),
        reach,
    };
    let preflight = tokio::task::spawn_blocking(preflight).await.map_err(|error| Failure::new(error.to_string()))?;
    environment.confined(wish, &preflight).map_err(|why| {
        Failure::new(format!("terminal.sandbox: {why}\nhermes config set terminal.sandbox off works without one"))
    })
}

/// The table of what a task runs in the background. `tells`: somebody listens to its news.
pub(crate) fn processes(
    world: &World,
    config: &Config,
    task: &Task,
    secrets: &Arc<Secrets>,
    tells: bool,
) -> Arc<ProcessTable> {
    Arc::new(ProcessTable::new(TableSetup {
        folder: processes_folder(world),
        owner: task.id.clone(),
        grace: config.seconds("terminal.daemon_term_grace_seconds"),
        tells,
        redactor: Some(Arc::clone(secrets) as _),
        clock: Arc::new(SystemClock),
    }))
}

/// Where logs and records of processes in the background are kept.
pub(crate) fn processes_folder(world: &World) -> PathBuf {
    world.home.join("processes")
}

/// Where temporary folders are made: the machine's own place first, and one that is in sight inside of the sandbox.
pub(crate) fn temporary_folders(world: &World) -> Vec<PathBuf> {
    vec![std::env::temp_dir(), world.user_home.join(".cache")]
}

/// Clears up what a crash left, without making anybody wait for it.
pub(crate) fn reap_quietly(world: &World) {
    rehearsals::recover(world);
    let (folder, temporary, stages) = (processes_folder(world), temporary_folders(world), stages(world));
    tokio::task::spawn_blocking(move || {
        reap(&folder, &temporary, SystemTime::now());
        for stages in stages.iter().filter(|stages| stages.is_dir()) {
            // What cannot be removed now is tried again at the next start.
            let _ = hermes_exec::rehearsal::reap(stages);
        }
    });
}

/// A name for a conversation, unlike that of any other.
fn session_id() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    format!("{}-{:012x}", std::process::id(), RandomState::new().build_hasher().finish() >> 16)
}

/// Who is there while an agent works.
pub(crate) struct Present {
    /// Who answers questions.
    pub(crate) asker: Option<Arc<dyn Asker>>,
    /// Somebody hears what happens in the background after the call that began it.
    pub(crate) hears_news: bool,
}

/// Everything that one agent needs, joined.
pub(crate) async fn agent(
    world: &World,
    config: &Config,
    args: &AgentArgs,
    chosen: &Chosen,
    present: Present,
    definitions: Arc<Definitions>,
    guard: &Arc<Guard>,
) -> Result<Agent, Failure> {
    let wanted = Arc::new(wanted(world, config, args, chosen.profile, 0));
    let judged = dispatcher(world, config, definitions.registry(), guard);
    let mut task = task(world, config, &args.place, present.asker, &judged.secrets, &Granted::default()).await?;
    let mode = approve(config, args.approve);
    task.approval = task_approvals(world, config, &judged.secrets);
    task.processes = Some(processes(world, config, &task, &judged.secrets, present.hears_news));
    reap_quietly(world);
    drop(checkpoints::prune_when_due(world, config));
    if mode == ApprovalMode::Smart {
        let reviewer = models::reviewer(world, config, chosen).await?;
        task.approval.reviewer =
            Some(Arc::new(ModelReviewer::new(reviewer, config.seconds("auxiliary.approval.timeout"))));
    }
    let environment = Arc::clone(&task.environment);
    let cwd = environment.cwd();
    let project = project_file::find(&*environment, &cwd).await;
    if let Some(project) = &project {
        warn_of_instructions(world, project);
    }
    let system_prompt = system_prompt::build(&system_prompt::Facts {
        host: &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cwd: &cwd,
        date: &today(&SystemClock),
        model: chosen.model.name(),
        project: project.as_ref(),
    });
    let agent = Agent::new(Setup {
        model: Arc::clone(&chosen.model),
        dispatcher: Arc::new(judged.dispatcher),
        task: task.with_guardrails(config.guardrails()).with_budget(Budget::for_context(config.context_length())),
        definitions,
        wanted,
        approve: mode,
        max_requests: args
            .max_turns
            .unwrap_or_else(|| u32::try_from(config.whole("agent.max_turns")).unwrap_or(u32::MAX)),
        system_prompt,
        sight: match config.text("agent.image_input_mode").as_deref() {
            Some("native") => Sight::Sees,
            Some("text") => Sight::Blind,
            _ => Sight::Unknown,
        },
    });
    agent.map_err(|error| unknown(config, error))
}

/// Says where a project file looks as if somebody else had written into it. The file is read all the same.
fn warn_of_instructions(world: &World, project: &project_file::ProjectFile) {
    let warnings = injection::scan(&project.text);
    for warning in warnings.iter().filter(|warning| warning.level == injection::Level::Warn) {
        let place = format!("{}:{}", world.shown(&project.path), warning.line);
        out::error(&format!("hermes: {place} {}: {}", warning.kind.in_words(), visible(&warning.excerpt)));
    }
}

/// How many tools an agent has, and what the configuration took away, in a few words.
pub(crate) fn tools_in_words(
    world: &World,
    config: &Config,
    args: &AgentArgs,
    definitions: &Definitions,
) -> Result<String, Failure> {
    let selection = agent_selection(world, config, args);
    let resolved = selection.resolve(&definitions.registry().snapshot(), definitions.checks());
    let resolved = resolved.map_err(|error| unknown(config, error))?;
    let snapshot = definitions.registry().snapshot();
    let mut removed: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, verdict) in &resolved.verdicts {
        if let Verdict::Removed(by) = verdict
            && snapshot.get(name).is_some()
        {
            *removed.entry(by).or_default() += 1;
        }
    }
    let removed: Vec<String> = removed.iter().map(|(by, count)| format!("{count} off by {by}")).collect();
    let removed = if removed.is_empty() { String::new() } else { format!(" ({})", removed.join(", ")) };
    Ok(format!("{}{removed}", plural(resolved.tools.len(), "tool")))
}

/// The configuration of a conversation that is running: what changes in the file counts from the next turn on.
pub(crate) struct Follow {
    definitions: Arc<Definitions>,
    guard: Arc<Guard>,
    /// What was good the last time.
    config: Config,
    /// What the file looked like when it was read last.
    seen: Option<(SystemTime, u64)>,
    version: u64,
}

impl Follow {
    /// Reads the configuration, and says what in it has no effect.
    pub(crate) fn new(world: &World) -> Result<Self, Failure> {
        let seen = Self::look(world);
        let config = Config::load_and_warn(world)?;
        let guard = approvals::guard(world, &config)?;
        Ok(Self { definitions: definitions(world, &config)?, guard, config, seen, version: 0 })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// The judge, whose policy follows the file as well.
    pub(crate) fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    fn look(world: &World) -> Option<(SystemTime, u64)> {
        let file = std::fs::metadata(crate::config::path(world)).ok()?;
        Some((file.modified().ok()?, file.len()))
    }

    /// If the file has changed, the agent gets the tools that it says now. Answers what is to be said about that. Where
    /// the file has a mistake, everything stays as it was.
    pub(crate) fn up_to_date(
        &mut self,
        world: &World,
        args: &AgentArgs,
        profile: Profile,
        agent: &mut Agent,
    ) -> Result<Option<String>, Failure> {
        // Looked at before it is read: what is written in between is read the next time.
        let now = Self::look(world);
        if now == self.seen {
            return Ok(None);
        }
        self.seen = now;
        self.version += 1;
        let config = Config::load(world)?;
        let policy = approvals::policy(&config)?;
        self.definitions.checks().forget();
        let before: BTreeSet<String> = agent.tools().map(str::to_owned).collect();
        let registry = self.definitions.registry();
        let wanted = wanted(world, &config, args, profile, self.version);
        let applied = define_toolsets(&config, registry)
            .and_then(|()| agent.want(wanted).map_err(|error| unknown(&config, error)));
        if let Err(failure) = applied {
            // These were good before.
            define_toolsets(&self.config, registry)?;
            return Err(failure);
        }
        self.config = config;
        self.guard.set_policy(policy);
        let after: BTreeSet<String> = agent.tools().map(str::to_owned).collect();
        let mut said: Vec<String> = after.difference(&before).map(|name| format!("+{name}")).collect();
        said.extend(before.difference(&after).map(|name| format!("−{name}")));
        Ok((!said.is_empty()).then(|| format!("tools changed: {}", said.join(" "))))
    }
}

fn today(clock: &dyn Clock) -> String {
    chrono::DateTime::<chrono::Local>::from(clock.now()).format("%Y-%m-%d").to_string()
}
