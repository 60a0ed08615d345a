//! Lists, pipelines, branches, loops, functions and simple commands.

use std::rc::Rc;

use super::call::Call;
use super::endless::{is_constant, spawns_without_end};
use super::state::{Key, Slot, Value};
use super::{Feed, Frame, Machine};
use crate::finding::{Effect, Finding, TargetClass, Verdict};
use crate::programs;
use crate::shell::syntax::{Command, Compound, Item, Join, Pipeline, RedirectKind, Script, Simple, Word};
use crate::text::{self, HOLE};

/// Variables for one command that change what it prints and not what it runs.
const PLAIN_VARIABLES: &[&str] = &["LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "CLICOLOR"];

/// How many items of a loop are followed one by one.
const MOST_UNROLLED: usize = 16;

/// How many words may go through more than a few wrappers.
const MOST_WORDS: usize = 2_000;
/// How many commands joined by `&&` are told apart in whether they ran.
const MOST_BRANCHES_OF_A_CHAIN: usize = 8;

/// How many simple commands of one line are held against rules.
const MOST_COMMANDS: usize = 400;

impl Machine<'_> {
    pub(super) fn item(&mut self, item: &Item) {
        if item.background {
            self.fork(|machine| machine.apart(|machine| machine.and_or(item)));
            self.status = Some(true);
        } else {
            self.and_or(item);
        }
    }

    fn and_or(&mut self, item: &Item) {
        self.pipeline(&item.first);
        // Behind `&&` the rest of the chain may not run: what it changes is changed perhaps.
        let mut marks = Vec::new();
        for (join, pipeline) in &item.rest {
            match (join, self.status) {
                (Join::And, status) => {
                    if status != Some(true) && marks.len() < MOST_BRANCHES_OF_A_CHAIN {
                        marks.push(self.state.mark());
                    }
                    self.pipeline(pipeline);
                }
                (Join::Or, status) => {
                    self.close(&mut marks);
                    if status == Some(false) {
                        self.pipeline(pipeline);
                    } else {
                        self.branches(1, true, |machine, _| machine.pipeline(pipeline));
                    }
                }
            }
        }
        self.close(&mut marks);
    }

    /// Joins what was changed since the marks with what was before.
    fn close(&mut self, marks: &mut Vec<usize>) {
        while let Some(mark) = marks.pop() {
            let changed = self.state.take_back(mark);
            // A variable that had no value is taken to have the new one: whoever writes `cd a && x=b` means it to.
            let (new, changed) = changed.into_iter().partition(|(key, _)| {
                matches!(key, Key::Variable(_)) && matches!(self.state.slot(key), Slot::Variable(None))
            });
            self.state.join(vec![new], false);
            self.state.join(vec![changed], true);
        }
    }

    fn fork(&mut self, run: impl FnOnce(&mut Self)) {
        if let Some(frame) = self.frames.last_mut() {
            frame.forks += 1;
        }
        let depth = self.frames.len();
        run(self);
        if let Some(frame) = self.frames.get_mut(depth.wrapping_sub(1)) {
            frame.forks -= 1;
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        let [first @ .., last] = pipeline.stages.as_slice() else {
            self.status = None;
            return;
        };
        if first.is_empty() {
            return self.command(last);
        }
        let outer = Rc::clone(&self.stdin);
        self.endless_input = false;
        self.fork(|machine| {
            for stage in first {
                let output = machine.captured(|machine| machine.apart(|machine| machine.command(stage)));
                machine.stdin = Feed::of(output);
                machine.stdin.borrow_mut().by = plain_words(stage);
            }
            machine.apart(|machine| machine.command(last));
        });
        self.stdin = outer;
        self.status = None;
    }

    fn command(&mut self, command: &Command) {
        match command {
            Command::Simple(simple) => self.simple(simple),
            Command::Function(name, body) => self.define(name, body),
            Command::Compound(compound, redirects) => {
                if !self.pay() {
                    return;
                }
                if redirects.is_empty() {
                    self.compound(compound);
                } else {
                    self.each_choice(|machine| {
                        machine.redirected(redirects, "shell", |machine| machine.compound(compound));
                    });
                }
            }
        }
    }

    fn define(&mut self, name: &str, body: &Rc<Command>) {
        let bodies = vec![Rc::clone(body)];
        self.state.set(Key::Function(name.to_owned()), Slot::Function(Some(bodies)));
        self.status = Some(true);
    }

    fn compound(&mut self, compound: &Compound) {
        match compound {
            Compound::Group(script) => self.script(script),
            Compound::Subshell(script) => self.apart(|machine| machine.script(script)),
            Compound::If(arms, otherwise) => {
                // Each condition runs if the ones before it said no.
                let count = arms.len() + usize::from(otherwise.is_some());
                if let Some((condition, _)) = arms.first() {
                    self.script(condition);
                }
                self.branches(count, otherwise.is_none(), |machine, index| match arms.get(index) {
                    Some((condition, body)) => {
                        if index > 0 {
                            machine.script(condition);
                        }
                        machine.script(body);
                    }
                    None => machine.script(otherwise.as_ref().unwrap_or(&Script::default())),
                });
                self.status = None;
            }
            Compound::Loop { until, condition, body } => self.while_loop(*until, condition, body),
            Compound::For { name, words, body } => {
                self.each_choice(|machine| machine.for_loop(name, words.as_deref(), body));
                self.status = None;
            }
            Compound::ArithmeticFor { parts: [first, condition, step], body } => {
                self.each_choice(|machine| {
                    let _ = machine.arithmetic(first);
                });
                if condition.parts.is_empty() && spawns_without_end(body) {
                    self.without_end();
                }
                for _ in 0..MOST_UNROLLED {
                    let mut over = !condition.parts.is_empty();
                    if over {
                        self.each_choice(|machine| over &= machine.arithmetic(condition) == Some(0));
                    }
                    if over || !self.pay() {
                        return;
                    }
                    self.script(body);
                    self.each_choice(|machine| {
                        let _ = machine.arithmetic(step);
                    });
                }
                self.repeat(|machine| {
                    machine.script(body);
                    machine.each_choice(|machine| {
                        let _ = machine.arithmetic(step);
                    });
                });
                self.status = None;
            }
            Compound::Case { subject, arms } => {
                self.each_choice(|machine| drop(machine.text_of(subject)));
                self.branches(arms.len(), true, |machine, index| {
                    for pattern in &arms[index].0 {
                        machine.each_choice(|machine| drop(machine.text_of(pattern)));
                    }
                    machine.script(&arms[index].1);
                });
                self.status = None;
            }
            Compound::Arithmetic(word) => {
                let mut statuses = Vec::new();
                self.each_choice(|machine| statuses.push(machine.arithmetic(word).map(|value| value != 0)));
                self.status = statuses.first().copied().flatten().filter(|_| statuses.windows(2).all(|w| w[0] == w[1]));
            }
            Compound::Test(words) => {
                self.each_choice(|machine| {
                    for word in words {
                        let _ = machine.text_of(word);
                    }
                });
                self.status = None;
            }
            Compound::Coprocess(command) => {
                self.fork(|machine| machine.apart(|machine| machine.command(command)));
                // What it prints is read, and what it reads is written there.
                let descriptors = [("0", 63), ("1", 60)].map(|(at, number)| (at.to_owned(), number.to_string()));
                self.assign_array("COPROC", descriptors.to_vec());
            }
        }
    }

    fn for_loop(&mut self, name: &str, words: Option<&[Word]>, body: &Script) {
        let items = match words {
            Some(words) => self.arguments(words),
            None => self.state.positional.clone(),
        };
        if items.len() <= MOST_UNROLLED {
            for item in items {
                if !self.pay() {
                    return;
                }
                self.state.set_text(name, item);
                self.script(body);
            }
            return;
        }
        let many = items.len() > super::state::MOST_VALUES;
        let mut values: Vec<Value> = items.into_iter().take(super::state::MOST_VALUES).map(Value::Text).collect();
        if many {
            values.push(Value::Text(HOLE.into()));
        }
        self.state.set(Key::Variable(name.into()), Slot::Variable(Some(Rc::new(values))));
        self.repeat(|machine| machine.script(body));
    }

    fn while_loop(&mut self, until: bool, condition: &Script, body: &Script) {
        let endless = is_constant(condition);
        if endless && spawns_without_end(body) {
            self.without_end();
        }
        for _ in 0..MOST_UNROLLED {
            self.status = None;
            self.script(condition);
            if endless || !self.pay() {
                break;
            }
            match self.status {
                Some(status) if status == until => return,
                Some(_) => self.script(body),
                None => break,
            }
        }
        self.repeat(|machine| machine.script(body));
        self.status = None;
    }

    /// Runs a body any number of times: until it changes nothing more, or with holes for what keeps changing.
    fn repeat(&mut self, mut body: impl FnMut(&mut Self)) {
        let mut moving = Vec::new();
        for _ in 0..2 {
            let mark = self.state.mark();
            body(self);
            let changed = self.state.take_back(mark);
            moving =
                changed.iter().filter(|(key, _)| matches!(key, Key::Variable(_))).map(|(key, _)| key.clone()).collect();
            let before: Vec<_> = moving.iter().map(|key| self.state.slot(key)).collect();
            self.state.join(vec![changed], true);
            let after = moving.iter().map(|key| self.state.slot(key));
            if before.iter().zip(after).all(|(before, after)| match (before, &after) {
                (Slot::Variable(before), Slot::Variable(after)) => before == after,
                _ => false,
            }) {
                return;
            }
        }
        for key in &moving {
            let hole = Slot::Variable(Some(Rc::new(vec![Value::Text(HOLE.into())])));
            self.state.join(vec![vec![(key.clone(), hole)]], true);
        }
        let mark = self.state.mark();
        body(self);
        let changed = self.state.take_back(mark);
        self.state.join(vec![changed], true);
    }

    pub(crate) fn without_end(&mut self) {
        self.report(Finding {
            verdict: Verdict::Hardline,
            program: "shell".into(),
            effect: Effect::Exhaustion,
            target: "processes".into(),
            class: TargetClass::Thing,
            why: "starts processes without end, until the machine stops answering".into(),
            words: String::new(),
            directory: String::new(),
        });
    }

    // ---------------------------------------------------------------------------------------------------- functions

    pub(crate) fn call_function(&mut self, name: &str, arguments: Vec<String>) {
        let forks: usize = match self.frames.iter().position(|frame| frame.name == name) {
            Some(first) => {
                let inside = self.frames[first..].iter().map(|frame| frame.forks).sum();
                if self.frames.iter().filter(|frame| frame.name == name).count() > 2 || self.frames.len() > 20 {
                    self.print(&HOLE.to_string());
                    return;
                }
                inside
            }
            None => 0,
        };
        if forks > 0 {
            return self.without_end();
        }
        let bodies = self.state.functions.get(name).cloned().unwrap_or_default();
        let positional = self.state.slot(&Key::Positional);
        self.frames.push(Frame { name: name.to_owned(), forks: 0, locals: Vec::new() });
        self.state.set(Key::Positional, Slot::Positional(arguments));
        match bodies.as_slice() {
            [body] => self.command(body),
            bodies => self.branches(bodies.len(), false, |machine, index| machine.command(&bodies[index])),
        }
        self.state.set(Key::Positional, positional);
        if let Some(frame) = self.frames.pop() {
            for (key, slot) in frame.locals.into_iter().rev() {
                self.state.set(key, slot);
            }
        }
    }

    // ----------------------------------------------------------------------------------------------- simple commands

    fn simple(&mut self, simple: &Simple) {
        if !self.pay() {
            return;
        }
        self.each_choice(|machine| machine.simple_once(simple));
    }

    fn simple_once(&mut self, simple: &Simple) {
        self.status = None;
        let arguments = self.arguments(&simple.words);
        let Some(program) = arguments.first() else {
            for assignment in &simple.assignments {
                self.assign(assignment, false);
            }
            self.status = Some(true);
            if !simple.redirects.is_empty() {
                // `$(<file)` is the content of the file; `> file` makes it empty.
                let reads = simple.redirects.iter().all(|redirect| redirect.kind == RedirectKind::Read);
                self.redirected(&simple.redirects, "shell", |machine| {
                    if reads && let Some(text) = machine.fed() {
                        machine.print(&text);
                    }
                });
            }
            return;
        };
        let declares = matches!(program.as_str(), "declare" | "typeset" | "local" | "export" | "readonly");
        if declares || simple.assignments.is_empty() {
            if declares {
                let exported = program == "export" || arguments.iter().any(|a| a.starts_with('-') && a.contains('x'));
                for assignment in &simple.assignments {
                    if program == "local" || (program != "export" && program != "readonly") {
                        self.make_local(&assignment.name);
                    }
                    self.declare_letters(&assignment.name, &arguments[1..]);
                    self.assign(assignment, exported);
                    self.attribute(&assignment.name, &arguments);
                }
            }
            let name = program.clone();
            self.declared = declares && !simple.assignments.is_empty();
            return self.redirected(&simple.redirects, &name, |machine| machine.run(arguments, &[]));
        }
        // Variables for this one command.
        let before: Vec<_> = simple
            .assignments
            .iter()
            .map(|a| Key::Variable(a.name.clone()))
            .map(|key| (self.state.slot(&key), key))
            .collect();
        for assignment in &simple.assignments {
            self.assign(assignment, true);
        }
        let mut environment = Vec::new();
        for assignment in &simple.assignments {
            let value = match self.variable(&assignment.name) {
                Value::Text(text) => text,
                _ => HOLE.into(),
            };
            environment.push((assignment.name.clone(), value));
        }
        let name = program.clone();
        self.redirected(&simple.redirects, &name, |machine| machine.run(arguments, &environment));
        for (slot, key) in before {
            self.state.set(key, slot);
        }
    }

    /// `declare -l`, `-u`, `-n`: what the variable does to its values.
    fn attribute(&mut self, name: &str, arguments: &[String]) {
        for flag in arguments.iter().filter_map(|argument| argument.strip_prefix('-')).flat_map(str::chars) {
            let Value::Text(text) = self.variable(name) else { continue };
            if flag == 'n' {
                self.references.insert(name.to_owned(), text);
            }
        }
    }

    /// Runs a program, a function, a builtin or an alias with its arguments.
    pub(crate) fn run(&mut self, arguments: Vec<String>, environment: &[(String, String)]) {
        let Some(program) = arguments.first() else { return };
        if let Some((name, calls)) = &mut self.probe
            && name == program
        {
            calls.push(arguments[1..].to_vec());
            self.status = Some(true);
            return;
        }
        if self.state.functions.contains_key(program) {
            if !self.pay() {
                return;
            }
            let mut arguments = arguments;
            let name = arguments.remove(0);
            return self.call_function(&name, arguments);
        }
        if let Some(alias) = self.state.aliases.get(program).cloned() {
            if !self.pay() {
                return;
            }
            let key = Key::Alias(program.clone());
            // An alias is not expanded inside of itself.
            let slot = self.state.slot(&key);
            self.state.set(key.clone(), Slot::Text(None));
            let rest: String = arguments[1..].iter().map(|argument| format!(" {}", quoted(argument))).collect();
            self.evaluate(program, &format!("{alias}{rest}"));
            return self.state.set(key, slot);
        }
        self.run_program(arguments, environment);
    }

    /// The same without functions and aliases: what `command` and wrappers run.
    pub(crate) fn run_program(&mut self, arguments: Vec<String>, environment: &[(String, String)]) {
        // Wrappers come here as well, and a pattern for a name runs many of them: each has its price, and so have the words.
        if !self.pay() {
            return;
        }
        if self.calls >= super::DEEPEST_CALL {
            return self.cannot_tell("shell", "", "leads from one program to the next too many times");
        }
        if self.calls > 3 {
            self.charge(arguments.iter().map(|argument| argument.len() + 16).sum());
        }
        if arguments.len() > MOST_WORDS && self.calls > 3 {
            return self.cannot_tell("shell", "", "hands too many words from one program to the next");
        }
        self.calls += 1;
        let last = arguments.last().cloned();
        let mut call = Call::new(self, arguments, environment);
        if call.machine.commands.is_some() {
            let shown = call.shown();
            call.machine.note_command(shown);
            // A rule about `git push` is also about `/usr/bin/git -C . push`.
            let plain = super::call::shown(&programs::verb_first(&call.name, call.arguments()));
            call.machine.note_command(plain);
        }
        // A variable such as PATH or GIT_EXTERNAL_DIFF can make any program run another one.
        let is_plain = |name: &str| name.starts_with("LC_") || PLAIN_VARIABLES.contains(&name);
        let is_led = environment.iter().any(|(name, _)| !is_plain(name)) || call.machine.path_was_changed();
        call.machine.reach.is_open |= is_led || !programs::only_reads(&call.name, &call.words);
        programs::run(&mut call);
        self.calls -= 1;
        if let Some(last) = last {
            self.last_argument = last;
        }
    }

    /// Whether programs may be found elsewhere than usual.
    fn path_was_changed(&mut self) -> bool {
        !matches!(self.variable("PATH"), Value::Text(path) if path == super::USUAL_PATH)
    }

    fn note_command(&mut self, shown: String) {
        if let Some(commands) = &mut self.commands
            && !commands.contains(&shown)
            && commands.len() < MOST_COMMANDS
        {
            commands.push(shown);
        }
    }

    /// Runs the traps that were set since there were `from` of them.
    pub(super) fn run_traps(&mut self, from: usize) {
        while self.traps.len() > from {
            if let Some(trap) = self.traps.pop() {
                self.evaluate("trap", &trap);
            }
        }
    }

    pub(super) fn exit_traps(&mut self) {
        self.run_traps(0);
    }
}

/// The words of a simple command that need no expansion.
fn plain_words(command: &Command) -> String {
    let Command::Simple(simple) = command else { return String::new() };
    let words: Vec<&str> = simple.words.iter().filter_map(Word::bare).collect();
    words.join(" ")
}

/// A text as one word of a script.
pub(crate) fn quoted(text: &str) -> String {
    if !text.is_empty()
        && text.chars().all(|c| {
            c.is_alphanumeric()
                || matches!(c, '_' | '-' | '.' | '/' | ':' | '=' | '@' | '%' | '+' | ',')
                || !text::is_literal(c.encode_utf8(&mut [0; 4]))
        })
    {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
