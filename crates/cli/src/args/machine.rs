//! The commands about the machine: processes, backends, the sandbox.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::JsonArg;

#[derive(Debug, Subcommand)]
pub(crate) enum ProcessesVerb {
    /// List what runs, and what ended in the last half hour.
    #[command(after_help = "Examples:\n  hermes processes list\n  hermes processes list --all --json")]
    List {
        /// Also what ended earlier, as long as its record is kept.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Print what a process printed, without escape sequences; on a terminal its colours stay. The bytes as they came
    /// are in the file that `list --json` names.
    #[command(
        after_help = "Examples:\n  hermes processes log 3f2a\n  hermes processes log 3f2a --lines 20\n  hermes processes log 3f2a --follow"
    )]
    Log {
        /// The process: its name or the beginning of what follows proc_ in it.
        id: String,
        /// Only the last N lines.
        #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        lines: Option<u32>,
        /// Print the last 10 lines (or N) and then what comes, until the process ends. Ctrl-C leaves it alone.
        #[arg(long, short)]
        follow: bool,
    },
    /// End processes with everything they started. Exit code 1 if something would not go.
    #[command(after_help = "Example:\n  hermes processes kill 3f2a 91c0")]
    Kill {
        /// The processes: names or beginnings of what follows proc_ in them.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// End what nobody looks after any more, and take away what crashes left.
    #[command(after_help = "Example:\n  hermes processes reap")]
    Reap,
    /// Take a process over: your keys go to it, its screen is yours. Ctrl-] leaves; it runs on.
    #[command(after_help = "Example:\n  hermes processes attach 3f2a")]
    Attach {
        /// The process: its name or the beginning of what follows proc_ in it.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnvVerb {
    /// List the backends, what they can do, and which one is chosen (terminal.backend).
    #[command(after_help = "Example:\n  hermes env list --json")]
    List {
        #[command(flatten)]
        json: JsonArg,
    },
    /// Check that a backend keeps every promise, by running commands there in a temporary folder. It takes a while.
    /// Exit code 1 if something is not as it should be.
    #[command(after_help = "Examples:\n  hermes env test\n  hermes env test local --json")]
    Test {
        /// The backend; the chosen one if left out.
        name: Option<String>,
        #[command(flatten)]
        json: JsonArg,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxVerb {
    /// Try every way to confine a command, and say what holds here. Exit code 1 if none works.
    #[command(after_help = "Example:\n  hermes sandbox check")]
    Check {
        #[command(flatten)]
        json: JsonArg,
    },
    /// Run a command of yours in the sandbox: it changes only the current directory, sees no keys, reaches no network.
    /// Ends with the exit code of the command; 125 if the sandbox could not be set up, 126 or 127 if the command could
    /// not be run or found.
    #[command(
        after_help = "Examples:\n  hermes sandbox run -- npm test\n  hermes sandbox run --network --writable ~/.cache/pip -- pip install requests\n  hermes sandbox run --strict -- ./untrusted.sh"
    )]
    Run(SandboxRunArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SandboxRunArgs {
    /// Show only programs, libraries, /etc and the writable folders; the home folder is empty and forgotten at the end.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Let the network be reached.
    #[arg(long)]
    pub(crate) network: bool,
    /// Let this folder be changed as well.
    #[arg(long, value_name = "DIR")]
    pub(crate) writable: Vec<PathBuf>,
    /// Hide this path as well. Keys and credentials of the home folder and the agent's own home are always hidden.
    #[arg(long, value_name = "PATH")]
    pub(crate) hide: Vec<PathBuf>,
    /// The command and its arguments.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}
