//! The judge of calls: what a tool says it would do, held against what is known about commands, paths and rules.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use hermes_core::{
    ApprovalScope, Changes, CommandPlace, Concern, Doubt, Judge, JudgeRequest, Typed, Verdict as Answer,
};

use crate::Judgement;
use crate::finding::{Effect, Finding, TargetClass, Verdict};
use crate::paths::PathPolicy;
use crate::place;
use crate::policy::{Action, Area, Policy, Scope};
use crate::world::{World, no_links};
use crate::{eval, redact, shell, text};

/// The judge. Its policy can be replaced while conversations go on.
#[derive(Debug)]
pub struct Guard {
    home: String,
    user: String,
    agent_home: String,
    paths: PathPolicy,
    policy: RwLock<Arc<Policy>>,
}

impl Guard {
    /// A judge for the user with this home directory and name, and for an agent that keeps its own files in `agent_home`.
    /// `paths` is what file tools may not read or write.
    pub fn new(home: &Path, user: &str, agent_home: &Path, paths: PathPolicy, policy: Policy) -> Self {
        let text = |path: &Path| path.to_string_lossy().trim_end_matches('/').to_owned();
        Self {
            home: text(home),
            user: user.to_owned(),
            agent_home: text(agent_home),
            paths,
            policy: RwLock::new(Arc::new(policy)),
        }
    }

    /// Puts another policy in place of the one that holds.
    pub fn set_policy(&self, policy: Policy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    fn policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known about the machine, for a command that starts in `cwd` where `workspace` is worked on.
    pub fn world(&self, cwd: &Path, workspace: &Path, shares_our_files: bool) -> World {
        World {
            home: self.home.clone(),
            user: self.user.clone(),
            cwd: cwd.to_string_lossy().into_owned(),
            workspace: workspace.to_string_lossy().into_owned(),
            agent_home: self.agent_home.clone(),
            link: if shares_our_files { read_link } else { no_links },
        }
    }

    /// The verdict on a command of a tool, with everything that is not covered.
    pub fn judge_command(&self, tool: &str, command: &str, world: &World) -> CommandVerdict {
        self.held_against(tool, command, eval::read(command, world, true), world)
    }

    fn held_against(&self, tool: &str, command: &str, reading: eval::Reading, world: &World) -> CommandVerdict {
        let policy = self.policy();
        let judgement = Judgement::of(reading.findings);
        let mut verdict = CommandVerdict { judgement, denied: None, open: Vec::new(), asked: Vec::new() };
        let texts = || reading.commands.iter().map(String::as_str).chain([command.trim()]);
        verdict.denied = texts()
            .find_map(|text| policy.rules.about_command(tool, Action::Deny, text))
            .map(|rule| rule.why("forbids"));
        for text in texts() {
            if let Some(rule) = policy.rules.about_command(tool, Action::Ask, text) {
                let why = rule.why("asks about");
                if !verdict.asked.contains(&why) {
                    verdict.asked.push(why);
                }
            }
        }
        for finding in &verdict.judgement.findings {
            let scope = Scope::of(finding, world);
            let allowed =
                !finding.words.is_empty() && policy.rules.about_command(tool, Action::Allow, &finding.words).is_some();
            if !allowed && !policy.covers(finding, scope.as_ref()) {
                verdict.open.push((finding.clone(), scope));
            }
        }
        verdict
    }

    fn command(&self, request: &JudgeRequest<'_>, command: &str) -> Answer {
        let cwd = request.touches.runs_in.as_deref().unwrap_or(request.cwd);
        let world = self.world(cwd, request.root, request.shares_our_files);
        let (mut reading, readable) = match &request.touches.typed {
            Some(typed) => read_typed(typed, &world),
            None => read_after(request.carried, command, &world),
        };
        if request.touches.rehearsed {
            // It can change nothing that is left and reach nobody; what it shows, it shows.
            reading
                .findings
                .retain(|finding| finding.verdict == Verdict::Hardline || finding.effect == Effect::SecretRead);
        }
        let mut verdict = self.held_against(request.spec.name.as_str(), command, reading, &world);
        if !readable {
            verdict
                .asked
                .push("earlier commands of this session defined functions or aliases that cannot be read".into());
        }
        if request.touches.unconfined {
            verdict.asked.push("it would run outside of the sandbox".into());
        }
        if redact::contains_mask(command) {
            verdict.asked.push("it holds a mask where a secret was hidden from the model".into());
        }
        verdict.answer(&world)
    }

    fn files(&self, request: &JudgeRequest<'_>) -> Answer {
        let world = self.world(request.cwd, request.root, request.shares_our_files);
        let tool = request.spec.name.as_str();
        let mut doubts: Vec<(String, Option<ApprovalScope>)> = Vec::new();
        if !request.touches.writes.is_empty() && request.arguments.values().any(holds_mask) {
            let why = "writes a mask ([redacted: …]) where a secret was hidden from the model, which would destroy the secret";
            doubts.push((why.into(), None));
        }
        let pairs = |stated: &[PathBuf], real: &[PathBuf]| -> Vec<(PathBuf, PathBuf)> {
            let stated = stated.iter().map(Some).chain(std::iter::repeat(None));
            real.iter().zip(stated).map(|(real, stated)| (stated.unwrap_or(real).clone(), real.clone())).collect()
        };
        for (stated, real) in pairs(&request.stated.writes, &request.touches.writes) {
            if let Err(refusal) = self.paths.check_write(&stated, &real) {
                return Answer::Refuse(refusal.to_string());
            }
            let own =
                request.own_folders.iter().any(|folder| real.starts_with(folder)) || real.starts_with(request.root);
            let path = real.to_string_lossy();
            let class = place::classify(&path, &world);
            let quiet = matches!(class, TargetClass::Workspace | TargetClass::Temporary) || own && !is_sensitive(class);
            if !quiet {
                doubts.push((
                    format!("changes {path}: {}", class.in_words()),
                    exactly(tool, Effect::Overwrite, &path, &world, true),
                ));
            }
        }
        for (stated, real) in pairs(&request.stated.reads, &request.touches.reads) {
            if let Err(refusal) = self.paths.check_read(&stated, &real) {
                return Answer::Refuse(refusal.to_string());
            }
        }
        let Some((reason, _)) = doubts.first() else { return Answer::Allow };
        let reason =
            if doubts.len() == 1 { reason.clone() } else { format!("{reason}, and {} more", doubts.len() - 1) };
        let doubts = doubts
            .into_iter()
            .enumerate()
            .map(|(index, (what, scope))| Doubt {
                id: (index + 1).to_string(),
                what: format!("{tool} {what}"),
                by_person: false,
                rehearsable: false,
                deletes: None,
                scope,
            })
            .collect();
        Answer::Ask(Concern { reason, note: None, doubts })
    }
}

/// Reads what is typed into a running program: as its input, after what was typed before. That, and the program itself,
/// were judged in their time; what is typed now counts also when it was typed before. `false`: it cannot be told.
fn read_typed(typed: &Typed, world: &World) -> (eval::Reading, bool) {
    let into = typed.into.trim_end();
    let read = |input: &str| {
        // A mark that does not stand on a line of the input ends it.
        let mut mark = "INPUT".to_owned();
        while input.lines().any(|line| line == mark) {
            mark.push('_');
        }
        eval::read(&format!("{{ {into}\n}} <<'{mark}'\n{}\n{mark}", input.trim_end_matches('\n')), world, true)
    };
    let program = eval::read(into, world, true);
    let mut reading = read(&typed.now);
    if !typed.before.is_empty() {
        let before = read(&typed.before);
        let all = read(&format!("{}{}", typed.before, typed.now));
        reading.findings.extend(all.findings.into_iter().filter(|finding| !before.findings.contains(finding)));
        reading.commands.extend(all.commands);
    }
    reading.findings.retain(|finding| !program.findings.contains(finding));
    (reading, !typed.unreadable)
}

/// Whether a finding is dangerous only for files of the workspace.
fn is_about_the_workspace(finding: &Finding) -> bool {
    let files = matches!(finding.effect, Effect::Delete | Effect::Overwrite | Effect::Truncate | Effect::Permission);
    files && finding.class == TargetClass::Workspace
}

/// Reads a command together with the functions, aliases and variables that earlier commands of its session left.
/// `false`: they cannot be read, so nothing is known about what
/// a word of the command means.
fn read_after(carried: &str, command: &str, world: &World) -> (eval::Reading, bool) {
    if carried.is_empty() {
        return (eval::read(command, world, true), true);
    }
    if shell::parse(&text::clean(carried)).is_err() {
        return (eval::read(command, world, true), false);
    }
    // What the definitions do by themselves counts, too: they were printed by a shell that somebody may have fooled.
    let reading = eval::read(&format!("{carried}\n{command}"), world, true);
    (reading, true)
}

/// Whether a value holds what the redactor puts in the place of a secret.
fn holds_mask(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => redact::contains_mask(text),
        serde_json::Value::Array(items) => items.iter().any(holds_mask),
        serde_json::Value::Object(fields) => fields.values().any(holds_mask),
        _ => false,
    }
}

fn is_sensitive(class: TargetClass) -> bool {
    matches!(class, TargetClass::Secret | TargetClass::Startup | TargetClass::Device)
}

fn exactly(program: &str, effect: Effect, target: &str, world: &World, lasting: bool) -> Option<ApprovalScope> {
    let scope = Scope { program: program.to_owned(), effect, area: Area::Exactly(target.to_owned()) };
    Some(ApprovalScope { key: scope.to_string(), words: scope.in_words(world), lasting })
}

/// Where a path leads, if it is a link on this machine.
fn read_link(path: &str) -> Option<String> {
    std::fs::read_link(path).ok().map(|target| target.to_string_lossy().into_owned())
}

/// What is to be said about a command, with what the user decided beforehand taken into account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandVerdict {
    /// What it would do, whatever was decided beforehand.
    pub judgement: Judgement,
    /// A rule forbids it, for this reason.
    pub denied: Option<String>,
    /// What no approval for good and no rule covers, each with what one could cover.
    pub open: Vec<(Finding, Option<Scope>)>,
    /// Rules that want a person to look, each with its reason.
    pub asked: Vec<String>,
}

impl CommandVerdict {
    /// It must never run because of this.
    pub fn hardline(&self) -> Option<&Finding> {
        self.judgement.findings.iter().find(|finding| finding.verdict == Verdict::Hardline)
    }

    fn answer(self, world: &World) -> Answer {
        if let Some(finding) = self.hardline() {
            return Answer::Refuse(format!("it {}", finding.why));
        }
        if let Some(why) = self.denied {
            return Answer::Refuse(format!("a rule of the configuration forbids it: {why}"));
        }
        let mut doubts: Vec<Doubt> = Vec::new();
        for (finding, scope) in &self.open {
            let scope = scope.as_ref().map(|scope| ApprovalScope {
                key: scope.to_string(),
                words: scope.in_words(world),
                lasting: true,
            });
            let known = !finding.target.contains(['…', '*', '?', '[']) && finding.target.starts_with('/');
            let deletes = (finding.effect == Effect::Delete && known).then(|| PathBuf::from(&finding.target));
            doubts.push(Doubt {
                id: (doubts.len() + 1).to_string(),
                what: sentence(finding),
                by_person: false,
                rehearsable: is_about_the_workspace(finding),
                deletes,
                scope,
            });
        }
        for why in self.asked {
            doubts.push(wanted_by_a_rule(doubts.len(), why));
        }
        let Some(first) = self.open.first() else {
            return match doubts.first() {
                Some(doubt) => Answer::Ask(Concern {
                    reason: "is something a rule asks about".into(),
                    note: Some(doubt.what.clone()),
                    doubts,
                }),
                None => Answer::Allow,
            };
        };
        let more = match self.open.len() {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        Answer::Ask(Concern { reason: format!("{}{more}", first.0.why), note: None, doubts })
    }
}

/// What a rule wants a person to look at, after `before` other doubts.
fn wanted_by_a_rule(before: usize, why: String) -> Doubt {
    Doubt { id: (before + 1).to_string(), what: why, by_person: true, rehearsable: false, deletes: None, scope: None }
}

/// A finding as one sentence.
fn sentence(finding: &Finding) -> String {
    let said = matches!(finding.target.as_str(), "" | "…") || finding.why.contains(&finding.target);
    let target = if said { String::new() } else { format!(" ({})", finding.target) };
    // Nobody can tell the name of a program that is only known when it runs.
    let program = if finding.program == "…" { "a part of it" } else { &finding.program };
    format!("{program} {}{target}", finding.why)
}

impl Judge for Guard {
    fn outside(&self, request: &JudgeRequest<'_>) -> Option<String> {
        let command = request.touches.command.as_deref()?;
        let cwd = request.touches.runs_in.as_deref().unwrap_or(request.cwd);
        let world = self.world(cwd, request.root, request.shares_our_files);
        eval::read(command, &world, false).shows_remote.then(|| "the network, by a command".to_owned())
    }

    fn withholds(&self, stated: &Path, real: &Path) -> Option<String> {
        self.paths.check_read(stated, real).err().map(|refusal| refusal.to_string())
    }

    fn changes(&self, command: &str, place: &CommandPlace<'_>) -> Changes {
        let world = self.world(place.cwd, place.cwd, place.shares_our_files);
        let (reading, is_readable) = read_after(place.carried, command, &world);
        let paths = reading.reach.writes.iter().map(PathBuf::from).collect();
        match paths {
            paths if reading.reach.is_open || !is_readable => Changes::Anything(paths),
            paths if paths.is_empty() => Changes::Nothing,
            paths => Changes::Only(paths),
        }
    }

    fn judge(&self, request: &JudgeRequest<'_>) -> Answer {
        let tool = request.spec.name.as_str();
        let policy = self.policy();
        if let Some(rule) = policy.rules.about_call(tool, Action::Deny, request.arguments) {
            return Answer::Refuse(format!("a rule of the configuration forbids it: {}", rule.why("forbids")));
        }
        let answer = if let Some(command) = &request.touches.command {
            self.command(request, command)
        } else if let Some(command) = policy
            .rules
            .about_call(tool, Action::Judge, request.arguments)
            .and_then(|rule| request.arguments.get(rule.argument.as_deref()?)?.as_str())
        {
            self.command(request, command)
        } else if request.touches.reads.is_empty() && request.touches.writes.is_empty() {
            silent(request)
        } else {
            self.files(request)
        };
        let asked = policy.rules.about_call(tool, Action::Ask, request.arguments).map(|rule| rule.why("asks about"));
        // What an argument is allowed to be is no answer to what a command does.
        let allowed = request.touches.command.is_none()
            && policy.rules.about_call(tool, Action::Allow, request.arguments).is_some();
        match (answer, asked) {
            (Answer::Refuse(why), _) => Answer::Refuse(why),
            // A rule that asks beats one that allows.
            (Answer::Ask(mut concern), Some(why)) => {
                concern.doubts.push(wanted_by_a_rule(concern.doubts.len(), why));
                Answer::Ask(concern)
            }
            (Answer::Allow, Some(why)) => {
                Answer::Ask(Concern::new("is something a rule asks about", Some(why), None).by_person())
            }
            (Answer::Ask(_), None) if allowed => Answer::Allow,
            (answer, None) => answer,
        }
    }
}

/// A tool that says nothing about paths and commands.
fn silent(request: &JudgeRequest<'_>) -> Answer {
    use hermes_core::Effect;
    match request.spec.effect {
        Effect::None | Effect::Converse | Effect::Read => Answer::Allow,
        _ => {
            let tool = request.spec.name.as_str();
            let arguments = serde_json::Value::Object(request.arguments.clone());
            let scope = ApprovalScope {
                key: format!("call {tool} {arguments}"),
                words: "exactly this call".into(),
                lasting: false,
            };
            Answer::Ask(Concern::new(format!("calls {tool}"), None, Some(scope)))
        }
    }
}
