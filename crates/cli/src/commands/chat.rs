//! `hermes`: a conversation.
//!
//! What was typed is never lost: it goes into the history before it is sent. Ctrl-C stops a turn; at the prompt, twice
//! in a row leaves.

use std::io::IsTerminal as _;
use std::sync::Arc;

use hermes_agent::Agent;
use hermes_core::{Asker, CancellationToken};
use hermes_exec::checkpoints::TakenBack;
use hermes_runtime::Profile;
use rustyline::error::ReadlineError;
use rustyline::{DefaultEditor, ExternalPrinter as _};

use crate::args::{AgentArgs, Approve};
use crate::commands::checkpoints;
use crate::config::{Config, edit};
use crate::models;
use crate::session::{self, Follow, Present};
use crate::terminal::out;
use crate::terminal::person::TerminalPerson;
use crate::terminal::screen::{Abilities, Screen, Stream};
use crate::terminal::signals::Signals;
use crate::terminal::text::{one_line, visible, wrapped};
use crate::words::{Exit, Failure};
use crate::world::World;

const HELP: &str = "  /tools   the tools the agent can use\n  /undo    put the files back as they were before the last turn that changed some\n  /redo    take an undo back\n  /new     forget the conversation and begin again\n  /quit    leave (also Ctrl-D)\n  Ctrl-C   stop the turn that is running\n";

pub(crate) async fn run(world: &World, args: AgentArgs) -> Result<Exit, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("a conversation needs a terminal; for a single task: hermes run \"TASK\""));
    }
    let mut follow = Follow::new(world)?;
    let chosen = models::choose(world, follow.config(), args.model.as_deref()).await?;
    let screen = Screen::new(Stream::Out, Abilities::of(Stream::Out, world), true, chosen.model.name());
    screen.tick();
    let asker: Arc<dyn Asker> = TerminalPerson::new(Arc::clone(&screen), world);
    let tools = session::tools_in_words(world, follow.config(), &args, follow.definitions())?;
    let new_agent = async |follow: &Follow| {
        let present = Present { asker: Some(Arc::clone(&asker)), hears_news: true };
        let definitions = Arc::clone(follow.definitions());
        session::agent(world, follow.config(), &args, &chosen, present, definitions, follow.guard()).await
    };
    let mut agent = new_agent(&follow).await?;
    let mut prompt = Prompt::new(world)?;
    let signals = Signals::listen();
    let cwd = args.place.cwd.as_deref().map_or_else(|| world.cwd.clone(), |cwd| world.cwd.join(cwd));
    screen.say(&format!(
        "Hermes {} · {} · {tools} · {}{}\nType a task, / for commands, Ctrl-C to stop a turn.\n\n",
        env!("CARGO_PKG_VERSION"),
        chosen.label,
        world.shown(&cwd),
        match args.approve {
            Some(Approve::All) => " · everything runs without asking",
            Some(Approve::None) => " · everything that would need a yes is refused",
            Some(Approve::Smart) => " · a model looks at what is dangerous first",
            Some(Approve::Rehearse) => " · what is dangerous is rehearsed first",
            Some(Approve::Ask) => "",
            None => match follow.config().text("approvals.mode").as_deref() {
                Some("off") => " · everything runs without asking (approvals.mode)",
                Some("rehearse") => " · what is dangerous is rehearsed first",
                Some("smart") => " · a model looks at what is dangerous first",
                _ => "",
            },
        }
    ));
    for note in agent.notes() {
        screen.say(&format!("  ! {}\n", wrapped(&visible(note), screen.columns(), 4).trim_start()));
    }
    let exit = loop {
        match prompt.read(&signals, &mut agent).await {
            Typed::Line(line) => match command(line.trim()) {
                Some("") => {}
                Some("/" | "/help") => screen.say(HELP),
                Some("/quit" | "/exit" | "quit" | "exit") => break Exit::Done,
                Some("/tools") => {
                    follow_config(&mut follow, world, &args, chosen.profile, &mut agent, &screen);
                    let names: Vec<&str> = agent.tools().collect();
                    screen.say(&format!("{}\n", wrapped(&names.join(" · "), screen.columns(), 2)));
                }
                Some(word @ ("/undo" | "/redo")) => {
                    let stop = signals.begin();
                    screen.resume(Some("putting files back".into()));
                    let taken = taken_back(world, follow.config(), word == "/redo", &mut agent, stop).await;
                    screen.pause();
                    let said = match taken {
                        Ok(lines) => lines.join("\n  "),
                        Err(failure) => format!("! {}", failure.message),
                    };
                    screen.say(&format!("  {said}\n"));
                }
                Some("/new") => {
                    follow_config(&mut follow, world, &args, chosen.profile, &mut agent, &screen);
                    match new_agent(&follow).await {
                        Ok(new) => {
                            agent.close().await;
                            agent = new;
                            screen.say("  A new conversation.\n");
                        }
                        Err(failure) => {
                            let message = format!("the conversation goes on: {}", visible(&failure.message));
                            screen.say(&format!("  ! {}\n", wrapped(&message, screen.columns(), 4).trim_start()));
                        }
                    }
                }
                Some(other) => screen.say(&format!("  There is no command {}.\n{HELP}", one_line(other, 60))),
                None => {
                    follow_config(&mut follow, world, &args, chosen.profile, &mut agent, &screen);
                    turn(&mut agent, &screen, &signals, line.trim()).await;
                }
            },
            Typed::Leave => break Exit::Done,
            Typed::LeaveByInterrupt => break Exit::Interrupted,
        }
    };
    agent.close().await;
    Ok(exit)
}

/// What `hermes tools disable` did elsewhere counts here too. A file with a mistake in it changes nothing and is said.
fn follow_config(
    follow: &mut Follow,
    world: &World,
    args: &AgentArgs,
    profile: Profile,
    agent: &mut Agent,
    screen: &Arc<Screen>,
) {
    let said = match follow.up_to_date(world, args, profile, agent) {
        Ok(None) => return,
        Ok(Some(said)) => said,
        Err(failure) => format!("the tools stay as they are: {}", failure.message),
    };
    screen.say(&format!("  ! {}\n", wrapped(&visible(&said), screen.columns(), 4).trim_start()));
}

/// Takes back what the last turn of this conversation changed, or the last undo, and lets the model know.
async fn taken_back(
    world: &World,
    config: &Config,
    again: bool,
    agent: &mut Agent,
    stop: CancellationToken,
) -> Result<Vec<String>, Failure> {
    let (checkpoints, task) = (checkpoints::kept(world, config), agent.task().to_owned());
    let work = move || checkpoints.take_back(&task, again, &|| stop.is_cancelled());
    let taken = tokio::task::spawn_blocking(work).await.map_err(|error| Failure::new(error.to_string()))??;
    let (checkpoint, changes, gone) = match taken {
        TakenBack::Done { checkpoint, changes, gone } => (checkpoint, changes, gone),
        TakenBack::Nothing => {
            let what = if again { "There is no undo to take back." } else { "There is nothing to take back." };
            return Ok(vec![what.to_owned(), "hermes checkpoints list --all shows what can be put back.".to_owned()]);
        }
        TakenBack::Unclosed(checkpoint) => {
            let (what, word) = if again { ("undo", "/redo") } else { ("turn", "/undo") };
            return Ok(vec![
                format!("What that {what} left was not kept, so that nobody can tell its changes from yours."),
                format!("hermes checkpoints diff {0} shows both, restore {0} takes both back.", checkpoint.id),
                format!("{word} once more goes on with the {what} before it."),
            ]);
        }
    };
    let head = format!("{} ({}):", if again { "Done again" } else { "Taken back" }, visible(&checkpoint.reason));
    let lines = checkpoints::told(world, &head, &checkpoint.project, &changes, &gone);
    if !gone.done.is_empty() {
        let verb = if again { "has done again" } else { "has taken back" };
        // A name of a file may hold anything, and this is read as a message of the user.
        let paths: Vec<String> =
            gone.done.iter().take(20).map(|path| path.to_string_lossy().escape_debug().to_string()).collect();
        agent.tell(format!(
            "The user {verb} the changes of files that belong to: {}. Read a file again before you rely on it: {}{}",
            checkpoint.reason,
            paths.join(", "),
            if gone.done.len() > 20 { ", …" } else { "" }
        ));
    }
    Ok(lines)
}

async fn turn(agent: &mut Agent, screen: &Arc<Screen>, signals: &Signals, task: &str) {
    let cancel = signals.begin();
    screen.say("\n");
    match agent.turn(task, &**screen, &cancel).await {
        Ok(end) => screen.end_of_turn(&end),
        Err(error) => {
            screen.abandon();
            let failure = Failure::from(error);
            let message = wrapped(&visible(&failure.message), screen.columns(), 4);
            let mark = screen.styled("31", "✗");
            screen.say(&format!("  {mark} {}\n  ↑ brings your message back.\n", message.trim_start()));
        }
    }
    screen.say("\n");
}

/// What was typed, if it is for us and not for the model: a word that leaves, or anything that begins like a command. A
/// path such as `/etc/hosts is …` is for the model.
fn command(line: &str) -> Option<&str> {
    let word = line.split_whitespace().next().unwrap_or_default();
    let is_known = matches!(word, "/" | "/help" | "/quit" | "/exit" | "/tools" | "/new" | "/undo" | "/redo");
    let is_alone = word == line;
    match word {
        "" => Some(""),
        "quit" | "exit" if is_alone => Some(word),
        _ if is_known && is_alone => Some(word),
        // A command with something behind it is a slip that should not cost a request.
        _ if is_known => Some(line),
        _ if word.starts_with('/') && is_alone && !word[1..].contains('/') => Some(word),
        _ => None,
    }
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

    /// Waits for a line. Ctrl-C is a key while the editor has the terminal and a signal in the moments between; either
    /// way the second one in a row leaves.
    async fn read(&mut self, signals: &Signals, agent: &mut Agent) -> Typed {
        let mut interrupted = false;
        let hint = || {
            // A terminal that is gone needs no hint.
            let _ = out::line("\r  Ctrl-C again leaves.");
        };
        loop {
            let mut idle = signals.begin();
            // The editor waits for keys, so it lives on a thread of its own meanwhile. Where a request to leave came
            // first it is not started: nothing would ever end it.
            if signals.leave().is_cancelled() {
                return Typed::LeaveByInterrupt;
            }
            let Some(mut editor) = self.editor.take() else { return Typed::Leave };
            // Without one, news waits until the next turn.
            let mut printer = editor.create_external_printer().ok();
            let mut read = tokio::task::spawn_blocking(move || {
                let line = editor.readline("› ");
                (editor, line)
            });
            let never = CancellationToken::new();
            let read = loop {
                tokio::select! {
                    read = &mut read => break read,
                    () = signals.leave().cancelled() => return Typed::LeaveByInterrupt,
                    () = agent.until_news(&never), if printer.is_some() => {
                        for line in agent.take_news().await {
                            let line = format!("  ⚙️ {}\n", one_line(&visible(&line), 200));
                            if printer.as_mut().is_some_and(|printer| printer.print(line).is_err()) {
                                printer = None;
                            }
                        }
                    }
                    () = idle.cancelled() => {
                        if interrupted {
                            return Typed::LeaveByInterrupt;
                        }
                        interrupted = true;
                        idle = signals.begin();
                        hint();
                    }
                }
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
                    interrupted = true;
                    self.editor = Some(editor);
                    hint();
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
            out::error(&format!("hermes: the history cannot be saved in {}: {why}", self.history.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn what_is_for_us_never_reaches_the_model_and_paths_do() {
        for line in ["/new", "/new now", "/quit extra", "exit", "quit", "/nope", ""] {
            assert!(command(line).is_some(), "{line}");
        }
        for line in ["/etc/hosts says what?", "/etc/hosts", "exit the loop early", "explain /new"] {
            assert!(command(line).is_none(), "{line}");
        }
    }
}
