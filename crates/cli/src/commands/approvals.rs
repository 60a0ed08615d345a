//! `hermes approvals check|list|allow|revoke|test|log`.

use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hermes_core::{RequestEnd, plural};
use hermes_guard::policy::{Action, Rule, Scope, broad, is_broad, looks_like_scope};
use hermes_guard::{Effect, Finding, Guard, Judgement, Verdict, World as Place, judge};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::approvals::{self, Entry};
use crate::args::ApprovalsVerb;
use crate::config::{self, Config};
use crate::terminal::out;
use crate::terminal::text::{one_line, padded, visible, wrapped};
use crate::words::{Exit, Failure};
use crate::world::World;

pub(crate) fn run(world: &World, verb: ApprovalsVerb) -> Result<Exit, Failure> {
    match verb {
        ApprovalsVerb::Check { command: Some(command), cwd, json, .. } => {
            check(world, &command, cwd.as_deref(), json.json)
        }
        ApprovalsVerb::Check { cwd, .. } => check_lines(world, cwd.as_deref()),
        ApprovalsVerb::List { json } => list(world, json.json),
        ApprovalsVerb::Allow { what, cwd } => allow(world, &what, cwd.as_deref()),
        ApprovalsVerb::Revoke { what } => revoke(world, &what),
        ApprovalsVerb::Test => test(world),
        ApprovalsVerb::Log { last, json } => log(world, last, json.json),
    }
}

/// What is known about this machine, for a command that starts in `cwd`. A directory of another machine will do: then
/// nothing is known about its links.
fn place(world: &World, cwd: Option<&Path>) -> Place {
    let cwd = cwd.map_or_else(|| world.cwd.clone(), |cwd| world.cwd.join(cwd));
    let cwd = std::fs::canonicalize(&cwd).unwrap_or(cwd);
    let text = |path: &Path| path.to_string_lossy().trim_end_matches('/').to_owned();
    Place {
        home: text(&world.user_home),
        user: world.user_name(),
        cwd: text(&cwd),
        workspace: text(&cwd),
        agent_home: text(&world.home),
        link: |path| std::fs::read_link(path).ok().map(|target| target.to_string_lossy().into_owned()),
    }
}

// ---------------------------------------------------------------------------------------------------------- check

fn exit(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Safe => Exit::Done,
        Verdict::Dangerous => Exit::Partial,
        Verdict::Hardline => Exit::Never,
    }
}

/// What happens to a command here, once the rules and approvals of the configuration have been heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Runs,
    Asks,
    Refused,
}

/// The judgement of a command here, and what the configuration makes of it.
struct Decided {
    judgement: Judgement,
    decision: Decision,
    /// Why, if there is more to say than the findings.
    why: String,
    /// The findings that nothing covers.
    open: Vec<Finding>,
}

/// What decides about commands: the judge with the policy of the configuration.
struct Decider {
    guard: Arc<Guard>,
    off: bool,
}

impl Decider {
    fn new(world: &World) -> Result<Self, Failure> {
        let config = Config::load_and_warn(world)?;
        let off = config.text("approvals.mode").as_deref() == Some("off");
        Ok(Self { guard: approvals::guard(world, &config)?, off })
    }

    fn decide(&self, command: &str, place: &Place) -> Decided {
        let heard = self.guard.judge_command("terminal", command, place);
        let (decision, why) = if heard.hardline().is_some() {
            (Decision::Refused, "no approval and no mode changes that".to_owned())
        } else if let Some(why) = &heard.denied {
            (Decision::Refused, format!("a rule forbids it: {why}"))
        } else if heard.open.is_empty() && heard.asked.is_empty() {
            let approved = heard.judgement.verdict == Verdict::Dangerous;
            (Decision::Runs, if approved { "the configuration allows it".into() } else { String::new() })
        } else if self.off {
            (Decision::Runs, "approvals.mode is off".to_owned())
        } else if heard.open.is_empty() {
            (Decision::Asks, heard.asked.join("; "))
        } else {
            (Decision::Asks, String::new())
        };
        let open = heard.open.into_iter().map(|(open, _)| open).collect();
        Decided { judgement: heard.judgement, decision, why, open }
    }
}

fn check(world: &World, command: &str, cwd: Option<&Path>, as_json: bool) -> Result<Exit, Failure> {
    let place = place(world, cwd);
    if !Path::new(&place.cwd).is_dir() {
        out::error(&format!(
            "hermes: {} is no directory here; the command is judged all the same",
            visible(&place.cwd)
        ));
    }
    let decided = Decider::new(world)?.decide(command, &place);
    let Decided { judgement, decision, why, open } = &decided;
    let code = if *decision == Decision::Refused { Exit::Never } else { exit(judgement.verdict) };
    if as_json {
        out::pretty(&in_json(command, &decided))?;
        return Ok(code);
    }
    let verdict = match judgement.verdict {
        Verdict::Safe | Verdict::Dangerous if *decision == Decision::Refused => "refused",
        Verdict::Safe => "safe",
        Verdict::Dangerous => "dangerous",
        Verdict::Hardline => "never",
    };
    let happens = match decision {
        Decision::Runs => "it runs without a question",
        Decision::Asks => "it runs after a yes",
        Decision::Refused => "it does not run",
    };
    let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
    let mut text = format!("{}\n", wrapped(&visible(&format!("{verdict}: {happens}{why}")), 80, 0));
    for finding in &judgement.findings {
        text += &shown(finding, &place, !open.contains(finding));
    }
    out::line(&text)?;
    Ok(code)
}

/// A finding, for a person.
fn shown(finding: &Finding, place: &Place, approved: bool) -> String {
    let never = if finding.verdict == Verdict::Hardline { "never: " } else { "" };
    let sentence = visible(&format!("{never}{} {}", named(&finding.program), finding.why));
    let mut text = format!("\n  {}\n", wrapped(&sentence, 80, 2).trim_start());
    let mut line = |label: &str, value: &str| {
        // What only the run would tell is no news.
        if !value.is_empty() && value != "…" {
            text += &format!("    {} {}\n", padded(label, 8), one_line(&visible(value), 66));
        }
    };
    line("command", &finding.words);
    line("target", &finding.target);
    line("effect", &finding.family());
    if finding.verdict == Verdict::Dangerous {
        let scope = Scope::of(finding, place);
        let scope = scope.map(|scope| scope.in_words(place));
        match (approved, scope) {
            (true, scope) => line("approved", &scope.unwrap_or_else(|| "by a rule or an entry of the list".into())),
            (false, scope) => line("yes for", &scope.unwrap_or_else(|| "this once only".into())),
        }
    }
    text
}

/// A program that is only known when it runs has no name.
fn named(program: &str) -> &str {
    if program == "…" { "a part of it" } else { program }
}

fn in_json(command: &str, Decided { judgement, decision, why, .. }: &Decided) -> Value {
    let findings: Vec<Value> = judgement
        .findings
        .iter()
        .map(|finding| {
            json!({
                "family": finding.family(),
                "effect": finding.effect,
                "target": finding.target,
                "why": finding.why,
                "class": finding.class,
                "program": finding.program,
                "words": finding.words,
                "verdict": finding.verdict,
            })
        })
        .collect();
    json!({
        "cmd": command,
        "verdict": judgement.verdict,
        "findings": findings,
        "decision": decision,
        "decided_by": why,
    })
}

#[derive(Deserialize)]
struct Row {
    cmd: String,
    cwd: Option<PathBuf>,
}

fn check_lines(world: &World, cwd: Option<&Path>) -> Result<Exit, Failure> {
    let decider = Decider::new(world)?;
    let mut output = std::io::stdout().lock();
    let mut unreadable = 0;
    for line in std::io::stdin().lock().split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = match serde_json::from_slice::<Row>(&line) {
            Ok(row) => {
                let place = place(world, row.cwd.as_deref().or(cwd));
                in_json(&row.cmd, &decider.decide(&row.cmd, &place))
            }
            Err(error) => {
                unreadable += 1;
                json!({ "error": format!("not a command: {error}; a line is {{\"cmd\": …, \"cwd\": …}}") })
            }
        };
        writeln!(output, "{answer}")?;
    }
    Ok(if unreadable == 0 { Exit::Done } else { Exit::Failed })
}

// ----------------------------------------------------------------------------------------------- list, allow, revoke

fn list(world: &World, as_json: bool) -> Result<Exit, Failure> {
    let config = Config::load_and_warn(world)?;
    let allowed = config.list("command_allowlist");
    let policy = approvals::policy(&config)?;
    let rules: Vec<&Rule> = policy.rules.iter().collect();
    if as_json {
        let allowed: Vec<Value> =
            allowed.iter().map(|entry| json!({ "entry": entry, "broad": is_broad(entry) })).collect();
        let rules: Vec<Value> = rules.iter().map(|rule| rule_in_json(rule)).collect();
        out::pretty(&json!({ "mode": config.text("approvals.mode"), "allowed": allowed, "rules": rules }))?;
        return Ok(Exit::Done);
    }
    let place = place(world, None);
    let mut text = format!("mode: {}\n", config.text("approvals.mode").unwrap_or_default());
    text +=
        &format!("\napproved for good: {}\n", if allowed.is_empty() { "nothing" } else { "" }).replace(": \n", ":\n");
    for (index, entry) in allowed.iter().enumerate() {
        let words = entry.parse::<Scope>().map_or_else(
            |_| {
                if looks_like_scope(entry) {
                    format!("the command {entry} (it looks like an entry and cannot be read as one)")
                } else if broad(entry).is_some() {
                    format!("{entry} (broad: by any program, to any target)")
                } else if is_broad(entry) {
                    format!("commands that fit {entry} (broad: whatever they do)")
                } else {
                    format!("the command {entry}")
                }
            },
            |scope| scope.in_words(&place),
        );
        text += &format!("  {}. {}\n", index + 1, wrapped(&visible(&words), 80, 5).trim_start());
        if entry.parse::<Scope>().is_ok() {
            text += &format!("     {}\n", visible(entry));
        }
    }
    text += &format!("\nrules: {}\n", if rules.is_empty() { "none" } else { "" }).replace(": \n", ":\n");
    for rule in &rules {
        let about = rule.pattern.as_deref().unwrap_or("every call");
        let argument = rule.argument.as_deref().map(|argument| format!(" {argument}")).unwrap_or_default();
        text += &format!("  {} {}{argument}: {}\n", padded(word(rule.action), 6), rule.tool, visible(about));
    }
    out::line(&text)?;
    Ok(Exit::Done)
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
        Action::Judge => "judge",
    }
}

fn rule_in_json(rule: &Rule) -> Value {
    json!({
        "place": rule.place,
        "tool": rule.tool,
        "argument": rule.argument,
        "pattern": rule.pattern,
        "action": word(rule.action),
        "reason": rule.reason,
    })
}

fn allow(world: &World, what: &str, cwd: Option<&Path>) -> Result<Exit, Failure> {
    let place = place(world, cwd);
    match what.trim().parse::<Scope>() {
        Ok(scope) => {
            approvals::add(world, &[scope.to_string()])?;
            out::line(&format!("approved for good: {}\n", scope.in_words(&place)))?;
            return Ok(Exit::Done);
        }
        Err(error) if looks_like_scope(what) => {
            let effects: Vec<&str> = Effect::ALL.iter().map(|effect| effect.name()).collect();
            return Err(Failure::new(format!(
                "cannot read {}: {error}; effects are {}",
                visible(what),
                effects.join(", ")
            )));
        }
        Err(_) => {}
    }
    let judgement = judge(what, &place);
    match judgement.verdict {
        Verdict::Safe => {
            out::line(&format!("nothing to approve: as a command, {} runs without a question\n", visible(what)))?;
            return Ok(Exit::Done);
        }
        Verdict::Hardline => {
            let why = judgement.findings.iter().find(|finding| finding.verdict == Verdict::Hardline);
            let why = why.map(|finding| finding.why.clone()).unwrap_or_default();
            return Err(Failure { message: format!("this can never be approved: it {why}"), exit: Exit::Never });
        }
        Verdict::Dangerous => {}
    }
    let mut scopes: Vec<Scope> = Vec::new();
    for finding in &judgement.findings {
        let Some(scope) = Scope::of(finding, &place) else {
            return Err(Failure::new(format!(
                "a part of it can only be allowed each time it is asked about: {} {}",
                named(&finding.program),
                finding.why
            )));
        };
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    let keys: Vec<String> = scopes.iter().map(ToString::to_string).collect();
    approvals::add(world, &keys)?;
    let mut text = "approved for good:\n".to_owned();
    for scope in &scopes {
        text += &format!("  {}\n", wrapped(&visible(&scope.in_words(&place)), 80, 2).trim_start());
    }
    text += "hermes approvals list shows it, hermes approvals revoke takes it back\n";
    out::line(&text)?;
    Ok(Exit::Done)
}

fn revoke(world: &World, what: &str) -> Result<Exit, Failure> {
    let list = Config::load_and_warn(world)?.list("command_allowlist");
    let entry = match what.trim().parse::<usize>() {
        Ok(number) => number.checked_sub(1).and_then(|index| list.get(index)).cloned().ok_or_else(|| {
            Failure::new(format!(
                "there is no number {number}; {} (hermes approvals list)",
                plural(list.len(), "approval")
            ))
        })?,
        Err(_) => what.trim().to_owned(),
    };
    if approvals::remove(world, &entry)? {
        out::line(&format!("not approved any more: {}\n", visible(&entry)))?;
        return Ok(Exit::Done);
    }
    Err(Failure::new(format!("no approval is called \"{}\" (hermes approvals list)", visible(&entry))))
}

fn test(world: &World) -> Result<Exit, Failure> {
    let config = Config::load_and_warn(world)?;
    // A rule whose example says otherwise is an error here as it is everywhere else.
    let policy = approvals::read_policy(&config)
        .map_err(|problems| Failure::new(format!("{}: {problems}", world.shown(&config::path(world)))))?;
    let rules: Vec<&Rule> = policy.rules.iter().collect();
    let examples: usize = rules.iter().map(|rule| rule.examples.len()).sum();
    if rules.is_empty() {
        out::line("no rules (approvals.rules and approvals.deny in config.yaml are empty)\n")?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for rule in rules.iter().filter(|rule| rule.examples.is_empty()) {
        text += &format!("  {} has no examples\n", rule.place);
    }
    let (rules, count) = (plural(rules.len(), "rule"), plural(examples, "example"));
    text += &match examples {
        0 => format!("{rules} can be read; without examples nobody can say whether they mean what you do\n"),
        _ => format!("{rules}, {count}: all as they say\n"),
    };
    out::line(&text)?;
    Ok(Exit::Done)
}

// ---------------------------------------------------------------------------------------------------------- log

fn log(world: &World, last: usize, as_json: bool) -> Result<Exit, Failure> {
    let path = approvals::log_path(world);
    let (entries, unreadable) = approvals::read_log(&path)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", world.shown(&path))))?;
    let skipped = entries.len().saturating_sub(last);
    let shown = &entries[skipped..];
    if as_json {
        let shown: Vec<Value> = shown.iter().map(log_in_json).collect();
        out::pretty(&json!({ "requests": shown, "unreadable_lines": unreadable }))?;
        return Ok(Exit::Done);
    }
    let mut text = String::new();
    for entry in shown {
        text += &entry_in_words(world, entry);
    }
    if entries.is_empty() {
        text += "nothing was asked yet\n";
    } else if skipped > 0 {
        text += &format!("{} of {} (--last N shows more)\n", shown.len(), plural(entries.len(), "request"));
    }
    if unreadable > 0 {
        text += &format!("{} of the book cannot be read: {}\n", plural(unreadable, "line"), world.shown(&path));
    }
    out::line(&text)?;
    Ok(Exit::Done)
}

fn log_in_json(Entry { at, request, end, by }: &Entry) -> Value {
    let time = |seconds: u64| {
        let seconds = i64::try_from(seconds).unwrap_or_default();
        chrono::DateTime::from_timestamp(seconds, 0).map(|time| time.to_rfc3339())
    };
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut entry = json!({ "at": time(*at), "end": end, "by": by, "request": request });
    entry["request"]["opened"] = json!(time(since(request.opened)));
    entry["request"]["expires"] = json!(time(since(request.expires)));
    entry
}

fn entry_in_words(world: &World, Entry { at, request, end, by }: &Entry) -> String {
    let when = chrono::DateTime::from_timestamp(i64::try_from(*at).unwrap_or_default(), 0)
        .map(|time| time.with_timezone(&chrono::Local).format("%Y-%m-%d %H:%M").to_string())
        .unwrap_or_default();
    let decided = !matches!(end, None | Some(RequestEnd::Expired | RequestEnd::Cancelled));
    let nobody = by.as_deref() == Some("nobody");
    let by = by.as_deref().filter(|_| decided && !nobody).map(|by| format!(" by {by}")).unwrap_or_default();
    let end = match end {
        Some(RequestEnd::ApprovedOnce) => "approved once",
        Some(RequestEnd::ApprovedSession) => "approved for the session",
        Some(RequestEnd::ApprovedAlways) => "approved for good",
        Some(RequestEnd::Denied) if nobody => "denied, since nobody was there to ask",
        Some(RequestEnd::Denied) => "denied",
        Some(RequestEnd::Rehearsed) => "rehearsed first",
        Some(RequestEnd::Expired) => "not answered",
        Some(RequestEnd::Cancelled) => "cancelled",
        None => "not ended",
    };
    let mut text = format!("{when}  {end}{by}: {} in {}\n", request.tool, world.shown(&request.cwd));
    text += &format!("    {}\n", one_line(&visible(&request.subject), 76));
    for doubt in &request.doubts {
        text += &format!("    · {}\n", one_line(&visible(doubt), 74));
    }
    text
}
