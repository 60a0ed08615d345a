//! Joining what the other crates offer into something that can take calls.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use hermes_agent::{Agent, Setup, TodoList, project_file, system_prompt};
use hermes_core::{Asker, Clock, ToolName};
use hermes_exec::LocalEnvironment;
use hermes_runtime::{ApprovalMode, Dispatcher, PlainJudge, Registry, Selection, Snapshot, Task, definitions};

use crate::args::AgentArgs;
use crate::config::Config;
use crate::models::Chosen;
use crate::words::Failure;
use crate::world::{SystemClock, World};

/// Every tool there is.
pub(crate) fn registry() -> Result<Arc<Registry>, Failure> {
    let registry = Registry::new();
    registry.register(&hermes_tools::Builtins).map_err(|error| Failure::new(error.to_string()))?;
    Ok(Arc::new(registry))
}

/// What takes calls.
pub(crate) fn dispatcher(registry: &Arc<Registry>) -> Dispatcher {
    Dispatcher::new(Arc::clone(registry), Arc::new(PlainJudge))
}

/// Which tools are in sight, as the command line and then the configuration say.
pub(crate) fn selection(
    config: &Config,
    platform: &str,
    toolsets: Option<&Vec<String>>,
    disable: Option<&Vec<String>>,
) -> Selection {
    let named =
        |names: &[String]| names.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    let configured = || config.is_set("toolsets").then(|| config.list("toolsets"));
    let mut disabled: Vec<String> = named(&config.list("agent.disabled_toolsets"));
    disabled.extend(disable.map(|names| named(names)).unwrap_or_default());
    Selection {
        platform: platform.to_owned(),
        toolsets: toolsets.map(|names| named(names)).or_else(configured),
        disabled,
    }
}

/// The tools that are on, or why that cannot be said.
pub(crate) fn visible(
    config: &Config,
    selection: &Selection,
    snapshot: &Snapshot,
) -> Result<BTreeSet<ToolName>, Failure> {
    selection.resolve(snapshot).map_err(|error| {
        for key in ["toolsets", "agent.disabled_toolsets"] {
            if config.list(key).contains(&error.name) && config.is_set(key) {
                return Failure::new(format!("{key} in config.yaml: {error}"));
            }
        }
        error.into()
    })
}

/// A task that starts in `cwd` (given on the command line), else where the configuration says, else where we are.
pub(crate) fn task(world: &World, config: &Config, cwd: Option<&Path>) -> Result<Task, Failure> {
    let configured = || config.text("terminal.cwd").map(|cwd| world.path(&cwd));
    let cwd = cwd.map(|cwd| world.cwd.join(cwd)).or_else(configured).unwrap_or_else(|| world.cwd.clone());
    let granted = config.list("terminal.env_passthrough");
    let environment = LocalEnvironment::new(&cwd, &world.user_home, world.variables(), &granted)?;
    Ok(Task::new(Arc::new(environment)).with_todos(Arc::new(TodoList::default())).with_limits(config.limits()))
}

/// Everything that one agent needs, joined.
pub(crate) async fn agent(
    world: &World,
    config: &Config,
    args: &AgentArgs,
    chosen: &Chosen,
    asker: Option<Arc<dyn Asker>>,
) -> Result<Agent, Failure> {
    let registry = registry()?;
    let snapshot = registry.snapshot();
    let selection = selection(config, "hermes-cli", args.toolsets.as_ref(), args.disable.as_ref());
    let visible = visible(config, &selection, &snapshot)?;
    let mut task = task(world, config, args.cwd.as_deref())?;
    task.asker = asker;
    let environment = Arc::clone(&task.environment);
    let cwd = environment.cwd();
    let project = project_file::find(&*environment, &cwd).await;
    let system_prompt = system_prompt::build(&system_prompt::Facts {
        host: &format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        cwd: &cwd,
        date: &today(&SystemClock),
        model: chosen.model.name(),
        project: project.as_ref(),
    });
    Ok(Agent::new(Setup {
        model: Arc::clone(&chosen.model),
        dispatcher: Arc::new(dispatcher(&registry)),
        task,
        definitions: definitions::build(&snapshot, &visible),
        visible,
        approve: ApprovalMode::from(args.approve.unwrap_or_default()),
        max_requests: args
            .max_turns
            .unwrap_or_else(|| u32::try_from(config.whole("agent.max_turns")).unwrap_or(u32::MAX)),
        system_prompt,
    }))
}

fn today(clock: &dyn Clock) -> String {
    chrono::DateTime::<chrono::Local>::from(clock.now()).format("%Y-%m-%d").to_string()
}
