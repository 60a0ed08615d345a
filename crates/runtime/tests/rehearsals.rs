//! What was only rehearsed becomes true when somebody who saw it says so, and never by itself.
#![allow(clippy::unwrap_used)]

mod setting;

use std::sync::Arc;

use hermes_core::{
    Answer, Approval, Concern, Doubt, Effect, JsonMap, Judge, JudgeRequest, Pending, Question, ToolError, ToolOutput,
    ToolResult, Touches, Verdict,
};
use hermes_runtime::{ApprovalMode, CallReport, Status};
use hermes_testkit::{FakeEnvironment, FakeRehearsal, FakeTool, Fate, ScriptedPerson};
use serde_json::{Value, json};

use setting::Setting;

/// `rm` is dangerous only for the workspace, `dd` for more than that, `mkfs` for ever; anything else is fine. A rehearsed
/// command is fine unless it never runs.
struct Files;

impl Judge for Files {
    fn judge(&self, request: &JudgeRequest<'_>) -> Verdict {
        let command = request.touches.command.clone().unwrap_or_default();
        let program = command.split(' ').next().unwrap_or_default();
        if program == "mkfs" {
            return Verdict::Refuse("it formats the disk".into());
        }
        if request.touches.rehearsed || !matches!(program, "rm" | "dd") {
            return Verdict::Allow;
        }
        let doubt = Doubt {
            id: "1".into(),
            what: format!("{command} deletes"),
            by_person: false,
            rehearsable: program == "rm",
            deletes: None,
            scope: None,
        };
        Verdict::Ask(Concern { reason: "deletes".into(), note: None, doubts: vec![doubt] })
    }
}

/// A shell that gives `answer` where it is to rehearse.
fn shell_that(answer: impl Fn() -> ToolResult + Send + Sync + 'static) -> Arc<FakeTool> {
    let schema = json!({
        "type": "object",
        "properties": { "command": { "type": "string" }, "rehearse": { "type": "boolean" } },
        "required": ["command"],
    });
    let rehearses = |arguments: &JsonMap| arguments.get("rehearse") == Some(&Value::Bool(true));
    let tool = FakeTool::new("shell").effect(Effect::Execute).parameters(schema);
    let tool = tool.touching(move |arguments, _| {
        let mut touches = Touches::executing(arguments["command"].as_str().unwrap());
        touches.rehearsed = rehearses(arguments);
        touches
    });
    Arc::new(tool.run(move |arguments, _| if rehearses(arguments) { answer() } else { Ok(ended()) }))
}

fn ended() -> ToolOutput {
    ToolOutput::json(json!({ "exit_code": 0 })).with_summary("exit 0")
}

/// A shell that rehearses: what it does then waits in `rehearsal`.
fn shell(rehearsal: &Arc<FakeRehearsal>) -> Arc<FakeTool> {
    let rehearsal = Arc::clone(rehearsal);
    shell_that(move || Ok(ended().with_pending(Pending(Arc::clone(&rehearsal) as _))))
}

/// A shell that can make no rehearsal, though its environment thought so.
fn clumsy_shell() -> Arc<FakeTool> {
    shell_that(|| Err(ToolError::not_rehearsed("it is too large to copy", "it is too large")))
}

fn setting(rehearsal: &Arc<FakeRehearsal>, mode: ApprovalMode, answers: &[Approval]) -> (Setting, Arc<ScriptedPerson>) {
    let person = Arc::new(ScriptedPerson::new(answers.iter().map(|answer| Answer::Approval(*answer))));
    let environment = FakeEnvironment::new().rehearsing();
    let setting =
        Setting::new([&shell(rehearsal)]).inside(environment).judged_by(Files).approving(mode).asking(&person);
    (setting, person)
}

async fn rehearsed(setting: &Setting, command: &str) -> CallReport {
    setting.call("shell", json!({ "command": command, "rehearse": true })).await
}

fn said(report: &CallReport) -> Value {
    serde_json::from_str::<Value>(&report.text).unwrap()["rehearsal"].clone()
}

#[tokio::test]
async fn the_person_sees_what_it_did_and_commits_it_or_throws_it_away() {
    for (answer, fate, committed) in
        [(Approval::Once, Fate::Committed, true), (Approval::Deny, Fate::ThrownAway, false)]
    {
        let rehearsal = FakeRehearsal::new();
        let (setting, person) = setting(&rehearsal, ApprovalMode::Ask, &[answer]);
        let report = rehearsed(&setting, "rm old.o").await;
        assert_eq!((report.status, rehearsal.fate()), (Status::Ok, fate), "{report:?}");
        assert_eq!(said(&report)["committed"], committed);
        assert_eq!(said(&report).get("undo").is_some(), committed);
        let [Question::Rehearsed { command, lines, diff, .. }] = &person.questions()[..] else { panic!() };
        assert_eq!((command.as_str(), lines.len()), ("rm old.o", 1));
        assert!(diff.contains("build/old.o"));
    }
}

#[tokio::test]
async fn silence_and_nobody_throw_it_away() {
    let rehearsal = FakeRehearsal::new();
    let (setting, _) = setting(&rehearsal, ApprovalMode::Ask, &[]);
    let report = rehearsed(&setting, "rm old.o").await;
    assert_eq!((rehearsal.fate(), said(&report)["committed"].clone()), (Fate::ThrownAway, json!(false)));

    let rehearsal = FakeRehearsal::new();
    let (mut alone, _) = self::setting(&rehearsal, ApprovalMode::Ask, &[]);
    alone.task.asker = None;
    let report = rehearsed(&alone, "rm old.o").await;
    assert_eq!(rehearsal.fate(), Fate::ThrownAway);
    assert!(said(&report)["result"].as_str().unwrap().contains("nobody is here"), "{report:?}");
}

#[tokio::test]
async fn the_mode_decides_where_nobody_is_to_be_asked() {
    for (mode, fate) in [(ApprovalMode::All, Fate::Committed), (ApprovalMode::None, Fate::ThrownAway)] {
        let rehearsal = FakeRehearsal::new();
        let (setting, person) = setting(&rehearsal, mode, &[]);
        rehearsed(&setting, "rm old.o").await;
        assert_eq!((rehearsal.fate(), person.questions().len()), (fate, 0), "{mode:?}");
    }
}

#[tokio::test]
async fn what_would_have_run_without_a_question_is_committed_without_one() {
    let rehearsal = FakeRehearsal::new();
    let (setting, person) = setting(&rehearsal, ApprovalMode::Ask, &[]);
    rehearsed(&setting, "touch new.o").await;
    assert_eq!((rehearsal.fate(), person.questions().len()), (Fate::Committed, 0));
}

#[tokio::test]
async fn nothing_changed_is_said_and_nobody_is_asked() {
    let rehearsal = FakeRehearsal::empty();
    let (setting, person) = setting(&rehearsal, ApprovalMode::Ask, &[]);
    let report = rehearsed(&setting, "rm old.o").await;
    assert_eq!(said(&report)["result"], "it changed nothing");
    assert!(person.questions().is_empty());
}

#[tokio::test]
async fn a_commit_that_is_not_possible_is_told_and_is_none() {
    let rehearsal = FakeRehearsal::hindered("build/old.o has changed since");
    let (setting, _) = setting(&rehearsal, ApprovalMode::Ask, &[Approval::Once]);
    let report = rehearsed(&setting, "rm old.o").await;
    assert_eq!(said(&report)["committed"], false);
    assert!(said(&report)["result"].as_str().unwrap().contains("has changed since"));
}

#[tokio::test]
async fn a_question_about_files_of_the_workspace_can_be_answered_by_rehearse_first() {
    let rehearsal = FakeRehearsal::new();
    let (setting, person) = setting(&rehearsal, ApprovalMode::Ask, &[Approval::Rehearse, Approval::Once]);
    let report = setting.call("shell", json!({ "command": "rm old.o" })).await;
    assert_eq!((report.status, rehearsal.fate()), (Status::Ok, Fate::Committed));
    let questions = person.questions();
    let [Question::Approval { rehearsable: true, .. }, Question::Rehearsed { .. }] = &questions[..] else {
        panic!("{questions:?}")
    };

    let (other, person) = self::setting(&FakeRehearsal::new(), ApprovalMode::Ask, &[Approval::Deny]);
    other.call("shell", json!({ "command": "dd of=disk" })).await;
    assert!(matches!(person.questions()[..], [Question::Approval { rehearsable: false, .. }]));
}

#[tokio::test]
async fn in_the_mode_rehearse_it_comes_first_by_itself() {
    let rehearsal = FakeRehearsal::new();
    let (setting, person) = setting(&rehearsal, ApprovalMode::Rehearse, &[Approval::Once]);
    setting.call("shell", json!({ "command": "rm old.o" })).await;
    assert_eq!(rehearsal.fate(), Fate::Committed);
    assert!(matches!(person.questions()[..], [Question::Rehearsed { .. }]));
    // What a rehearsal cannot show is asked about as ever.
    let (setting, person) = self::setting(&FakeRehearsal::new(), ApprovalMode::Rehearse, &[Approval::Deny]);
    let report = setting.call("shell", json!({ "command": "dd of=disk" })).await;
    assert_eq!(report.status, Status::Refused);
    assert!(matches!(person.questions()[..], [Question::Approval { .. }]));
}

#[tokio::test]
async fn what_never_runs_is_not_rehearsed_either() {
    let rehearsal = FakeRehearsal::new();
    let (setting, _) = setting(&rehearsal, ApprovalMode::All, &[]);
    let report = rehearsed(&setting, "mkfs /dev/sda").await;
    assert_eq!((report.status, rehearsal.fate()), (Status::Refused, Fate::Open));
}

#[tokio::test]
async fn where_nothing_can_be_rehearsed_nobody_is_offered_it() {
    let rehearsal = FakeRehearsal::new();
    let (setting, person) = setting(&rehearsal, ApprovalMode::Rehearse, &[Approval::Deny]);
    let plain = setting.inside(FakeEnvironment::new()).asking(&person);
    plain.call("shell", json!({ "command": "rm old.o" })).await;
    let [Question::Approval { rehearsable: false, explain, .. }] = &person.questions()[..] else { panic!() };
    assert!(explain.iter().any(|line| line.contains("nothing is rehearsed on this machine")), "{explain:?}");
}

#[tokio::test]
async fn what_could_not_be_rehearsed_is_asked_about_as_it_is() {
    for (mode, answers, questions) in [
        (ApprovalMode::Rehearse, &[Approval::Once][..], 1),
        (ApprovalMode::Ask, &[Approval::Rehearse, Approval::Once][..], 2),
    ] {
        let person = Arc::new(ScriptedPerson::new(answers.iter().map(|answer| Answer::Approval(*answer))));
        let setting = Setting::new([&clumsy_shell()]).inside(FakeEnvironment::new().rehearsing());
        let setting = setting.judged_by(Files).approving(mode).asking(&person);
        let report = setting.call("shell", json!({ "command": "rm old.o" })).await;
        assert_eq!(report.status, Status::Ok, "{report:?}");
        assert_eq!(serde_json::from_str::<Value>(&report.text).unwrap(), json!({ "exit_code": 0 }));
        let asked = person.questions();
        assert_eq!(asked.len(), questions);
        let Some(Question::Approval { rehearsable: false, explain, .. }) = asked.last() else { panic!("{asked:?}") };
        assert!(explain[0].contains("it could not be rehearsed first: it is too large"), "{explain:?}");
    }
}

#[tokio::test]
async fn a_no_to_what_could_not_be_rehearsed_runs_nothing() {
    let person = Arc::new(ScriptedPerson::new([Answer::Approval(Approval::Deny)]));
    let setting = Setting::new([&clumsy_shell()]).inside(FakeEnvironment::new().rehearsing());
    let setting = setting.judged_by(Files).approving(ApprovalMode::Rehearse).asking(&person);
    let report = setting.call("shell", json!({ "command": "rm old.o" })).await;
    assert_eq!(report.status, Status::Refused, "{report:?}");
}

#[tokio::test]
async fn a_rehearsal_that_the_model_wanted_and_that_cannot_be_made_is_its_to_hear_of() {
    let person = Arc::new(ScriptedPerson::new([]));
    let setting = Setting::new([&clumsy_shell()]).inside(FakeEnvironment::new().rehearsing());
    let setting = setting.judged_by(Files).approving(ApprovalMode::Rehearse).asking(&person);
    let report = rehearsed(&setting, "rm old.o").await;
    assert_eq!((report.status, person.questions().len()), (Status::Error, 0), "{report:?}");
}
