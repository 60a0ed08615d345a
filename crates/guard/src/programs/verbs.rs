//! Programs with verbs, as tables: which words, with which options, do what.
//!
//! A verb is found by its place and never by looking for a dangerous word: `docker logs rm` only reads. Where the
//! place differs from command to command, as in the tools of the clouds, the first word that is a verb at all decides.

use super::options::{Grammar, Options};
use super::{Program, prints};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text::{self, HOLE, SECRET};

/// What a verb does.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    Asks(Effect, &'static str),
    PrintsSecret,
    Fine,
}

/// A verb, the options that it depends on, and what it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The first operands: alternatives are separated by `|`, and `*` stands for any text within a word.
    words: &'static str,
    /// It applies with one of these options only, `name` or `name=value`.
    only: &'static str,
    /// It does not apply with one of these.
    unless: &'static str,
    outcome: Outcome,
}

/// A verb that needs a person; `why` are words that follow "it".
pub(super) const fn asks(words: &'static str, effect: Effect, why: &'static str) -> Rule {
    Rule { words, only: "", unless: "", outcome: Outcome::Asks(effect, why) }
}

/// A verb that prints a secret: harmless as long as nobody sees what is printed.
pub(super) const fn secret(words: &'static str) -> Rule {
    Rule { words, only: "", unless: "", outcome: Outcome::PrintsSecret }
}

/// A verb that does nothing worth a question, before a wider rule says otherwise.
pub(super) const fn fine(words: &'static str) -> Rule {
    Rule { words, only: "", unless: "", outcome: Outcome::Fine }
}

impl Rule {
    pub(super) const fn only(self, options: &'static str) -> Self {
        Self { only: options, ..self }
    }

    pub(super) const fn unless(self, options: &'static str) -> Self {
        Self { unless: options, ..self }
    }

    fn applies(&self, operands: &[String], options: &Options) -> bool {
        leads(self.words, operands)
            && (self.only.is_empty() || given(options, self.only))
            && (self.unless.is_empty() || !given(options, self.unless))
    }
}

/// Whether the operands begin with words that match.
pub(super) fn leads(pattern: &str, operands: &[String]) -> bool {
    let mut words = operands.iter();
    pattern.split_whitespace().all(|alternatives| {
        words.next().is_some_and(|word| alternatives.split('|').any(|alternative| fits(alternative, word)))
    })
}

fn fits(pattern: &str, word: &str) -> bool {
    if pattern.contains('*') { text::matches(&text::live(pattern), word) } else { pattern == word }
}

/// Whether one of the options is given, with the value that stands behind `=` if one does.
pub(super) fn given(options: &Options, wanted: &str) -> bool {
    wanted.split_whitespace().any(|wanted| match wanted.split_once('=') {
        Some((name, value)) => {
            options.options.iter().any(|(given, with)| given == name && with.as_deref() == Some(value))
        }
        None => options.has(wanted),
    })
}

/// A program with verbs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tool {
    pub(super) names: &'static [&'static str],
    valued: &'static str,
    long: &'static str,
    single_dash: bool,
    /// Options with which nothing is done.
    dry: &'static str,
    deep: bool,
    rules: &'static [Rule],
}

pub(super) const fn tool(names: &'static [&'static str], rules: &'static [Rule]) -> Tool {
    Tool { names, valued: "", long: "", single_dash: false, dry: "dry-run", deep: false, rules }
}

impl Tool {
    /// Letters and long names of the options that take a value, as a [`Grammar`] has them.
    pub(super) const fn valued(self, valued: &'static str, long: &'static str) -> Self {
        Self { valued, long, ..self }
    }

    /// Long options have one dash.
    pub(super) const fn single_dash(self, long: &'static str) -> Self {
        Self { long, single_dash: true, ..self }
    }

    pub(super) const fn dry(self, dry: &'static str) -> Self {
        Self { dry, ..self }
    }

    /// Groups of verbs may be nested to any depth: the first word that is a verb decides.
    pub(super) const fn deep(self) -> Self {
        Self { deep: true, ..self }
    }

    pub(super) fn read(&self, arguments: &[String]) -> Options {
        Grammar { valued: self.valued, long: self.long, permute: true, single_dash: self.single_dash }.read(arguments)
    }

    /// Reports what the verb does, and prints what it prints; answers the options unless nothing is done.
    pub(super) fn judge(&self, call: &mut Call<'_, '_>) -> Option<Options> {
        let options = self.read(call.arguments());
        let operands = operands(&options);
        // `aws ec2 stop-instances help` is how that one asks.
        let asks_last = self.names.contains(&"aws") && operands.last().is_some_and(|word| word == "help");
        if only_asks(&options, operands) || asks_last || is_dry(&options, self.dry) {
            call.print(&HOLE.to_string());
            return None;
        }
        if operands.first().is_some_and(|verb| text::is_unknown(verb)) {
            call.cannot_tell("is told what to do by a text that is not known");
        }
        let rule = self.rules.iter().find(|rule| rule.applies(operands, &options));
        match rule.map(|rule| rule.outcome) {
            Some(Outcome::Asks(effect, why)) => call.asks(effect, &target(operands), why),
            Some(Outcome::PrintsSecret) => {
                call.print(&SECRET.to_string());
                return Some(options);
            }
            Some(Outcome::Fine) => {}
            None if self.deep => {
                if let Some(at) = operands.iter().position(|word| is_verb(word))
                    && HARMFUL.iter().any(|verb| fits(verb, &operands[at]))
                {
                    let why = format!("{}s what this names in the cloud", operands[at].replace('-', " "));
                    call.asks(Effect::CloudResource, &target(operands), &why);
                }
            }
            None => {}
        }
        call.print(&HOLE.to_string());
        Some(options)
    }
}

/// Verbs of deep tools that take something away or out of service.
const HARMFUL: &[&str] = &[
    "delete",
    "delete-*",
    "del",
    "destroy",
    "destroy-*",
    "remove",
    "remove-*",
    "rm",
    "terminate",
    "terminate-*",
    "stop",
    "stop-*",
    "restart",
    "restart-*",
    "reboot",
    "reset",
    "reset-*",
    "shutdown",
    "poweroff",
    "power-off",
    "halt",
    "kill",
    "purge",
    "purge-*",
    "prune",
    "deallocate",
    "disable",
    "disable-*",
    "detach",
    "detach-*",
    "suspend",
    "pause",
    "drain",
    "revoke",
    "revoke-*",
    "uninstall",
    "deprovision",
    "release",
    "evict",
    "failover",
    "rebuild",
    "abandon",
    "wipe",
    "empty",
    "erase",
    "undeploy",
    "deregister",
    "deregister-*",
    "decommission",
    "power_off",
    "hard-reset",
    "bulk-delete",
    "batch-delete",
    "redeploy",
    "reimage",
    "dissociate",
    "disassociate",
];
/// Verbs that do not; after one of these a name may be anything.
const HARMLESS: &[&str] = &[
    "list",
    "list-*",
    "ls",
    "show",
    "show-*",
    "describe",
    "describe-*",
    "get",
    "get-*",
    "info",
    "create",
    "create-*",
    "add",
    "add-*",
    "update",
    "update-*",
    "help",
    "inspect",
    "print-*",
    "print",
    "enable",
    "enable-*",
    "ssh",
    "scp",
    "start",
    "view",
    "read",
    "wait",
    "search",
    "validate",
    "export",
    "import",
    "tail",
    "status",
    "set",
    "set-*",
];

fn is_verb(word: &str) -> bool {
    HARMFUL.iter().chain(HARMLESS).any(|verb| fits(verb, word))
}

/// The operands without unknown words before the verb: they may be options, or nothing at all.
fn operands(options: &Options) -> &[String] {
    let blurred = |word: &&String| word.starts_with([text::HOLES, text::OUTPUT]);
    let skipped = options.operands.iter().take_while(blurred).count();
    if skipped < options.operands.len() { &options.operands[skipped..] } else { &options.operands }
}

/// Help, the version, or a word in the place of the verb that asks for them.
fn only_asks(options: &Options, operands: &[String]) -> bool {
    options.has("help h")
        || operands.first().is_some_and(|word| word == "help")
        || (operands.is_empty() && options.has("version V v"))
}

/// Whether an option says that nothing is to be done, and not that something is.
pub(super) fn is_dry(options: &Options, names: &str) -> bool {
    options.options.iter().any(|(name, value)| {
        names.split(' ').any(|dry| dry == name) && !matches!(value.as_deref(), Some("none" | "false" | "0" | "no"))
    })
}

fn target(operands: &[String]) -> String {
    operands.iter().take(6).map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// The tool that a call names.
pub(super) fn find<'t>(tools: &'t [Tool], name: &str) -> Option<&'t Tool> {
    let named = |name: &str| tools.iter().find(|tool| tool.names.contains(&name));
    named(name).or_else(|| super::versioned(name).and_then(named))
}

/// The programs of a table, for the list of programs.
pub(super) const fn programs<const N: usize>(
    tools: &[Tool; N],
    model: for<'a, 'm, 'w> fn(&'a mut Call<'m, 'w>),
) -> [Program; N] {
    let mut programs = [prints(&[], model); N];
    let mut at = 0;
    while at < N {
        programs[at] = prints(tools[at].names, model);
        at += 1;
    }
    programs
}

#[cfg(test)]
pub(super) mod tests {
    use crate::{Verdict, World, judge};

    /// Judges pairs: the first asks, its twin does not.
    pub(in crate::programs) fn pairs(pairs: &[(&str, &str)]) {
        let world = World::new("/home/u", "/home/u/project");
        for (dangerous, safe) in pairs {
            let got = judge(dangerous, &world);
            assert_eq!(got.verdict, Verdict::Dangerous, "{dangerous}: {:?}", got.findings);
            let got = judge(safe, &world);
            assert_eq!(got.verdict, Verdict::Safe, "{safe}: {:?}", got.findings);
        }
    }

    #[test]
    fn a_verb_is_found_by_its_place() {
        use super::{Effect, asks, tool};
        const TOOL: super::Tool = tool(&["x"], &[asks("box|. rm|del*", Effect::Delete, "deletes")]).valued("C", "ctx=");
        let leads = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let options = TOOL.read(&words);
            TOOL.rules.iter().any(|rule| rule.applies(&options.operands, &options))
        };
        assert!(leads("-C a --ctx b box delete y"));
        assert!(!leads("logs rm"));
        assert!(!leads("box logs rm"));
    }
}
