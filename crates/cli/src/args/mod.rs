//! The command line: `hermes NOUN VERB`, and two short cuts for the thing most people want.
#![allow(clippy::doc_markdown, reason = "these comments are the help that people read in a terminal")]

mod machine;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hermes_runtime::ApprovalMode;
use serde::Deserialize;

pub(crate) use machine::{EnvVerb, ProcessesVerb, SandboxRunArgs, SandboxVerb};

/// An agent with real tools, and the tools by themselves.
#[derive(Debug, Parser)]
#[command(
    name = "hermes",
    max_term_width = 80,
    version,
    about = "An agent with real tools. Without a command it opens a conversation.",
    after_help = "Examples:\n  hermes                                   talk\n  hermes run \"why does the build fail?\"    one task, the answer on standard output\n  hermes tour                              see the tools at work, without a model\n  hermes tools call calculate '{\"expression\": \"2^10\"}'\n\nExit codes: 0 done, 1 failed, 2 usage, 3 done in part, 4 never allowed, 130 interrupted.",
    subcommand_negates_reqs = true
)]
pub(crate) struct Cli {
    /// Do one task and print the answer, like `hermes run`.
    #[arg(short = 'q', visible_short_alias = 'z', value_name = "TASK")]
    pub(crate) task: Option<String>,

    /// With -q: print one JSON event per line.
    #[arg(long, requires = "task")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) agent: AgentArgs,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk with the agent (also without any command).
    #[command(after_help = "Examples:\n  hermes\n  hermes chat --model gpt-5 --toolsets file,math")]
    Chat(AgentArgs),
    /// Do one task and print the answer.
    #[command(
        after_help = "Examples:\n  hermes run \"which tests cover src/price.py?\"\n  hermes run --approve all \"run the tests and fix what fails\"\n  git diff | hermes run\n  hermes run --json \"…\" | jq -r 'select(.type==\"answer\").text'"
    )]
    Run(RunArgs),
    /// Watch every tool at work in a scratch folder. The model is scripted, the calls are real.
    #[command(after_help = "Example:\n  hermes tour")]
    Tour,
    /// The tools by themselves; without a command, a checklist of what is on.
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "Examples:\n  hermes tools                       tick what is on\n  hermes tools list\n  hermes tools disable web --platform telegram"
    )]
    Tools {
        /// With the checklist: for which surface.
        #[arg(long, value_name = "NAME", default_value = "cli")]
        platform: String,
        #[command(subcommand)]
        verb: Option<ToolsVerb>,
    },
    /// Named sets of tools.
    Toolsets {
        #[command(subcommand)]
        verb: ToolsetsVerb,
    },
    /// What is asked about, what is approved for good, and who said yes to what.
    Approvals {
        #[command(subcommand)]
        verb: ApprovalsVerb,
    },
    /// What files were before a turn changed them, and the way back.
    Checkpoints {
        #[command(subcommand)]
        verb: CheckpointsVerb,
    },
    /// What was rehearsed and committed, and the way back from it.
    Rehearsals {
        #[command(subcommand)]
        verb: RehearsalsVerb,
    },
    /// What runs in the background, in every conversation.
    Processes {
        #[command(subcommand)]
        verb: ProcessesVerb,
    },
    /// The places where commands can run.
    Env {
        #[command(subcommand)]
        verb: EnvVerb,
    },
    /// The wall around commands.
    Sandbox {
        #[command(subcommand)]
        verb: SandboxVerb,
    },
    /// The configuration.
    Config {
        #[command(subcommand)]
        verb: ConfigVerb,
    },
    /// Check whether everything is in place.
    #[command(
        after_help = "Example:\n  hermes doctor --json\n\nExit code 1 if something is broken; warnings do not count."
    )]
    Doctor(JsonArg),
    /// What sudo starts to get a password.
    #[command(name = crate::sudo::ASK, hide = true)]
    SudoAsk {
        /// Where Hermes listens.
        socket: PathBuf,
        /// What sudo would show.
        #[arg(default_value = "")]
        prompt: String,
    },
    /// Print a completion script for a shell.
    #[command(after_help = "Example:\n  hermes completions bash > ~/.local/share/bash-completion/completions/hermes")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// What an agent may use and how far it may go.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentArgs {
    /// The model's name, or script:FILE to play prepared turns.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Exactly these toolsets, separated by commas.
    #[arg(short, long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) toolsets: Option<Vec<String>>,
    /// Toolsets that are off; this wins over everything else.
    #[arg(long, value_name = "C", value_delimiter = ',')]
    pub(crate) disable: Option<Vec<String>>,
    /// What happens to dangerous calls: you are asked (ask), a model looks first (smart), you see
    /// first what they did (rehearse), they pass (all), or they are
    /// refused (none). Left out, approvals.mode decides. What must never run is refused in any case.
    #[arg(long, value_name = "ask|smart|rehearse|all|none", hide_possible_values = true)]
    pub(crate) approve: Option<Approve>,
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Requests to the model that one task may make.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,
}

impl AgentArgs {
    /// These, and where nothing is said, `outer`.
    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            model: self.model.or(outer.model),
            toolsets: self.toolsets.or(outer.toolsets),
            disable: self.disable.or(outer.disable),
            approve: self.approve.or(outer.approve),
            place: self.place.or(outer.place),
            max_turns: self.max_turns.or(outer.max_turns),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The task; read from standard input if left out or `-`.
    pub(crate) task: Option<String>,
    /// Print one JSON event per line: turn, text, tool_call, tool_result, retry, budget_spent, answer, usage, error.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
}

impl RunArgs {
    pub(crate) fn with(self, outer: AgentArgs) -> Self {
        Self { agent: self.agent.or(outer), ..self }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    #[default]
    Ask,
    Smart,
    Rehearse,
    All,
    None,
}

impl From<Approve> for ApprovalMode {
    fn from(approve: Approve) -> Self {
        match approve {
            Approve::Ask => Self::Ask,
            Approve::Smart => Self::Smart,
            Approve::Rehearse => Self::Rehearse,
            Approve::All => Self::All,
            Approve::None => Self::None,
        }
    }
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct JsonArg {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which tools are in sight.
#[derive(Args, Clone, Debug)]
pub(crate) struct SelectionArgs {
    /// The surface whose defaults hold.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub(crate) platform: String,
    /// Exactly these toolsets, separated by commas.
    #[arg(short, long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) toolsets: Option<Vec<String>>,
    /// Toolsets that are off; this wins over everything else.
    #[arg(long, value_name = "C", value_delimiter = ',')]
    pub(crate) disable: Option<Vec<String>>,
}

/// What is switched.
#[derive(Args, Clone, Debug)]
pub(crate) struct SwitchArgs {
    /// Toolsets or tools.
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
    /// For which surface.
    #[arg(long, value_name = "NAME", default_value = "cli")]
    pub(crate) platform: String,
    #[command(flatten)]
    pub(crate) json: JsonArg,
}

/// Where the commands of a task run.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlaceArgs {
    /// Where the session starts; the current directory if left out.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// What runs the commands (hermes env list); terminal.backend if left out.
    #[arg(long, value_name = "NAME")]
    pub(crate) backend: Option<String>,
    /// The wall around the commands; terminal.sandbox if left out.
    #[arg(long, value_name = "off|workspace|strict", hide_possible_values = true)]
    pub(crate) sandbox: Option<Walled>,
}

impl PlaceArgs {
    /// These, and where nothing is said, `outer`.
    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            cwd: self.cwd.or(outer.cwd),
            backend: self.backend.or(outer.backend),
            sandbox: self.sandbox.or(outer.sandbox),
        }
    }
}

/// The wall around commands, by the names that the configuration has for it, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Walled {
    Off,
    Workspace,
    Strict,
}

/// Where and how calls are made.
#[derive(Args, Clone, Debug)]
pub(crate) struct CallArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// What happens to dangerous calls: you are asked (ask), a model looks first (smart), they pass (all), or they are
    /// refused (none). Left out, approvals.mode decides. What must never run is refused in any case.
    #[arg(long, value_name = "ask|smart|all|none", hide_possible_values = true)]
    pub(crate) approve: Option<Approve>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsVerb {
    /// List the toolsets and their tools: what is on, what is not, and why.
    #[command(
        after_help = "Examples:\n  hermes tools list\n  hermes tools list --platform telegram --all\n  hermes tools list --json"
    )]
    List {
        #[command(flatten)]
        selection: SelectionArgs,
        /// Also why each tool is off, and what is wanted and not in this build.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Show one tool: what it does, what it takes, how it is used.
    #[command(after_help = "Example:\n  hermes tools show read_file")]
    Show {
        /// The tool's name.
        name: String,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Switch toolsets or tools on, in config.yaml. A conversation that is running follows with its next turn. What
    /// agent.disabled_toolsets names is taken off that list, which counts for every surface.
    #[command(after_help = "Examples:\n  hermes tools enable terminal\n  hermes tools enable web --platform telegram")]
    Enable(SwitchArgs),
    /// Switch toolsets or tools off, in config.yaml. A conversation that is running follows with its next turn.
    #[command(after_help = "Examples:\n  hermes tools disable terminal\n  hermes tools disable patch write_file")]
    Disable(SwitchArgs),
    /// Make one call and print what a model would get. Exit code 0 if the tool answered, 4 if it can never run, else 1.
    #[command(
        after_help = "Examples:\n  hermes tools call search_files '{\"pattern\": \"fn main\"}'\n  hermes tools call terminal '{\"command\": \"make test\"}' --approve all"
    )]
    Call {
        /// The tool's name.
        name: String,
        /// The arguments: a JSON object.
        #[arg(default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        call: CallArgs,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Answer calls from standard input, one JSON object a line, until it ends.
    #[command(
        after_help = "Example:\n  echo '{\"id\": 1, \"tool\": \"calculate\", \"args\": {\"expression\": \"6*7\"}}' | hermes tools exec\n\nIn:  {\"id\": …, \"task\": \"t1\", \"tool\": \"read_file\", \"args\": {…} or \"raw text\"};\n     the first call of a task may say where it runs: \"cwd\", \"backend\", \"sandbox\" (as strong as here or stronger)\nOut: {\"id\": …, \"ok\": true, \"status\": \"ok\", \"result\": \"what the model gets\", \"ms\": 0.4}, in the order of the input; state is kept per task.\nA task that is named is one conversation: what it was shown and has not changed is not shown again"
    )]
    Exec {
        #[command(flatten)]
        call: CallArgs,
    },
    /// Find tools by what they do.
    #[command(
        after_help = "Examples:\n  hermes tools search \"look into a file\"\n  hermes tools search \"what is the weather\" --catalog tools.jsonl\n  hermes tools search --catalog tools.jsonl --jsonl < questions.jsonl\n\nA catalog has one tool a line: {\"name\": …, \"description\": …, \"parameters\": {…}}.\nIn:  {\"id\": …, \"query\": …}\nOut: {\"id\": …, \"hits\": [\"name\", …], \"ms\": 0.1}, in the order of the input"
    )]
    Search {
        /// What you look for, in your own words.
        #[arg(required_unless_present = "jsonl", conflicts_with = "jsonl", num_args = 1..)]
        question: Vec<String>,
        /// How many to show.
        #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Search the tools in this file; left out, those of this build.
        #[arg(long, value_name = "FILE")]
        catalog: Option<PathBuf>,
        /// Answer questions from standard input, one JSON object a line.
        #[arg(long, conflicts_with = "json")]
        jsonl: bool,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Print the array of definitions that would be sent to a model.
    #[command(after_help = "Example:\n  hermes tools definitions --toolsets file,math --json")]
    Definitions {
        #[command(flatten)]
        selection: SelectionArgs,
        /// Whose dialect.
        #[arg(long, value_enum, default_value = "openai")]
        provider: Provider,
        #[command(flatten)]
        json: JsonArg,
    },
}

/// Whose dialect definitions are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    /// Chat Completions.
    Openai,
    /// The Responses API.
    OpenaiResponses,
    /// The Messages API.
    Anthropic,
    /// Function declarations.
    Gemini,
    /// Servers that make grammars of schemas, such as llama.cpp.
    Local,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointsVerb {
    /// List the checkpoints of the project that is here, the latest last.
    #[command(after_help = "Examples:\n  hermes checkpoints list\n  hermes checkpoints list --all")]
    List {
        /// Those of every project.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Show what has changed since a checkpoint, whoever changed it.
    #[command(
        after_help = "Examples:\n  hermes checkpoints diff\n  hermes checkpoints diff 1fp3 src\n\nFiles that hold secrets are named and not quoted."
    )]
    Diff {
        /// Its name or the beginning of it; the latest of this project if left out.
        id: Option<String>,
        /// Only these files and folders.
        paths: Vec<PathBuf>,
    },
    /// Put the files back as they were at a checkpoint, whoever changed them since; this can be taken back as well.
    #[command(
        after_help = "Examples:\n  hermes checkpoints restore 1fp3\n  hermes checkpoints restore 1fp3 src/main.rs\n\nExit code 3 if something could not be put back."
    )]
    Restore {
        /// Its name or the beginning of it.
        id: String,
        /// Only these files and folders.
        paths: Vec<PathBuf>,
    },
    /// Give up the checkpoints that are too old or too many. Happens by itself once a day.
    #[command(after_help = "Example:\n  hermes checkpoints prune")]
    Prune,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RehearsalsVerb {
    /// List what can be taken back, the latest last.
    #[command(after_help = "Example:\n  hermes rehearsals list")]
    List {
        #[command(flatten)]
        json: JsonArg,
    },
    /// Put the files back as they were before; refused if they were changed since.
    #[command(after_help = "Examples:\n  hermes rehearsals undo\n  hermes rehearsals undo 3f2a")]
    Undo {
        /// Its name or the beginning of it; the latest if left out.
        name: Option<String>,
    },
    /// Give up the way back.
    #[command(after_help = "Examples:\n  hermes rehearsals discard\n  hermes rehearsals discard --all")]
    Discard {
        /// Its name or the beginning of it; the latest if left out.
        name: Option<String>,
        /// All of them.
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
}

#[derive(Subcommand, Debug)]
pub(crate) enum ToolsetsVerb {
    /// List all toolsets.
    #[command(after_help = "Example:\n  hermes toolsets list")]
    List {
        #[command(flatten)]
        json: JsonArg,
    },
    /// Show what is in a toolset.
    #[command(after_help = "Example:\n  hermes toolsets show debugging")]
    Show {
        /// The toolset's name.
        name: String,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Print the tools that a choice of toolsets and tools gives; -NAME takes away.
    #[command(
        after_help = "Examples:\n  hermes toolsets resolve \"web,file,-terminal\" --why\n  hermes toolsets resolve debugging,-patch"
    )]
    Resolve {
        /// Toolsets and tools, separated by commas.
        #[arg(value_name = "A,B,-C", allow_hyphen_values = true)]
        names: String,
        /// Say of every tool why it is in or out.
        #[arg(long)]
        why: bool,
        #[command(flatten)]
        json: JsonArg,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ApprovalsVerb {
    /// Judge a command without running it. Exit code 0 safe, 3 dangerous, 4 it can never run.
    #[command(
        after_help = "Examples:\n  hermes approvals check \"rm -rf build && make\"\n  hermes approvals check 'cd / && rm -rf *' --json\n  echo '{\"cmd\": \"git push --force\"}' | hermes approvals check --jsonl"
    )]
    Check {
        /// The command, as bash would get it.
        #[arg(required_unless_present = "jsonl", conflicts_with = "jsonl")]
        command: Option<String>,
        /// Where it would run; the current directory if left out. This is also the workspace.
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
        /// Read {"cmd": …, "cwd": …} lines and answer each with its verdict and findings.
        #[arg(long, conflicts_with = "json")]
        jsonl: bool,
        #[command(flatten)]
        json: JsonArg,
    },
    /// List what is approved for good and which rules there are.
    #[command(after_help = "Example:\n  hermes approvals list")]
    List {
        #[command(flatten)]
        json: JsonArg,
    },
    /// Approve for good what a command does: each effect on its class of targets by its program.
    #[command(
        after_help = "Examples:\n  hermes approvals allow 'rm -rf build'\n  hermes approvals allow 'rm delete in:/home/me/project'"
    )]
    Allow {
        /// A command, or an entry as `list` shows it.
        what: String,
        /// Where the command would run; the current directory if left out.
        #[arg(long, value_name = "DIR")]
        cwd: Option<PathBuf>,
    },
    /// Take back what is approved for good.
    #[command(
        after_help = "Examples:\n  hermes approvals revoke 2\n  hermes approvals revoke 'rm delete in:/home/me/project'"
    )]
    Revoke {
        /// The number that `list` shows, or the entry itself.
        what: String,
    },
    /// Check the rules of the configuration against their examples.
    #[command(after_help = "Example:\n  hermes approvals test")]
    Test,
    /// Show what was asked, who answered what, when and why.
    #[command(after_help = "Examples:\n  hermes approvals log\n  hermes approvals log --last 3 --json")]
    Log {
        /// Only the newest ones.
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: usize,
        #[command(flatten)]
        json: JsonArg,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigVerb {
    /// Print where the configuration file is.
    #[command(after_help = "Example:\n  $EDITOR \"$(hermes config path)\"")]
    Path,
    /// Print one value, or all of them.
    #[command(after_help = "Examples:\n  hermes config get agent.max_turns\n  hermes config get --json")]
    Get {
        /// For example agent.max_turns; all keys if left out.
        key: Option<String>,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Set one value; everything else in the file stays.
    #[command(
        after_help = "Examples:\n  hermes config set model.base_url http://127.0.0.1:11434/v1\n  hermes config set agent.disabled_toolsets '[terminal]'\n  hermes config set model.api_key -"
    )]
    Set {
        /// For example agent.max_turns.
        key: String,
        /// The value, as YAML; `-` reads it from standard input, so that a secret stays out of the shell's history.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
}
