//! Runs a script without running it: every command with the words it would get, on everything that is known.
//!
//! A [`Machine`] walks the tree, keeps variables, functions, directories and written files as sets of possibilities
//! ([`state`]), and hands each simple command to the model of its program ([`crate::programs`]), which says what it would
//! do. Two rules keep it honest. What is unknown stays visible as a hole in the text ([`crate::text`]) and is dangerous as
//! soon as it reaches a place where it would run. And every step is paid from one budget: when that is gone, the answer is
//! "cannot tell", never "safe".

mod arithmetic;
mod assign;
mod braces;
mod builtins;
mod call;
mod decode;
mod endless;
mod expand;
mod files;
mod run;
pub(crate) mod state;
mod strings;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

pub(crate) use arithmetic::integer;
pub(crate) use builtins::BUILTINS;
pub use call::is_secret_name;
pub(crate) use call::{Call, Extent, Writing, base_name, blurred};
pub(crate) use decode::{filtered, unbase64};
pub(crate) use run::quoted;
pub(crate) use state::{Key, Slot, Value};

use crate::finding::{Effect, Finding, TargetClass, Verdict};
use crate::shell::syntax::Script;
use crate::shell::{self};
use crate::text::{self, HOLE};
use crate::world::World;
use state::State;

/// How deep one text may lead to another (`eval`, `bash -c`, functions, code that runs commands).
const DEEPEST_CALL: usize = 24;
/// How many scripts may be inside one another, over all texts.
const DEEPEST_SCRIPT: usize = 200;
/// What one level needs at most, in bytes, before the stack is looked at again.
const RED_ZONE: usize = 256 * 1024;
const MORE_STACK: usize = 2 * 1024 * 1024;
/// The least a script may cost, in commands.
const LEAST_BUDGET: usize = 4_000;
/// How much of an output is kept.
const MOST_OUTPUT: usize = 1 << 16;

/// Where programs are found as long as nobody says otherwise.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a command reads.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    /// `None`: nothing is fed, the command reads whatever the agent's shell would.
    pub(crate) text: Option<String>,
    pub(crate) at: usize,
    /// The command that made the text, where a pipe brings it and its words are plain.
    pub(crate) by: String,
}

impl Feed {
    pub(crate) fn of(text: impl Into<String>) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self { text: Some(text.into()), at: 0, by: String::new() }))
    }

    /// What is left of it.
    pub(crate) fn rest(&mut self) -> Option<String> {
        let text = self.text.as_ref()?;
        let rest = text[self.at..].to_owned();
        self.at = text.len();
        Some(rest)
    }

    /// The next line; `None` at the end or if nothing is fed.
    pub(crate) fn line(&mut self) -> Option<String> {
        let text = self.text.as_ref()?;
        let rest = &text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let length = rest.find('\n').unwrap_or(rest.len());
        let line = rest[..length].to_owned();
        // Unknown text may be any number of lines: it never comes to an end.
        if !text::is_unknown(&line) {
            self.at += (length + 1).min(rest.len());
        }
        Some(line)
    }
}

/// One choice among the possibilities of a variable, held for as long as one command is looked at.
#[derive(Debug)]
struct Pick {
    name: String,
    index: usize,
    count: usize,
}

/// A function that is being run.
#[derive(Debug)]
struct Frame {
    name: String,
    /// How many `&` and pipes surround what runs now, inside this function.
    forks: usize,
    /// What `local` hides until the function returns.
    locals: Vec<(Key, Slot)>,
}

#[derive(Debug)]
pub(crate) struct Machine<'w> {
    pub(crate) world: &'w World,
    pub(crate) state: State,
    findings: Vec<Finding>,
    seen: HashSet<Finding>,
    picks: Vec<Pick>,
    pub(crate) stdin: Rc<RefCell<Feed>>,
    /// What has been printed so far where somebody reads it.
    pub(crate) out: String,
    /// The last descriptor that the shell picked itself.
    picked: u32,
    /// How many readers stand between a command and the person.
    captures: usize,
    /// Whether the last command succeeded, where that is certain.
    pub(crate) status: Option<bool>,
    pub(crate) traps: Vec<String>,
    /// What was opened at descriptors other than the input.
    descriptors: HashMap<u32, Rc<RefCell<Feed>>>,
    /// Variables that stand for others.
    references: HashMap<String, String>,
    /// What variables do to the values they get, as letters of `declare`.
    attributes: HashMap<String, String>,
    /// The simple commands that would run, if somebody wants to know.
    pub(crate) commands: Option<Vec<String>>,
    /// What `IFS` holds as long as nobody changes it.
    usual_separators: state::Values,
    /// What came over the network is shown.
    shows_remote: bool,
    /// The arguments of the calls of one program, if somebody wants to know: its name and what it was given.
    probe: Option<(String, Vec<Vec<String>>)>,
    /// Commands run with the rights of another user.
    pub(crate) elevated: bool,
    /// The declaration builtin that runs now came with assignments.
    pub(crate) declared: bool,
    /// Something in this pipeline prints for ever.
    pub(crate) endless_input: bool,
    /// `$_`
    pub(crate) last_argument: String,
    frames: Vec<Frame>,
    calls: usize,
    /// How many scripts are inside one another right now.
    depth: usize,
    budget: usize,
    processes: usize,
    spent: bool,
    /// Paths under which code from elsewhere lies.
    pub(crate) foreign: Vec<String>,
    /// A container has this directory of the host mounted at that place.
    pub(crate) mounts: Vec<(String, String)>,
    /// What the script changes, as far as the models name it.
    pub(crate) reach: Reach,
}

impl<'w> Machine<'w> {
    fn new(world: &'w World, size: usize) -> Self {
        let mut machine = Self {
            world,
            state: State::default(),
            findings: Vec::new(),
            seen: HashSet::new(),
            picks: Vec::new(),
            stdin: Rc::default(),
            out: String::new(),
            captures: 0,
            picked: 9,
            status: None,
            traps: Vec::new(),
            descriptors: HashMap::new(),
            references: HashMap::new(),
            attributes: HashMap::new(),
            commands: None,
            usual_separators: Rc::new(Vec::new()),
            shows_remote: false,
            probe: None,
            elevated: false,
            declared: false,
            endless_input: false,
            last_argument: String::new(),
            frames: Vec::new(),
            calls: 0,
            depth: 0,
            budget: LEAST_BUDGET + size / 2,
            processes: 0,
            spent: false,
            foreign: Vec::new(),
            mounts: Vec::new(),
            reach: Reach::default(),
        };
        let home = world.home.as_str();
        for (name, value) in [
            ("HOME", home),
            ("PWD", world.cwd.as_str()),
            ("USER", world.user.as_str()),
            ("LOGNAME", world.user.as_str()),
            ("IFS", " \t\n"),
            ("SHELL", "/bin/bash"),
            ("TMPDIR", "/tmp"),
            ("PATH", USUAL_PATH),
        ] {
            machine.state.set_text(name, text::clean(value));
        }
        if let Some(values) = machine.state.variables.get("IFS") {
            machine.usual_separators = Rc::clone(values);
        }
        machine
    }

    /// Where commands run now; `None` if nobody can tell.
    pub(crate) fn cwd(&mut self) -> Option<String> {
        match self.variable("PWD") {
            Value::Text(path) if !text::is_unknown(&path) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn report(&mut self, mut finding: Finding) {
        // A finding is dearer than a step, and one text may be looked at for many choices.
        self.budget = self.budget.saturating_sub(4);
        // Files that are named are in the reach already; whatever else is worth a finding may change more.
        self.reach.is_open |= !matches!(
            finding.effect,
            Effect::Delete | Effect::Overwrite | Effect::Truncate | Effect::History | Effect::SecretRead
        );
        if !finding.target.starts_with('/') {
            finding.directory = self.cwd().unwrap_or_default();
        }
        if !self.seen.contains(&finding) {
            self.seen.insert(finding.clone());
            self.findings.push(finding);
        }
    }

    /// A finding that nobody can say what would run.
    pub(crate) fn cannot_tell(&mut self, program: &str, words: &str, why: &str) {
        self.report(Finding {
            verdict: Verdict::Dangerous,
            program: text::shown(program),
            effect: Effect::CannotTell,
            target: String::new(),
            class: TargetClass::Unknown,
            why: why.into(),
            words: excerpt(words),
            directory: String::new(),
        });
    }

    /// Pays for the length of a text that is copied or looked through.
    pub(crate) fn charge(&mut self, length: usize) {
        self.budget = self.budget.saturating_sub(length / 256);
    }

    /// Pays for one step; false if the budget is gone, which is reported once.
    fn pay(&mut self) -> bool {
        if self.budget == 0 {
            if !self.spent {
                self.spent = true;
                self.cannot_tell("shell", "", "is too long or too entangled to be read to its end");
            }
            return false;
        }
        self.budget -= 1;
        true
    }

    /// Reads `source` as a script and runs it in this very shell.
    pub(crate) fn evaluate(&mut self, program: &str, source: &str) {
        let source = text::unglob(source);
        if source.trim().is_empty() {
            return;
        }
        if source.contains(text::REMOTE) {
            self.report(Finding {
                verdict: Verdict::Dangerous,
                program: text::shown(program),
                effect: Effect::ExecuteRemote,
                target: "the network".into(),
                class: TargetClass::Thing,
                why: "runs text that comes over the network, unread".into(),
                words: format!("{} {}", text::shown(program), excerpt(&source)),
                directory: String::new(),
            });
        } else if text::is_unknown(&source) {
            self.cannot_tell(program, &source, "runs text of which a part is unknown");
        }
        if source.trim().chars().all(text::is_hole) {
            return self.print(&HOLE.to_string());
        }
        if self.calls >= DEEPEST_CALL {
            self.cannot_tell(program, "", "leads from one text to the next too many times");
            return;
        }
        // Many ways may lead to one text, and reading it is the dearest step of all.
        self.charge(source.len().saturating_mul(8));
        if !self.pay() {
            return;
        }
        match shell::parse(&source) {
            Ok(script) => {
                self.calls += 1;
                self.script(&script);
                self.calls -= 1;
            }
            Err(error) => {
                self.calls += 1;
                self.script(&shell::readable_lines(&source));
                self.calls -= 1;
                self.cannot_tell(program, &source, &format!("gets a script that cannot be read ({error})"));
            }
        }
    }

    /// The same in a shell of its own: what it changes is forgotten.
    pub(crate) fn evaluate_apart(&mut self, program: &str, source: &str, positional: Vec<String>) {
        self.apart(|machine| {
            if !positional.is_empty() || !machine.state.positional.is_empty() {
                machine.state.set(Key::Positional, Slot::Positional(positional));
            }
            machine.evaluate(program, source);
        });
    }

    /// Runs something whose changes to the shell are forgotten.
    pub(crate) fn apart<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.state.mark();
        let traps = self.traps.len();
        let result = run(self);
        self.run_traps(traps);
        // What was written to files stays; the shell itself was a copy.
        let changed = self.state.take_back(mark);
        for (key, slot) in changed {
            if matches!(key, Key::File(_) | Key::Link(_)) {
                self.state.set(key, slot);
            }
        }
        result
    }

    /// Runs something that reaches the world only in part: of its findings those stay that `reaches` lets through.
    pub(crate) fn confined(&mut self, reaches: impl Fn(&Finding) -> bool, run: impl FnOnce(&mut Self)) {
        let outside = std::mem::take(&mut self.findings);
        run(self);
        let inside = std::mem::replace(&mut self.findings, outside);
        for finding in inside {
            if reaches(&finding) {
                self.findings.push(finding);
            } else {
                self.seen.remove(&finding);
            }
        }
    }

    /// Runs something and answers what it printed.
    pub(crate) fn captured(&mut self, run: impl FnOnce(&mut Self)) -> String {
        let before = std::mem::take(&mut self.out);
        self.captures += 1;
        run(self);
        self.captures -= 1;
        std::mem::replace(&mut self.out, before)
    }

    /// Prints to whoever reads the output of what runs now.
    pub(crate) fn print(&mut self, printed: &str) {
        self.charge(printed.len());
        if self.captures == 0 {
            self.shows_remote |= printed.contains(text::REMOTE);
            if printed.contains(text::SECRET) {
                self.report(Finding {
                    verdict: Verdict::Dangerous,
                    program: "shell".into(),
                    effect: Effect::SecretRead,
                    target: "the output".into(),
                    class: TargetClass::Secret,
                    why: "shows a secret in the conversation".into(),
                    words: String::new(),
                    directory: String::new(),
                });
            }
            return;
        }
        if self.out.len() + printed.len() <= MOST_OUTPUT {
            self.out.push_str(printed);
        } else if !self.out.ends_with(HOLE) {
            self.out.push(HOLE);
        }
    }

    /// The value of a variable under the current choice.
    pub(crate) fn variable(&mut self, name: &str) -> Value {
        let referred = if self.references.is_empty() { None } else { self.references.get(name).cloned() };
        let name = referred.as_deref().unwrap_or(name);
        let Some(values) = self.state.variables.get(name) else { return Value::Unset };
        match values.as_slice() {
            [one] => one.clone(),
            many => {
                let count = many.len();
                let index = match self.picks.iter().find(|pick| pick.name == name) {
                    Some(pick) => pick.index.min(count - 1),
                    None => {
                        // Past a few dozen combinations only one variable varies at a time.
                        let product: usize = self.picks.iter().map(|pick| pick.count).product();
                        let kept = if product.saturating_mul(count) > 48 { 1 } else { count };
                        self.picks.push(Pick { name: name.into(), index: 0, count: kept });
                        if kept < count {
                            self.budget = self.budget.saturating_sub(1);
                            return Value::Text(many.iter().find_map(worst_of).unwrap_or_else(|| HOLE.to_string()));
                        }
                        0
                    }
                };
                many[index].clone()
            }
        }
    }

    /// Looks at something once for each combination of possibilities of the variables it uses, and joins what it changes.
    fn each_choice(&mut self, mut look: impl FnMut(&mut Self)) {
        let base = self.picks.len();
        let mark = self.state.mark();
        look(self);
        if self.picks.len() == base {
            self.state.keep(mark);
            return;
        }
        let mut branches = vec![self.state.take_back(mark)];
        while self.next_choice(base) && self.pay() {
            let mark = self.state.mark();
            look(self);
            branches.push(self.state.take_back(mark));
        }
        self.picks.truncate(base);
        self.state.join(branches, false);
    }

    fn next_choice(&mut self, base: usize) -> bool {
        while self.picks.len() > base {
            let last = self.picks.len() - 1;
            let pick = &mut self.picks[last];
            if pick.index + 1 < pick.count {
                pick.index += 1;
                return true;
            }
            self.picks.pop();
        }
        false
    }

    /// Follows several branches, of which one or none runs.
    fn branches(&mut self, count: usize, maybe_none: bool, mut run: impl FnMut(&mut Self, usize)) {
        let mut ends = Vec::with_capacity(count);
        for index in 0..count {
            let mark = self.state.mark();
            run(self, index);
            ends.push(self.state.take_back(mark));
        }
        self.state.join(ends, maybe_none);
    }
}

/// The beginning of a text, as a person reads it.
fn excerpt(source: &str) -> String {
    let mut short: String = source.chars().take(200).collect();
    if short.len() < source.len() {
        short.push('…');
    }
    text::shown(&short)
}

fn worst_of(value: &Value) -> Option<String> {
    match value {
        Value::Text(text) if text::is_unknown(text) => Some(text.clone()),
        _ => None,
    }
}

/// What was learnt about a script.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub(crate) findings: Vec<Finding>,
    /// The simple commands that would run, if they were asked for.
    pub(crate) commands: Vec<String>,
    /// Text from the network would be shown.
    pub(crate) shows_remote: bool,
    /// What it would change.
    pub(crate) reach: Reach,
}

/// What a script changes, as far as that can be told.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    /// Absolute paths that are written or removed, or patterns that match them.
    pub(crate) writes: Vec<String>,
    /// A program runs of which it is not known that it only reads.
    pub(crate) is_open: bool,
}

impl Reach {
    /// More are not named; then it is open.
    const MOST: usize = 200;

    pub(crate) fn write(&mut self, path: &str) {
        if path.starts_with("/dev/") && !path.starts_with("/dev/shm/") {
            // What is written to a device is in no file.
            return;
        }
        if text::is_unknown(path) || self.writes.len() >= Self::MOST {
            self.is_open = true;
            return;
        }
        let pattern = text::as_pattern(path);
        if !self.writes.contains(&pattern) {
            self.writes.push(pattern);
        }
    }
}

/// What a script would do, in the order of the text; a script that cannot be read is a finding as well.
pub(crate) fn read(source: &str, world: &World, with_commands: bool) -> Reading {
    let mut source = text::clean(source);
    let mut machine = Machine::new(world, source.len());
    machine.commands = with_commands.then(Vec::new);
    if source.contains('\0') {
        machine.cannot_tell("shell", "", "holds a NUL character, which no shell reads the way it is written");
        source = source.replace('\0', "").into();
    }
    match shell::parse(&source) {
        Ok(script) => {
            machine.script(&script);
            machine.exit_traps();
        }
        Err(error) => {
            machine.script(&shell::readable_lines(&source));
            machine.exit_traps();
            machine.cannot_tell("shell", &source, &format!("gets a script that cannot be read ({error})"));
        }
    }
    Reading {
        findings: machine.findings,
        commands: machine.commands.unwrap_or_default(),
        shows_remote: machine.shows_remote,
        reach: machine.reach,
    }
}

/// The arguments of each call of `program`, in the order in which they would happen; unknown words have holes.
pub(crate) fn words_of(source: &str, program: &str, world: &World) -> Result<Vec<Vec<String>>, shell::SyntaxError> {
    let source = text::clean(source);
    let mut machine = Machine::new(world, source.len());
    machine.probe = Some((program.to_owned(), Vec::new()));
    machine.script(&shell::parse(&source)?);
    machine.exit_traps();
    Ok(machine.probe.map(|(_, calls)| calls).unwrap_or_default())
}

impl Machine<'_> {
    pub(crate) fn script(&mut self, script: &Script) {
        if self.depth >= DEEPEST_SCRIPT {
            return self.cannot_tell("shell", "", "is nested too deep to be read to its end");
        }
        self.depth += 1;
        // However deep, and on whatever thread: the stack grows where it is short.
        stacker::maybe_grow(RED_ZONE, MORE_STACK, || {
            for item in &script.items {
                if self.spent {
                    break;
                }
                self.item(item);
            }
        });
        self.depth -= 1;
    }
}
