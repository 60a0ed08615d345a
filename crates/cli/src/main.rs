//! The binary: the only crate that knows all the others, and the only one that looks at the process around it.
//!
//! [`world`] reads the environment once; [`config`] reads the configuration; [`session`] joins registry, environment and
//! dispatcher; each command has a file in [`commands`]; [`terminal`] is everything a person sees. [`words`] is the one
//! place where an error becomes a sentence and an exit code.

mod approvals;
mod args;
mod commands;
mod config;
#[cfg(test)]
mod entries;
mod env_file;
mod granted;
mod models;
mod network;
mod session;
mod sudo;
mod terminal;
mod words;
mod workspace;
mod world;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::{AgentArgs, Cli, Command};
use crate::terminal::out;
use crate::terminal::signals::Terminal;
use crate::words::{Exit, Failure};
use crate::world::World;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(said) => {
            // Help and version arrive here too; they are no errors.
            let is_help = matches!(said.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
            if said.use_stderr() && !is_help {
                out::error(&format!("hermes: {}", words::usage(&said)));
                return Exit::Usage.into();
            }
            let _ = said.print();
            return if is_help { Exit::Usage } else { Exit::Done }.into();
        }
    };
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.message.is_empty() {
                // The message may quote a server or a file.
                out::error(&format!("hermes: {}", terminal::text::visible(&failure.message)));
            }
            failure.exit.into()
        }
    }
}

fn run(cli: Cli) -> Result<Exit, Failure> {
    let world = World::of_this_process()?;
    if cli.task.is_some() && cli.command.is_some() {
        return Err(Failure::usage("-q TASK does a task by itself and takes no command beside it"));
    }
    let takes_agent = matches!(cli.command, None | Some(Command::Run(_) | Command::Chat(_)));
    if !takes_agent && cli.agent != AgentArgs::default() {
        return Err(Failure::usage("the options before the command are those of an agent; this command has none"));
    }
    match cli.command {
        Some(Command::Config { verb }) => commands::config::run(&world, verb),
        Some(Command::Checkpoints { verb }) => commands::checkpoints::run(&world, verb),
        Some(Command::Rehearsals { verb }) => commands::rehearsals::run(&world, verb),
        Some(Command::Approvals { verb }) => commands::approvals::run(&world, verb),
        Some(Command::Processes { verb }) => with_runtime(commands::processes::run(&world, verb)),
        Some(Command::Env { verb }) => with_runtime(commands::env::run(&world, verb)),
        Some(Command::Sandbox { verb }) => commands::sandbox::run(&world, &verb),
        Some(Command::SudoAsk { socket, prompt }) => sudo::ask(&socket, &prompt),
        Some(Command::Completions { shell }) => commands::completions::run(shell),
        Some(Command::Run(args)) => with_runtime(commands::run::run(&world, args.with(cli.agent))),
        Some(Command::Tour) => with_runtime(commands::tour::run(&world)),
        Some(Command::Tools { platform, verb }) => with_runtime(commands::tools::run(&world, &platform, verb)),
        Some(Command::Toolsets { verb }) => commands::toolsets::run(&world, verb),
        Some(Command::Doctor(args)) => with_runtime(commands::doctor::run(&world, args)),
        Some(Command::Chat(agent)) => with_runtime(commands::chat::run(&world, agent.or(cli.agent))),
        None => match cli.task {
            Some(task) => {
                let args = args::RunArgs { task: Some(task), json: cli.json, agent: cli.agent };
                with_runtime(commands::run::run(&world, args))
            }
            None => with_runtime(commands::chat::run(&world, cli.agent)),
        },
    }
}

/// One thread drives everything; work that blocks goes to helpers of that runtime.
fn with_runtime(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let terminal = Terminal::remember();
    let done = runtime.block_on(work);
    // A thread that still waits for a key press must not keep the process alive, nor the terminal in its hands.
    runtime.shutdown_background();
    terminal.restore();
    done
}
