//! What the model of a program sees of a command, and how it says what the command does.
//!
//! Models do not decide how bad something is: they name an effect and a target, and the rules for the combination stand
//! here, once. Only where the kind of target does not matter does a model say [`Call::asks`] or [`Call::never`] itself.

use super::Machine;
pub use super::expand::looks_secret as is_secret_name;
use crate::finding::{Effect, Finding, TargetClass, Verdict};
use crate::place::{self, Place};
use crate::programs::options::{Grammar, Options};
use crate::sensitive;
use crate::text::{self, HOLE, REMOTE, SECRET};

/// How much is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One file, named.
    One,
    /// Everything below, or many files by a pattern.
    Bulk,
    /// One file, erased beyond recovery.
    Shred,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    /// Its content is replaced.
    Replace,
    /// It gets longer, or is edited in place.
    Edit,
    /// It is made empty.
    Empty,
    /// It is made if it is not there; a file that is there keeps its content.
    Create,
}

/// One command with its arguments resolved.
#[derive(Debug)]
pub(crate) struct Call<'m, 'w> {
    pub(crate) machine: &'m mut Machine<'w>,
    /// The program's name without its directory.
    pub(crate) name: String,
    /// The whole command, the program first.
    pub(crate) words: Vec<String>,
    /// Variables that are set for this command only.
    pub(crate) environment: &'m [(String, String)],
}

impl<'m, 'w> Call<'m, 'w> {
    pub(crate) fn new(machine: &'m mut Machine<'w>, words: Vec<String>, environment: &'m [(String, String)]) -> Self {
        let name = words.first().map(|program| text::unglob(base_name(program))).unwrap_or_default();
        Self { machine, name, words, environment }
    }

    /// The arguments after the program.
    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The arguments after the program, read by the program's grammar.
    pub(crate) fn options(&self, grammar: &Grammar) -> Options {
        grammar.read(self.arguments())
    }

    /// The whole command as a person reads it.
    pub(crate) fn shown(&self) -> String {
        shown(&self.words)
    }

    // ------------------------------------------------------------------------------------------------------ findings

    pub(crate) fn find(&mut self, verdict: Verdict, effect: Effect, target: &str, class: TargetClass, why: &str) {
        let finding = Finding {
            verdict,
            program: text::shown(&self.name),
            effect,
            target: text::shown(target),
            class,
            why: why.into(),
            words: self.shown(),
            directory: String::new(),
        };
        self.machine.report(finding);
    }

    /// It needs a person, whatever the target.
    pub(crate) fn asks(&mut self, effect: Effect, target: &str, why: &str) {
        self.find(Verdict::Dangerous, effect, target, TargetClass::Thing, why);
    }

    /// It never runs.
    pub(crate) fn never(&mut self, effect: Effect, target: &str, why: &str) {
        self.find(Verdict::Hardline, effect, target, TargetClass::Thing, why);
    }

    /// Something runs and nobody can tell what.
    pub(crate) fn cannot_tell(&mut self, why: &str) {
        self.machine.reach.is_open = true;
        self.find(Verdict::Dangerous, Effect::CannotTell, "", TargetClass::Unknown, why);
    }

    // --------------------------------------------------------------------------------------------------------- paths

    /// Where a path leads. `follow` says whether a link at its end is followed.
    pub(crate) fn place(&mut self, path: &str, follow: bool) -> Place {
        // Nearly always there is one directory, and it is only looked at.
        let single = self.machine.state.variables.get("PWD").filter(|values| values.len() == 1).cloned();
        let chosen = if single.is_some() { None } else { self.machine.cwd() };
        let cwd = match single.as_deref().map(Vec::as_slice) {
            Some([super::state::Value::Text(path)]) if !text::is_unknown(path) => Some(path.as_str()),
            _ => chosen.as_deref(),
        };
        let (world, links) = (self.machine.world, &self.machine.state.links);
        let mut place =
            place::resolve(path, cwd, world, &|path| links.get(path).cloned().or_else(|| (world.link)(path)), follow);
        // Inside a container a mounted directory is the host's.
        let mount = self
            .machine
            .mounts
            .iter()
            .filter(|(_, inside)| place::within(&place.path, inside))
            .max_by_key(|m| m.1.len());
        if let Some((host, inside)) = mount {
            let below = place.path[inside.trim_end_matches('/').len()..].to_owned();
            let path = format!("{}{below}", host.trim_end_matches('/'));
            let path = if path.is_empty() { "/".to_owned() } else { path };
            place.class = place::classify(&path, world);
            place.path = path;
        }
        place
    }

    /// Deletes what `path` names.
    pub(crate) fn delete(&mut self, path: &str, extent: Extent) {
        if path.is_empty() {
            return;
        }
        let through = path.ends_with('/') || path.ends_with("/.");
        let place = self.place(path, through);
        self.delete_place(&place, extent);
    }

    pub(crate) fn delete_place(&mut self, place: &Place, extent: Extent) {
        self.machine.reach.write(&place.path);
        let bulk = extent == Extent::Bulk || text::has_glob(&place.path) || text::is_unknown(&place.path);
        let wiped = place::wiped(place, self.machine.world);
        let (class, path) = (place.class, place.path.as_str());
        if let Some(wiped) = wiped
            && (extent != Extent::One || text::has_glob(path))
        {
            let class = place::classify(&wiped, self.machine.world);
            let why = format!("wipes {} ({})", class.in_words(), text::shown(&wiped));
            return self.find(Verdict::Hardline, Effect::Delete, path, class, &why);
        }
        let why = match class {
            TargetClass::Device if extent == Extent::Shred => {
                return self.find(Verdict::Hardline, Effect::Disk, path, class, "overwrites a raw disk");
            }
            TargetClass::Unknown => "deletes something whose place cannot be told".to_owned(),
            _ if extent == Extent::Shred => "erases it beyond recovery".to_owned(),
            _ if text::is_unknown(path) => {
                format!("deletes files that cannot be named beforehand, {}", class.in_words())
            }
            _ if text::has_glob(path) => {
                format!("deletes whatever {} matches, {}", text::shown(path), class.in_words())
            }
            _ if bulk => format!("deletes {} with everything in it, {}", text::shown(path), class.in_words()),
            TargetClass::Workspace | TargetClass::Temporary => {
                if !sensitive::is_database(path) {
                    return;
                }
                "deletes a database".to_owned()
            }
            TargetClass::Secret => "deletes stored secrets".to_owned(),
            _ => format!("deletes a file: {}", class.in_words()),
        };
        self.find(Verdict::Dangerous, Effect::Delete, path, class, &why);
    }

    /// Writes to the file `path` names; answers where that is.
    pub(crate) fn write(&mut self, path: &str, writing: Writing) -> String {
        let place = self.place(path, true);
        self.write_place(&place, writing);
        place.path
    }

    pub(crate) fn write_place(&mut self, place: &Place, writing: Writing) {
        let (class, path) = (place.class, place.path.as_str());
        self.machine.reach.write(path);
        let effect = match writing {
            Writing::Empty => Effect::Truncate,
            _ => Effect::Overwrite,
        };
        match path {
            "/proc/sysrq-trigger" => {
                return self.never(Effect::Power, path, "asks the kernel to crash or restart the machine");
            }
            _ if is_history(path) && writing != Writing::Create => {
                return self.find(Verdict::Dangerous, Effect::History, path, class, "changes the command history");
            }
            _ => {}
        }
        match class {
            TargetClass::Device => {
                self.find(Verdict::Hardline, Effect::Disk, path, class, "writes over a raw disk");
            }
            TargetClass::Workspace | TargetClass::Temporary => {
                if writing == Writing::Empty && sensitive::is_database(path) {
                    self.find(Verdict::Dangerous, Effect::Truncate, path, class, "empties a database file");
                }
            }
            TargetClass::Thing => {}
            TargetClass::Secret => {
                self.find(Verdict::Dangerous, effect, path, class, "changes a file that holds secrets");
            }
            TargetClass::Startup => {
                let why = "changes a file from which programs start or take their settings";
                self.find(Verdict::Dangerous, Effect::Persistence, path, class, why);
            }
            TargetClass::Outside | TargetClass::Home if writing == Writing::Create => {}
            TargetClass::Unknown => {
                self.find(Verdict::Dangerous, effect, path, class, "writes to a place that cannot be told");
            }
            _ => {
                let why = format!("writes to {}", class.in_words());
                self.find(Verdict::Dangerous, effect, path, class, &why);
            }
        }
    }

    /// Reads a file and shows or passes on what it holds; answers that, as far as it is known.
    pub(crate) fn read(&mut self, path: &str) -> String {
        if path == "-" || place::is_stdin(path) {
            return self.machine.fed().unwrap_or_else(|| HOLE.into());
        }
        let place = self.place(path, true);
        if let Some(text) = self.machine.descriptor(&place.path) {
            return text;
        }
        if let Some(fact) = self.machine.file(&place.path) {
            return fact.text.clone();
        }
        if place.class == TargetClass::Secret || self.names_secrets(&place.path) {
            self.find(
                Verdict::Dangerous,
                Effect::SecretRead,
                &place.path,
                TargetClass::Secret,
                "shows what is secret in it",
            );
            return SECRET.into();
        }
        if place.path.starts_with("/dev/tcp/") || place.path.starts_with("/dev/udp/") || self.is_foreign(&place.path) {
            return REMOTE.into();
        }
        match place.path.as_str() {
            "/dev/null" => String::new(),
            _ => HOLE.into(),
        }
    }

    /// A directory of secrets counts when a pattern reaches into it.
    fn names_secrets(&self, path: &str) -> bool {
        let _ = self;
        text::has_glob(path) && {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            directory.ends_with("/.ssh") && !path.ends_with(".pub")
        }
    }

    pub(super) fn redirect_into(&mut self, path: &str, append: bool, own: bool) -> String {
        let place = self.place(path, true);
        // A descriptor past the third is only a connection: what reads or writes it later is looked at then.
        if place.class == TargetClass::Thing
            && own
            && matches!(base_name(&self.name), "bash" | "sh" | "zsh" | "dash" | "ksh" | "exec")
        {
            self.asks(Effect::ExecuteRemote, &place.path, "connects a shell to the network");
        }
        let empties = !append && matches!(self.name.as_str(), "shell" | ":" | "true");
        self.write_place(
            &place,
            if empties {
                Writing::Empty
            } else if append {
                Writing::Edit
            } else {
                Writing::Replace
            },
        );
        place.path
    }

    /// Whether a file came from elsewhere within this very command.
    pub(crate) fn is_foreign(&self, path: &str) -> bool {
        self.machine.foreign.iter().any(|foreign| place::within(path, foreign))
    }

    /// Notes that what lies at `path` now comes from elsewhere.
    pub(crate) fn now_foreign(&mut self, path: &str) {
        let place = self.place(path, true);
        self.machine.foreign.push(place.path);
    }

    // ---------------------------------------------------------------------------------------------------- what it runs

    /// Runs another command in the place of this one.
    pub(crate) fn run(&mut self, words: Vec<String>) {
        if words.is_empty() {
            return;
        }
        self.machine.run_program(words, self.environment);
    }

    /// Runs a text as a shell script of its own.
    pub(crate) fn shell(&mut self, script: &str) {
        let name = self.name.clone();
        self.machine.evaluate_apart(&name, script, Vec::new());
    }

    /// What the command reads from its input, if anything is fed to it.
    pub(crate) fn input(&mut self) -> Option<String> {
        self.machine.fed()
    }

    /// What [`Self::input`] would answer; it stays there for whoever reads it.
    pub(crate) fn peek_input(&self) -> Option<String> {
        let feed = self.machine.stdin.borrow();
        feed.text.as_ref().and_then(|text| text.get(feed.at..)).map(str::to_owned)
    }

    /// The words of the command that made the input, where a pipe brings it.
    pub(crate) fn input_by(&self) -> String {
        self.machine.stdin.borrow().by.clone()
    }

    pub(crate) fn print(&mut self, printed: &str) {
        self.machine.print(printed);
    }

    /// Runs something and answers what it printed.
    pub(crate) fn captured(&mut self, run: impl FnOnce(&mut Call<'_, 'w>)) -> String {
        let (name, words) = (self.name.clone(), self.words.clone());
        let environment = self.environment;
        self.machine.captured(|machine| run(&mut Call { machine, name, words, environment }))
    }

    /// The value of a variable that the command would see.
    pub(crate) fn sees(&mut self, name: &str) -> Option<String> {
        if let Some((_, value)) = self.environment.iter().rev().find(|(variable, _)| variable == name) {
            return Some(value.clone());
        }
        match self.machine.variable(name) {
            super::state::Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The name of a program without its directory and without `.exe`.
pub(crate) fn base_name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    match name.len().checked_sub(4).map(|at| (at, name.get(at..))) {
        Some((at, Some(end))) if end.eq_ignore_ascii_case(".exe") => &name[..at],
        _ => name,
    }
}

fn is_history(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(
        name,
        ".bash_history"
            | ".zsh_history"
            | ".history"
            | ".sh_history"
            | "fish_history"
            | ".python_history"
            | ".mysql_history"
            | ".psql_history"
            | ".node_repl_history"
            | ".lesshst"
            | ".viminfo"
            | ".zhistory"
            | "ConsoleHost_history.txt"
    )
}

/// What a text carries when it is changed beyond following: secrets stay secrets, and what came over the network did so.
pub(crate) fn blurred(text: &str) -> String {
    let mut out = String::new();
    for hole in [SECRET, REMOTE] {
        if text.contains(hole) {
            out.push(hole);
        }
    }
    if out.is_empty() {
        out.push(HOLE);
    }
    out
}

/// A command as a person reads it, cut off where it gets long.
pub(crate) fn shown(words: &[String]) -> String {
    let mut shown = String::new();
    for word in words {
        if !shown.is_empty() {
            shown.push(' ');
        }
        // Of a long word the beginning is enough.
        let end = word.char_indices().nth(400).map_or(word.len(), |(at, _)| at);
        let word = &word[..end];
        // A living glob is written as it was, without quotes that would kill it.
        let redirection = shown.is_empty() && matches!(word, ">" | ">>" | "<");
        if text::has_glob(word) || redirection {
            shown.push_str(&text::shown(word));
        } else {
            shown.push_str(&text::shown(&super::run::quoted(word)));
        }
        if shown.len() > 300 {
            shown.push('…');
            break;
        }
    }
    shown
}
