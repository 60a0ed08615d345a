//! Approvals on this machine: the judge with the user's policy, and the book in which requests and answers stand.

mod book;

use std::path::Path;
use std::sync::Arc;

use hermes_guard::Guard;
use hermes_guard::paths::{PathPolicy, SafeRoots};
use hermes_guard::policy::Policy;
use hermes_guard::redact::Secrets;

pub(crate) use self::book::{Book, Entry, add, log_path, read_log, remove};
use crate::config::Config;
use crate::words::Failure;
use crate::world::World;

/// The rules and approvals for good of a configuration.
pub(crate) fn policy(config: &Config) -> Result<Policy, Failure> {
    read_policy(config).map_err(|problems| Failure::new(format!("config.yaml: {problems} (hermes approvals test)")))
}

/// The same; an error is all that is wrong with the rules.
pub(crate) fn read_policy(config: &Config) -> Result<Policy, String> {
    let approvals = serde_json::json!({
        "rules": config.value("approvals.rules"),
        "deny": config.list("approvals.deny"),
    });
    Policy::read(Some(&approvals), &config.list("command_allowlist")).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("; ")
    })
}

/// The judge of all calls.
pub(crate) fn guard(world: &World, config: &Config) -> Result<Arc<Guard>, Failure> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (home, agent_home) = (&world.user_home, &world.home);
    let roots = world.variable("HERMES_WRITE_SAFE_ROOT").map(std::ffi::OsStr::new);
    let roots =
        SafeRoots::read(roots, &world.cwd, home).map(|roots| roots.resolved(|root| std::fs::canonicalize(root).ok()));
    let paths = PathPolicy::new(home, agent_home).also(real(home), real(agent_home)).within(roots);
    Ok(Arc::new(Guard::new(home, &world.user_name(), agent_home, paths, policy(config)?)))
}

/// What takes secrets out of results: the values that are known here, then whatever looks like one.
pub(crate) fn secrets(world: &World, config: &Config) -> Secrets {
    let secrets = Secrets::new();
    let from_environment = world.secret_variables();
    let configured = ["model.api_key", "auxiliary.approval.api_key"]
        .into_iter()
        .filter_map(|key| config.secret(key).map(|value| (key.to_owned(), value)));
    for (name, value) in from_environment.chain(configured) {
        // A value that is too short or too common to be told from ordinary text cannot be hidden.
        let _ = secrets.register(&name, value);
    }
    secrets
}
