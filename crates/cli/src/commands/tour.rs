//! `hermes tour`: every tool at work in a scratch folder.
//!
//! The model is a script and says so; the calls, the approval prompt and the files are real. With a terminal the person
//! answers the questions; without one the script does, visibly.

use std::io::IsTerminal as _;
use std::sync::Arc;

use hermes_core::Asker;

use crate::args::{AgentArgs, PlaceArgs};
use crate::config::Config;
use crate::models;
use crate::session;
use crate::terminal::person::{ScriptedPerson, TerminalPerson};
use crate::terminal::screen::{Abilities, Screen, Stream};
use crate::terminal::signals::Signals;
use crate::words::{Exit, Failure};
use crate::world::World;

const SCRIPT: &str = include_str!("../tour/script.jsonl");
const TASK: &str = "Make a small project about the orbits of the planets, and check it.";

pub(crate) async fn run(world: &World) -> Result<Exit, Failure> {
    let scratch = tempfile::Builder::new()
        .prefix("hermes-tour-")
        .tempdir()
        .map_err(|error| Failure::new(format!("cannot make a scratch folder: {error}")))?;
    // The tour shows Hermes as it is out of the box, whatever the user's configuration says.
    let config = Config::default();
    let chosen = models::play(&config, "tour", SCRIPT)?;
    let screen = Screen::new(Stream::Out, Abilities::of(Stream::Out, world), true, "the script");
    let with_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let asker: Arc<dyn Asker> = if with_terminal {
        TerminalPerson::new(Arc::clone(&screen), world)
    } else {
        ScriptedPerson::new(Arc::clone(&screen), world, &chosen.person)
    };
    let args = AgentArgs {
        place: PlaceArgs { cwd: Some(scratch.path().to_path_buf()), ..PlaceArgs::default() },
        ..AgentArgs::default()
    };
    let definitions = session::definitions(world, &config)?;
    // An answer given here is kept for the tour and not for the user's own work.
    let home = tempfile::Builder::new()
        .prefix("hermes-tour-home-")
        .tempdir()
        .map_err(|error| Failure::new(format!("cannot make a scratch folder: {error}")))?;
    let guests = world.at_home(home.path());
    let guard = crate::approvals::guard(&guests, &config)?;
    let present = session::Present { asker: Some(asker), hears_news: false };
    let mut agent = session::agent(&guests, &config, &args, &chosen, present, definitions, &guard).await?;
    let answering = if with_terminal { "you answer its questions" } else { "its questions are answered by the script" };
    screen.say(&format!(
        "A tour of Hermes {}\n\nThe model in this tour is scripted: what it says was written beforehand, and\n\
         {answering}. Every tool call is real. They happen in\n\
         {}, which is removed at the end.\n\n› {TASK}\n\n",
        env!("CARGO_PKG_VERSION"),
        scratch.path().display()
    ));
    let cancel = Signals::listen().begin();
    let ended = agent.turn(TASK, &*screen, &cancel).await;
    agent.close().await;
    let end = ended?;
    screen.end_of_turn(&end);
    if cancel.is_cancelled() {
        return Ok(Exit::Interrupted);
    }
    if end.refused > 0 {
        screen.say("  You said no, which a script cannot react to: its words assume that every call was allowed.\n");
    }
    screen.say(
        "\nNext:\n  cargo install --path crates/cli          puts `hermes` on your PATH\n  \
         export OPENROUTER_API_KEY=…              a model; or start Ollama\n  \
         hermes run \"what is in this folder?\"    one task\n  \
         hermes tools list                        the tools you just saw\n  \
         hermes doctor                            is everything in place?\n",
    );
    Ok(Exit::Done)
}
