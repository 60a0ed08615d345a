//! A turn as a person watches it: the answer as it arrives, a line per call, and a sign of life while nothing arrives.

use std::io::{IsTerminal as _, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hermes_agent::{Event, Listener, TurnEnd};
use hermes_core::plural;
use hermes_runtime::{CallReport, Status};

use super::markdown::MarkdownStream;
use super::text::{duration, harmless, one_line, padded, shortened, tokens, visible, width, wrapped};
use crate::words::why_partial;
use crate::world::World;

/// Nothing is said about a wait that is shorter than this.
const QUIET: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(250);

/// Which stream a screen writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// What a screen can do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    pub(crate) terminal: bool,
    pub(crate) colour: bool,
    /// Whether a line can be taken back.
    pub(crate) live: bool,
}

impl Abilities {
    /// Finds out what `stream` can do, and honours `NO_COLOR` (no-color.org) and `TERM=dumb`.
    pub(crate) fn of(stream: Stream, world: &World) -> Self {
        let terminal = match stream {
            Stream::Out => std::io::stdout().is_terminal(),
            Stream::Err => std::io::stderr().is_terminal(),
        };
        let live = terminal && world.variable("TERM") != Some("dumb");
        Self { terminal, colour: live && world.variable("NO_COLOR").is_none(), live }
    }

    /// The width now: a terminal can be resized at any time.
    pub(crate) fn columns(self) -> usize {
        let columns = if self.terminal { usize::from(termimad::terminal_size().0) } else { 0 };
        // A terminal that does not know its size says 0 or 1.
        if columns < 2 { 80 } else { columns.clamp(20, 120) }
    }
}

/// Shows what an agent does. Cheap to share behind an [`Arc`].
pub(crate) struct Screen {
    stream: Stream,
    abilities: Abilities,
    /// Whether the answer is shown here too.
    answers: bool,
    state: Mutex<State>,
}

struct State {
    markdown: MarkdownStream,
    /// What is waited for, and since when.
    waiting: Option<(String, Instant)>,
    /// Whether the line that says so is on the screen.
    waiting_shown: bool,
    /// Whether this request has shown anything that a failure would make void.
    said_something: bool,
    model: String,
}

impl Screen {
    pub(crate) fn new(stream: Stream, abilities: Abilities, answers: bool, model: &str) -> Arc<Self> {
        let state = State {
            markdown: MarkdownStream::new(80, abilities.colour),
            waiting: None,
            waiting_shown: false,
            said_something: false,
            model: model.to_owned(),
        };
        Arc::new(Self { stream, abilities, answers, state: Mutex::new(state) })
    }

    /// Keeps the sign of life moving for as long as the screen lives. Needs a running runtime.
    pub(crate) fn tick(self: &Arc<Self>) {
        if !self.abilities.live {
            return;
        }
        let screen = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut interval = tokio::time::interval(TICK);
            loop {
                interval.tick().await;
                match screen.upgrade() {
                    Some(screen) => screen.show_waiting(),
                    None => return,
                }
            }
        });
    }

    /// The width now.
    pub(crate) fn columns(&self) -> usize {
        self.abilities.columns()
    }

    /// Forgets a turn that failed.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.waiting = None;
        state.markdown.finish();
        self.print(&mut state, "");
    }

    /// Prints lines as they are.
    pub(crate) fn say(&self, text: &str) {
        let mut state = self.lock();
        self.print(&mut state, text);
    }

    /// `text` in an ANSI style, where colours are shown.
    pub(crate) fn styled(&self, style: &str, text: &str) -> String {
        if self.abilities.colour && !text.is_empty() { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Takes the sign of life off the screen, because a person is asked now or all is over. Gives what was waited for.
    pub(crate) fn pause(&self) -> Option<String> {
        let mut state = self.lock();
        let what = state.waiting.take().map(|(what, _)| what);
        self.print(&mut state, "");
        what
    }

    /// Goes on waiting for what [`Screen::pause`] gave; the time the person took does not count.
    pub(crate) fn resume(&self, what: Option<String>) {
        self.lock().waiting = what.map(|what| (what, Instant::now()));
    }

    /// The line under a turn: what is missing, and what it took.
    pub(crate) fn end_of_turn(&self, end: &TurnEnd) {
        let mut state = self.lock();
        state.waiting = None;
        let rest = state.markdown.finish();
        let mut text = if self.answers { rest } else { String::new() };
        if let Some(why) = why_partial(&end.reason, end.refused) {
            text += &format!("  {} {}\n", self.styled("33", "!"), one_line(&why, self.columns() - 4));
        }
        let used = end.usage.input_tokens + end.usage.output_tokens;
        let cost = if used > 0 { format!(" · {} tokens", tokens(used)) } else { String::new() };
        let tally =
            format!("{} · {}{cost}", plural(end.requests as usize, "request"), plural(end.calls as usize, "call"));
        let indent = " ".repeat((self.columns().min(80)).saturating_sub(width(&tally) + 1));
        text += &format!("{indent}{}\n", self.styled("2", &tally));
        self.print(&mut state, &text);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn print(&self, state: &mut State, text: &str) {
        let clear = if std::mem::take(&mut state.waiting_shown) { "\r\x1b[K" } else { "" };
        self.write(&format!("{clear}{text}"));
    }

    fn write(&self, text: &str) {
        // A terminal that is gone cannot be told so; the turn goes on and its result is kept.
        let _ = match self.stream {
            Stream::Out => write_to(&mut std::io::stdout().lock(), text),
            Stream::Err => write_to(&mut std::io::stderr().lock(), text),
        };
    }

    fn show_waiting(&self) {
        let mut state = self.lock();
        let Some((what, since)) = &state.waiting else { return };
        if since.elapsed() < QUIET || !state.markdown.unfinished().is_empty() {
            return;
        }
        let line = one_line(&format!("… {what} · {} s", since.elapsed().as_secs()), self.columns() - 3);
        let line = self.styled("2", &line);
        state.waiting_shown = true;
        self.write(&format!("\r\x1b[K  {line}"));
    }

    /// The end of the line that is still arriving, until it is whole and takes its place.
    fn show_unfinished(&self, state: &mut State) {
        let line = state.markdown.unfinished();
        if !self.abilities.live || line.trim().is_empty() {
            return;
        }
        // Only the end is looked at: a line may be very long, and this happens with every piece of it.
        let room = self.columns().saturating_sub(6);
        let start = line.char_indices().rev().nth(room / 2).map_or(0, |(at, _)| at);
        let tail = shortened(harmless(&line[start..]).trim_start(), room);
        let dots = if start > 0 { "…" } else { "" };
        state.waiting_shown = true;
        self.write(&format!("\r\x1b[K  {}", self.styled("2", &format!("{dots}{tail}"))));
    }

    fn call_line(&self, report: &CallReport) -> String {
        let failed = !matches!(report.status, Status::Ok);
        let emoji = if failed { "✗" } else { &report.emoji };
        let mark = padded(emoji, 2);
        let mark = if failed { self.styled("31", &mark) } else { mark };
        let name = padded(&one_line(&report.name, 20), 13);
        let took = duration(report.elapsed);
        let outcome = if failed { reason(report) } else { report.summary.clone() };
        // Two blanks, the mark, a blank, the name, a blank, the headline, two blanks, the outcome, " · ", the time.
        let room = self.columns().saturating_sub(2 + 2 + 1 + width(&name) + 1 + 2 + 3 + width(&took));
        let outcome_room = room.saturating_sub(width(&one_line(&report.headline, room)).min(room / 2)).max(10);
        let outcome = one_line(&outcome, outcome_room);
        let headline = one_line(&report.headline, room.saturating_sub(width(&outcome)));
        let headline = padded(&headline, room.saturating_sub(width(&outcome)).min(34));
        let dim = self.styled("2", &format!("{outcome} · {took}"));
        let mut line = format!("  {mark} {name} {headline}  {dim}\n");
        for detail in &report.detail {
            let style = match detail.as_bytes().first() {
                Some(b'+') if report.is_diff => "32",
                Some(b'-') if report.is_diff => "31",
                Some(b'@') if report.is_diff => "36",
                _ => "2",
            };
            line += &format!("     {}\n", self.styled(style, &one_line(detail, self.columns() - 6)));
        }
        line
    }
}

/// Why a call did not do what it should, in few words.
fn reason(report: &CallReport) -> String {
    match report.status {
        Status::Refused if report.forbidden => "never runs".into(),
        Status::Refused => "refused".into(),
        Status::NotStarted => "not run: stopped".into(),
        Status::Interrupted => "interrupted".into(),
        _ => {
            // The name stands in the line already.
            let summary = report.summary.as_str();
            summary.strip_prefix(&format!("{}: ", report.name)).unwrap_or(summary).to_owned()
        }
    }
}

fn write_to(out: &mut dyn Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

impl Listener for Screen {
    fn hear(&self, event: Event<'_>) {
        let mut state = self.lock();
        match event {
            Event::Asking { .. } => {
                state.said_something = false;
                state.waiting = Some((format!("waiting for {}", state.model), Instant::now()));
            }
            Event::Reasoning(_) => {
                let thinking = format!("{} is thinking", state.model);
                if let Some((what, _)) = &mut state.waiting {
                    *what = thinking;
                }
            }
            Event::Text(text) => {
                if !self.answers {
                    return;
                }
                state.markdown.set_columns(self.columns());
                let shown = state.markdown.push(text);
                state.said_something |= !shown.is_empty();
                if !shown.is_empty() {
                    self.print(&mut state, &shown);
                }
                self.show_unfinished(&mut state);
            }
            Event::Replied { .. } => {
                state.waiting = None;
                let rest = state.markdown.finish();
                let rest = if self.answers { rest } else { String::new() };
                self.print(&mut state, &rest);
            }
            Event::Restart { reason, delay, attempt, of } => {
                state.markdown.finish();
                let void = if std::mem::take(&mut state.said_something) { "; what it said so far is void" } else { "" };
                let again = format!("again in {} (attempt {attempt} of {of}){void}", duration(delay));
                let mark = self.styled("33", "!");
                let why = wrapped(&visible(reason), self.columns(), 4);
                self.print(&mut state, &format!("  {mark} {}\n    {again}\n", why.trim_start()));
            }
            Event::CallStarted(call) => {
                state.waiting = Some((format!("{} is running", one_line(&call.name, 20)), Instant::now()));
            }
            Event::CallFinished(report) => {
                state.waiting = None;
                let line = self.call_line(report);
                self.print(&mut state, &line);
            }
            Event::Warned { message, .. } => {
                let mark = self.styled("33", "!");
                let message = wrapped(&visible(message), self.columns(), 4);
                self.print(&mut state, &format!("  {mark} {}\n", message.trim_start()));
            }
            Event::News(line) => {
                let message = wrapped(&visible(line), self.columns(), 5);
                self.print(&mut state, &format!("  ⚙️ {}\n", message.trim_start()));
            }
            Event::BudgetSpent { of } => {
                let mark = self.styled("33", "!");
                self.print(
                    &mut state,
                    &format!("  {mark} the budget of {of} requests is spent; asking for a summary\n"),
                );
            }
        }
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").field("abilities", &self.abilities).finish_non_exhaustive()
    }
}
