//! `hermes run "TASK"`: one task, the answer on standard output, everything else on standard error.

use std::io::{IsTerminal as _, Read as _};
use std::sync::Arc;

use hermes_agent::{EndReason, Listener, TurnEnd};
use hermes_core::Asker;

use crate::args::RunArgs;
use crate::config::Config;
use crate::models::{self, Chosen};
use crate::session;
use crate::terminal::events::JsonEvents;
use crate::terminal::out;
use crate::terminal::person::{ScriptedPerson, TerminalPerson};
use crate::terminal::screen::{Abilities, Screen, Stream};
use crate::terminal::signals::Signals;
use crate::terminal::text::visible;
use crate::words::{Exit, Failure, why_partial};
use crate::world::World;

pub(crate) async fn run(world: &World, args: RunArgs) -> Result<Exit, Failure> {
    let as_json = args.json;
    let ended = one_task(world, args).await;
    if let Err(failure) = &ended
        && as_json
    {
        JsonEvents::failed(&failure.message);
    }
    ended
}

async fn one_task(world: &World, args: RunArgs) -> Result<Exit, Failure> {
    let task = task(args.task.as_deref())?;
    let config = Config::load_and_warn(world)?;
    let chosen = models::choose(world, &config, args.agent.model.as_deref()).await?;
    let watched = std::io::stderr().is_terminal() && !args.json;
    let screen = Screen::new(Stream::Err, Abilities::of(Stream::Err, world), false, chosen.model.name());
    screen.tick();
    let asker = person(world, &chosen, &screen, watched);
    let nobody_to_ask = asker.is_none();
    let definitions = session::definitions(world, &config)?;
    let guard = crate::approvals::guard(world, &config)?;
    let present = session::Present { asker, hears_news: false };
    let mut agent = session::agent(world, &config, &args.agent, &chosen, present, definitions, &guard).await?;
    for note in agent.notes() {
        out::error(&format!("hermes: {}", visible(note)));
    }

    let cancel = Signals::listen().begin();
    let listener: &dyn Listener = match (args.json, watched) {
        (true, _) => &JsonEvents,
        (false, true) => &*screen,
        (false, false) => &Quiet,
    };
    let ended = agent.turn(&task, listener, &cancel).await;
    screen.pause();
    agent.close().await;
    match ended {
        Ok(end) => {
            if args.json {
                JsonEvents::end(&end);
            } else if !end.answer.is_empty() {
                out::foreign(&end.answer)?;
            }
            if let Some(why) = why_partial(&end.reason, end.refused).filter(|_| !args.json) {
                let hint = if end.refused > 0 && nobody_to_ask {
                    "; nobody could be asked here (--approve all allows what only needs a yes)"
                } else {
                    ""
                };
                out::error(&format!("hermes: {}{hint}", visible(&why)));
            }
            Ok(exit(&end))
        }
        Err(error) => Err(error.into()),
    }
}

/// The exit code of a turn that ended.
fn exit(end: &TurnEnd) -> Exit {
    match end.reason {
        EndReason::Cancelled => Exit::Interrupted,
        EndReason::Broken(_) => Exit::Failed,
        _ if end.is_partial() => Exit::Partial,
        _ => Exit::Done,
    }
}

/// Whoever answers questions: the script's person, the person at the terminal, or nobody.
fn person(world: &World, chosen: &Chosen, screen: &Arc<Screen>, watched: bool) -> Option<Arc<dyn Asker>> {
    if !chosen.person.is_empty() {
        return Some(ScriptedPerson::new(Arc::clone(screen), world, &chosen.person));
    }
    let at_the_terminal = watched && std::io::stdin().is_terminal();
    at_the_terminal.then(|| TerminalPerson::new(Arc::clone(screen), world) as Arc<dyn Asker>)
}

fn task(given: Option<&str>) -> Result<String, Failure> {
    let task = match given {
        Some(task) if task != "-" => task.to_owned(),
        None if std::io::stdin().is_terminal() => {
            return Err(Failure::usage("what is the task? hermes run \"TASK\", or pipe it in"));
        }
        _ => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| Failure::usage(format!("cannot read the task from standard input: {error}")))?;
            text
        }
    };
    if task.trim().is_empty() { Err(Failure::usage("the task is empty; hermes run \"TASK\"")) } else { Ok(task) }
}

/// Says only what somebody should know who reads nothing but the answer.
struct Quiet;

impl Listener for Quiet {
    fn hear(&self, event: hermes_agent::Event<'_>) {
        if let hermes_agent::Event::Warned { message, .. } = event {
            out::error(&format!("hermes: {}", visible(message)));
        }
    }
}
