//! `hermes`: a conversation.
//!
//! What was typed is never lost: it goes into the history before it is sent. Ctrl-C stops a turn; at the prompt, twice
//! in a row leaves.

use std::io::IsTerminal as _;
use std::sync::Arc;

use hermes_agent::Agent;
use hermes_core::{Asker, CancellationToken};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use crate::args::AgentArgs;
use crate::config::{Config, edit};
use crate::models;
use crate::session;
use crate::terminal::person::TerminalPerson;
use crate::terminal::screen::{Abilities, Screen, Stream};
use crate::terminal::signals::Signals;
use crate::words::{Exit, Failure};
use crate::world::World;

const HELP: &str = "  /tools   the tools the agent can use\n  /new     forget the conversation and begin again\n  /quit    leave (also Ctrl-D)\n  Ctrl-C   stop the turn that is running\n";

pub(crate) async fn run(world: &World, args: AgentArgs) -> Result<Exit, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("a conversation needs a terminal; for a single task: hermes run \"TASK\""));
    }
    let config = Config::load(world)?;
    for warning in &config.warnings {
        eprintln!("hermes: {warning}");
    }
    let chosen = models::choose(world, &config, args.model.as_deref()).await?;
    let screen = Screen::new(Stream::Out, Abilities::of(Stream::Out, world), true, chosen.model.name());
    screen.tick();
    let asker: Arc<dyn Asker> = TerminalPerson::new(Arc::clone(&screen), world);
    let mut agent = session::agent(world, &config, &args, &chosen, Some(Arc::clone(&asker))).await?;
    let mut prompt = Prompt::new(world)?;
    let signals = Signals::listen();
    let cwd = args.cwd.as_deref().map_or_else(|| world.cwd.clone(), |cwd| world.cwd.join(cwd));
    screen.say(&format!(
        "Hermes {} · {} · {} tools · {}\nType a task, / for commands, Ctrl-C to stop a turn.\n\n",
        env!("CARGO_PKG_VERSION"),
        chosen.label,
        agent.tools().count(),
        world.shown(&cwd)
    ));
    let exit = loop {
        match prompt.read(signals.leave()).await {
            Typed::Line(line) => match line.trim() {
                "" => {}
                "/" | "/help" => screen.say(HELP),
                "/quit" | "/exit" => break Exit::Done,
                "/tools" => {
                    let names: Vec<&str> = agent.tools().collect();
                    screen.say(&format!("  {}\n", names.join(" · ")));
                }
                "/new" => {
                    agent.close().await;
                    agent = session::agent(world, &config, &args, &chosen, Some(Arc::clone(&asker))).await?;
                    screen.say("  A new conversation.\n");
                }
                command if command.starts_with('/') && !command.contains(' ') => {
                    screen.say(&format!("  There is no command {command}.\n{HELP}"));
                }
                task => turn(&mut agent, &screen, &signals, task).await,
            },
            Typed::Leave => break Exit::Done,
            Typed::LeaveByInterrupt => break Exit::Interrupted,
        }
    };
    agent.close().await;
    Ok(exit)
}

async fn turn(agent: &mut Agent, screen: &Arc<Screen>, signals: &Signals, task: &str) {
    let cancel = signals.begin();
    screen.say("\n");
    match agent.turn(task, &**screen, &cancel).await {
        Ok(end) => screen.end_of_turn(&end),
        Err(error) => {
            screen.pause();
            let failure = Failure::from(error);
            screen.say(&format!("  {} {}\n  ↑ brings your message back.\n", screen.styled("31", "✗"), failure.message));
        }
    }
    // Nothing runs now, so nothing is stopped twice.
    signals.begin();
    screen.say("\n");
}

enum Typed {
    Line(String),
    Leave,
    LeaveByInterrupt,
}

/// The line a person types on, with its history.
struct Prompt {
    editor: Option<DefaultEditor>,
    history: std::path::PathBuf,
    /// Whether the history could be saved the last time; said once.
    saves: bool,
}

impl Prompt {
    fn new(world: &World) -> Result<Self, Failure> {
        let mut editor =
            DefaultEditor::new().map_err(|error| Failure::new(format!("cannot use this terminal: {error}")))?;
        let history = world.home.join("history");
        // The first session has none.
        let _ = editor.load_history(&history);
        Ok(Self { editor: Some(editor), history, saves: true })
    }

    async fn read(&mut self, leave: &CancellationToken) -> Typed {
        let mut interrupted = false;
        loop {
            // The editor waits for keys, so it lives on a thread of its own meanwhile.
            let Some(mut editor) = self.editor.take() else { return Typed::Leave };
            let read = tokio::task::spawn_blocking(move || {
                let line = editor.readline("› ");
                (editor, line)
            });
            let read = tokio::select! {
                read = read => read,
                () = leave.cancelled() => return Typed::LeaveByInterrupt,
            };
            let Ok((mut editor, line)) = read else { return Typed::Leave };
            match line {
                Ok(line) => {
                    self.remember(&mut editor, &line);
                    self.editor = Some(editor);
                    return Typed::Line(line);
                }
                Err(ReadlineError::Interrupted) if interrupted => return Typed::LeaveByInterrupt,
                Err(ReadlineError::Interrupted) => {
                    println!("  Ctrl-C again leaves.");
                    interrupted = true;
                    self.editor = Some(editor);
                }
                Err(_) => return Typed::Leave,
            }
        }
    }

    fn remember(&mut self, editor: &mut DefaultEditor, line: &str) {
        if line.trim().is_empty() || !matches!(editor.add_history_entry(line), Ok(true)) {
            return;
        }
        let folder = self.history.parent().map_or(Ok(()), edit::private_folder).map_err(|error| error.to_string());
        let saved = folder.and_then(|()| editor.save_history(&self.history).map_err(|error| error.to_string()));
        if let Err(why) = saved
            && std::mem::take(&mut self.saves)
        {
            eprintln!("hermes: the history cannot be saved in {}: {why}", self.history.display());
        }
    }
}
