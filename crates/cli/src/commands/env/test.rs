//! `hermes env test [NAME]`: the conformance suite against a backend as it is configured here.

use std::path::PathBuf;
use std::{fs, io};

use hermes_core::plural;
use hermes_exec::Temporary;
use hermes_exec::conformance::{Check, Outcome, run_and_tell};
use serde_json::json;

use super::SANDBOX;
use crate::args::{PlaceArgs, Walled};
use crate::config::Config;
use crate::granted::Granted;
use crate::session;
use crate::terminal::out;
use crate::terminal::signals::Signals;
use crate::terminal::text::{visible, wrapped};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(super) async fn run(world: &World, name: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    let config = Config::load_and_warn(world)?;
    let chosen = config.text("terminal.backend").unwrap_or_default();
    let name = name.unwrap_or(&chosen);
    let mut place = PlaceArgs::default();
    if name == SANDBOX {
        place.sandbox = (config.text("terminal.sandbox").as_deref() == Some("off")).then_some(Walled::Workspace);
    } else {
        place.backend = Some(name.to_owned());
    }
    let cannot = |error: io::Error| Failure::new(format!("cannot make a temporary folder: {error}"));
    let temporary = Temporary::new(&folder_for_checks(world), "env-test-").map_err(cannot)?;
    let folder = temporary.path().join("work");
    fs::create_dir(&folder).map_err(cannot)?;
    place.cwd = Some(folder.clone());
    let environment =
        session::task(world, &config, &place, None, &std::sync::Arc::default(), &Granted::default()).await?.environment;
    if !as_json {
        out::line(&format!("Checking {name} in {}.", world.shown(&folder)))?;
    }
    let signals = Signals::listen();
    let cancel = signals.begin();
    let mut unread = Ok(());
    let tell = |check: &Check| {
        if !as_json && unread.is_ok() {
            unread = out::line(&line(check));
        }
    };
    let checks = tokio::select! {
        checks = run_and_tell(&*environment, tell) => checks,
        () = cancel.cancelled() => {
            environment.close().await;
            return Err(Failure { message: "stopped; what the checks started was ended".into(), exit: Exit::Interrupted });
        }
    };
    unread?;
    let count = |is: fn(&Outcome) -> bool| checks.iter().filter(|check| is(&check.outcome)).count();
    let failed = count(|outcome| matches!(outcome, Outcome::Failed(_)));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    if as_json {
        out::pretty(&json!({ "backend": name, "checks": checks }))?;
    } else {
        let passed = plural(checks.len() - failed - skipped, "check");
        let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
        let failed = if failed > 0 { format!(", {failed} failed. Exit 1") } else { String::new() };
        out::line(&format!("{passed} passed{skipped}{failed}."))?;
    }
    Ok(if failed > 0 { Exit::Failed } else { Exit::Done })
}

/// Where the checks are made. What is below /tmp is a command's own in the sandbox, and the agent's home is hidden there.
fn folder_for_checks(world: &World) -> PathBuf {
    let folders = session::temporary_folders(world);
    folders.into_iter().rfind(|folder| folder.is_dir()).unwrap_or_else(std::env::temp_dir)
}

fn line(check: &Check) -> String {
    let (mark, why) = match &check.outcome {
        Outcome::Passed => ("✓", String::new()),
        Outcome::Failed(why) => ("✗", format!(": {why}")),
        Outcome::Skipped(capability) => ("·", format!(": skipped, it does not promise {capability}")),
    };
    format!("  {mark} {}", wrapped(&visible(&format!("{}{why}", check.name)), 80, 4).trim_start())
}
