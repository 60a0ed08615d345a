//! `hermes doctor`: is everything in place, and if not, what fixes it?

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_core::{CancellationToken, Command, ToolName, plural};
use hermes_exec::sandbox::{Mechanism, preflight};
use hermes_guard::policy::Policy;
use hermes_runtime::names::did_you_mean;
use hermes_runtime::{Verdict, toolset};
use serde_json::json;

use crate::args::{JsonArg, PlaceArgs};
use crate::config::{self, Config};
use crate::granted::Granted;
use crate::models;
use crate::session;
use crate::terminal::out;
use crate::terminal::text::{duration, padded, visible};
use crate::words::{Exit, Failure};
use crate::world::World;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Fine,
    Warning,
    Error,
}

struct Finding {
    mark: Mark,
    what: &'static str,
    says: String,
}

pub(crate) async fn run(world: &World, args: JsonArg) -> Result<Exit, Failure> {
    let mut findings = vec![home(world)];
    let (config, found) = configuration(world);
    findings.extend(found);
    let broken = findings.iter().any(|finding| finding.what == "config" && finding.mark == Mark::Error);
    findings.push(model(world, &config, broken).await);
    findings.push(shell(world, &config).await);
    findings.push(sandbox());
    findings.push(checkpoints(&config));
    findings.push(tools(world, &config)?);
    let count = |mark| findings.iter().filter(|finding| finding.mark == mark).count();
    let (errors, warnings) = (count(Mark::Error), count(Mark::Warning));
    let exit = if errors > 0 { Exit::Failed } else { Exit::Done };
    if args.json {
        let all: Vec<_> = findings
            .iter()
            .map(|finding| {
                let mark = match finding.mark {
                    Mark::Fine => "ok",
                    Mark::Warning => "warning",
                    Mark::Error => "error",
                };
                json!({ "check": finding.what, "status": mark, "message": finding.says })
            })
            .collect();
        out::pretty(&json!(all))?;
        return Ok(exit);
    }
    let mut text = String::new();
    for Finding { mark, what, says } in &findings {
        let mark = match mark {
            Mark::Fine => "✓",
            Mark::Warning => "!",
            Mark::Error => "✗",
        };
        text += &format!("  {mark} {} {says}\n", padded(what, 10));
    }
    text += &match (errors, warnings) {
        (0, 0) => "Everything is in place.".to_owned(),
        (0, warnings) => format!("{}.", plural(warnings, "warning")),
        (errors, 0) => format!("{}. Exit 1.", plural(errors, "error")),
        (errors, warnings) => format!("{}, {}. Exit 1.", plural(errors, "error"), plural(warnings, "warning")),
    };
    out::line(&text)?;
    Ok(exit)
}

fn home(world: &World) -> Finding {
    let shown = world.shown(&world.home);
    let (mark, says) = match std::fs::metadata(&world.home) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match writable_parent(&world.home) {
            Ok(()) => (Mark::Fine, format!("{shown} is not there yet; it is made when something has to be kept")),
            Err(why) => (Mark::Error, format!("{shown} cannot be made: {why} (set HERMES_HOME to a folder of yours)")),
        },
        Err(error) => (Mark::Error, format!("{shown}: {error}")),
        Ok(metadata) if !metadata.is_dir() => (Mark::Error, format!("{shown} is not a folder (set HERMES_HOME)")),
        Ok(metadata) => match tempfile::tempfile_in(&world.home) {
            Err(error) => {
                (Mark::Error, format!("{shown} cannot be written: {error} (set HERMES_HOME to a folder of yours)"))
            }
            Ok(_) => {
                let mode = metadata.permissions().mode() & 0o777;
                if mode & 0o077 == 0 {
                    (Mark::Fine, format!("{shown} (0{mode:o})"))
                } else {
                    (Mark::Warning, format!("{shown} is open to other users (0{mode:o}); chmod 700 {shown}"))
                }
            }
        },
    };
    Finding { mark, what: "home", says }
}

/// Whether what files were before a turn can be kept.
fn checkpoints(config: &Config) -> Finding {
    let (mark, says) = match hermes_exec::checkpoints::git() {
        _ if !config.flag("checkpoints.enabled") => {
            (Mark::Warning, "off: a turn cannot be undone (hermes config set checkpoints.enabled true)".to_owned())
        }
        Ok(git) => (Mark::Fine, format!("/undo works, with {git}")),
        Err(why) => (Mark::Warning, format!("a turn cannot be undone: {why}")),
    };
    Finding { mark, what: "undo", says }
}

fn writable_parent(path: &Path) -> Result<(), String> {
    let parent = path.ancestors().skip(1).find(|parent| parent.exists()).unwrap_or(Path::new("/"));
    tempfile::tempfile_in(parent).map(drop).map_err(|error| format!("{}: {error}", parent.display()))
}

fn configuration(world: &World) -> (Config, Vec<Finding>) {
    let finding = |mark, says| Finding { mark, what: "config", says };
    let path = config::path(world);
    match Config::load(world) {
        Ok(config) => {
            let mut findings: Vec<Finding> =
                config.warnings.iter().map(|warning| finding(Mark::Warning, warning.clone())).collect();
            if findings.is_empty() {
                let shown = world.shown(&path);
                let says = if path.exists() { shown } else { format!("{shown} is not there; defaults hold") };
                findings.push(finding(Mark::Fine, says));
            }
            findings.extend(approvals(world, &config));
            (config, findings)
        }
        Err(failure) => (Config::default(), vec![finding(Mark::Error, failure.message)]),
    }
}

/// Rules that cannot be read, and approvals that cover more than somebody may have meant.
fn approvals(world: &World, config: &Config) -> Vec<Finding> {
    let finding = |mark, says| Finding { mark, what: "approvals", says };
    let mut findings = Vec::new();
    match crate::approvals::policy(config) {
        Ok(policy) => findings.extend(idle_rules(world, config, &policy)),
        Err(failure) => findings.push(finding(Mark::Error, failure.message)),
    }
    if config.text("approvals.mode").as_deref() == Some("off") {
        findings.push(finding(Mark::Warning, "approvals.mode is off: dangerous calls run without a question".into()));
    }
    for entry in config.list("command_allowlist").iter().filter(|entry| hermes_guard::policy::is_broad(entry)) {
        let says = format!(
            "command_allowlist has \"{}\", which covers any program and any target; hermes approvals allow COMMAND is narrower",
            visible(entry)
        );
        findings.push(finding(Mark::Warning, says));
    }
    let book = crate::approvals::log_path(world);
    match crate::approvals::read_log(&book) {
        Ok((_, 0)) => {}
        Ok((_, unreadable)) => {
            let lines = plural(unreadable, "line");
            findings.push(finding(Mark::Warning, format!("{lines} of {} cannot be read", world.shown(&book))));
        }
        Err(error) => findings.push(finding(Mark::Error, format!("{}: {error}", world.shown(&book)))),
    }
    findings
}

/// Rules about tools and arguments that nobody has: they would never say anything.
fn idle_rules(world: &World, config: &Config, policy: &Policy) -> Vec<Finding> {
    // What is wrong with the definitions is said where the tools are looked at.
    let Ok(definitions) = session::definitions(world, config) else { return Vec::new() };
    let snapshot = definitions.registry().snapshot();
    let mut findings = Vec::new();
    for rule in policy.rules.iter().filter(|rule| !rule.tool.contains(['*', '?', '['])) {
        // Tools of MCP servers and plugins may come later.
        let later = rule.tool.starts_with("mcp__") || rule.tool.contains('.');
        let says = match (snapshot.get(&rule.tool), &rule.argument) {
            (None, _) if later => continue,
            (None, _) => {
                let hint = did_you_mean(&rule.tool, snapshot.names().map(ToolName::as_str));
                format!("{} is about the tool \"{}\", which is not there{hint}", rule.place, visible(&rule.tool))
            }
            (Some(entry), Some(argument)) => {
                let known = entry.tool.spec().parameters.pointer("/properties").and_then(|known| known.as_object());
                let Some(known) = known.filter(|known| !known.contains_key(argument)) else { continue };
                let known: Vec<&str> = known.keys().map(String::as_str).collect();
                format!(
                    "{} is about \"{}\", which {} does not take; it takes {}",
                    rule.place,
                    visible(argument),
                    rule.tool,
                    known.join(", ")
                )
            }
            (Some(_), None) => continue,
        };
        findings.push(Finding { mark: Mark::Warning, what: "approvals", says });
    }
    findings
}

async fn model(world: &World, config: &Config, config_is_broken: bool) -> Finding {
    let finding = |mark, says| Finding { mark, what: "model", says };
    if config_is_broken {
        return finding(Mark::Warning, "not looked for, because the configuration cannot be read".into());
    }
    match models::choose(world, config, None).await {
        Ok(chosen) => finding(Mark::Fine, format!("{} (chosen, not contacted)", chosen.label)),
        Err(failure) => {
            let first = failure.message.lines().next().unwrap_or_default();
            let ways = "export OPENROUTER_API_KEY, start Ollama, or hermes config set model.base_url URL";
            let says = first.replace("The three shortest ways to get one:", ways);
            finding(Mark::Warning, visible(&says))
        }
    }
}

async fn shell(world: &World, config: &Config) -> Finding {
    let finding = |mark, says| Finding { mark, what: "shell", says };
    let task = match session::task(
        world,
        config,
        &PlaceArgs::default(),
        None,
        &std::sync::Arc::default(),
        &Granted::default(),
    )
    .await
    {
        Ok(task) => task,
        Err(failure) => return finding(Mark::Error, failure.message),
    };
    let command = Command::new("echo $BASH_VERSION", Duration::from_secs(5), 1_000);
    let began = Instant::now();
    match task.environment.run(command, &CancellationToken::new()).await {
        Ok(finished) if finished.how.exit_code() == 0 => {
            let version = finished.output.trim();
            finding(Mark::Fine, format!("bash {version}, a command takes {}", duration(began.elapsed())))
        }
        Ok(finished) => finding(Mark::Error, format!("bash does not work: {}", finished.output.trim())),
        Err(error) => finding(Mark::Error, format!("{error} (apt install bash)")),
    }
}

/// Whether commands can be confined, shown by confining some.
fn sandbox() -> Finding {
    let preflight = preflight();
    let best = preflight.best();
    let (mark, says) = match best {
        Mechanism::None => {
            let first = preflight.probes.iter().find_map(|probe| probe.outcome.as_ref().err());
            let why = first.map_or(String::new(), |why| format!(": {}", visible(why)));
            (Mark::Warning, format!("nothing can confine commands here{why} (hermes sandbox check)"))
        }
        Mechanism::Namespaces | Mechanism::Bubblewrap => {
            (Mark::Fine, format!("{}: files, processes, network and system calls confined", best.name()))
        }
        Mechanism::Landlock | Mechanism::Seatbelt => {
            (Mark::Fine, format!("{}: files, network and system calls confined, not what processes see", best.name()))
        }
    };
    Finding { mark, what: "sandbox", says }
}

/// What is switched on and cannot be used. What is switched off needs nothing and is no trouble.
fn tools(world: &World, config: &Config) -> Result<Finding, Failure> {
    let finding = |mark, says| Ok(Finding { mark, what: "tools", says });
    let definitions = match session::definitions(world, config) {
        Ok(definitions) => definitions,
        Err(failure) => return finding(Mark::Error, failure.message),
    };
    let snapshot = definitions.registry().snapshot();
    // Here somebody waits for the truth.
    definitions.checks().settle(&snapshot, Duration::from_secs(10));
    for surface in config.chosen_surfaces() {
        let selection = session::selection(config, &surface, None, None);
        if let Err(error) = selection.resolve(&snapshot, definitions.checks()) {
            return finding(Mark::Error, session::unknown(config, error).message);
        }
    }
    let selection = session::focused(world, config, session::selection(config, "cli", None, None), None);
    let resolved = match selection.resolve(&snapshot, definitions.checks()) {
        Ok(resolved) => resolved,
        Err(error) => return finding(Mark::Error, session::unknown(config, error).message),
    };
    let mut trouble: Vec<String> = resolved.notes.clone();
    let own = toolset::custom(&snapshot).into_iter().filter_map(|name| toolset::info(&snapshot, &name).ok());
    trouble.extend(own.flat_map(|set| set.notes));
    trouble.sort();
    trouble.dedup();
    trouble.extend(resolved.verdicts.iter().filter_map(|(name, verdict)| match verdict {
        Verdict::Missing { reason, fix, .. } => Some(format!("{name}: {reason} ({fix})")),
        _ => None,
    }));
    let off = resolved.verdicts.iter().filter(|(name, _)| snapshot.get(name).is_some());
    let off: Vec<String> = off
        .filter_map(|(name, verdict)| match verdict {
            Verdict::Removed(by) => Some(format!("{name} by {by}")),
            Verdict::NotSelected => Some(name.clone()),
            _ => None,
        })
        .collect();
    let off = if off.is_empty() { String::new() } else { format!(", {} switched off: {}", off.len(), off.join(", ")) };
    let counts = format!("{} of {} usable{off}", resolved.tools.len(), snapshot.entries().count());
    if trouble.is_empty() {
        finding(Mark::Fine, counts)
    } else {
        finding(Mark::Warning, format!("{counts}; {}", trouble.join("; ")))
    }
}
