//! The book of approvals, and everything about a question that can fail: whatever does, nothing runs.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod book;
mod setting;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use book::{ALWAYS, Book, DENY, Entry, ONCE, Parts, SESSION, assert_refused, person, run, shell, talk};
use hermes_core::{
    Answer, ApprovalHook, ApprovalRequest, Asker, CancellationToken, Checkpointer, Concern, Effect, HookCall, Judge,
    JudgeRequest, Question, RequestEnd, ToolCx, Touches, Verdict,
};
use hermes_runtime::{ApprovalMode, Hooks, Status, Task};
use hermes_testkit::{FakeEnvironment, FakeTool, reports};
use serde_json::{Value, json};
use setting::{Setting, called, error};

#[test]
fn no_row_is_forgotten() {
    let rows = reports::rows(|id| id.starts_with("05-approval"));
    assert!(!rows.is_empty());
    assert_eq!(reports::forgotten(&rows), [] as [&str; 0], "neither tested nor deferred");
    let ours = reports::placed_in("crates/runtime/tests/approvals_book.rs");
    assert_eq!(reports::tested_here(&rows), ours, "cases/reports.places says what is tested here");
}

// ------------------------------------------------------------------------------------------------- strange askers

/// Does something while the question stands, then answers.
struct Meddler<F>(F, Answer);

#[async_trait]
impl<F: Fn() + Send + Sync> Asker for Meddler<F> {
    async fn ask(&self, _: Question, _: &CancellationToken) -> Answer {
        (self.0)();
        self.1.clone()
    }
}

fn meddler<F: Fn() + Send + Sync + 'static>(meddle: F) -> Arc<Meddler<F>> {
    Arc::new(Meddler(meddle, ONCE))
}

/// Never answers, and never looks whether anybody still waits.
struct Deaf;

#[async_trait]
impl Asker for Deaf {
    async fn ask(&self, _: Question, _: &CancellationToken) -> Answer {
        std::future::pending().await
    }
}

// -------------------------------------------------------------------------------------------------- the book fails

#[tokio::test]
async fn a_request_is_written_down_before_it_is_shown_and_its_end_before_anything_runs() {
    let book = Book::new();
    let seen = Arc::clone(&book);
    let tool = FakeTool::new("shell").effect(Effect::Execute);
    let tool = tool.touching(|arguments, _| Touches::executing(arguments["command"].as_str().unwrap()));
    let at_run = Arc::clone(&book);
    let shell = Arc::new(tool.run(move |_, _| {
        assert_eq!(at_run.ends().len(), 1, "it runs once the end is written");
        Ok(json!({}).into())
    }));
    let person = meddler(move || assert_eq!(seen.entries().len(), 1, "the question is in the book"));
    let setting = talk(&shell, &person, &book);
    assert_eq!(run(&setting, "rm a; sh b").await.status, Status::Ok);
    assert_eq!(book.ends(), [(RequestEnd::ApprovedOnce, "the user".into())]);
    let [request] = <[_; 1]>::try_from(book.requests()).unwrap();
    assert_eq!((request.tool.as_str(), request.subject.as_str()), ("shell", "rm a; sh b"));
    assert_eq!(request.doubts, ["rm a does harm", "sh b does harm"]);
    assert_eq!(request.expires.duration_since(request.opened).unwrap(), Duration::from_secs(60));
    assert_eq!(request.digest.len(), 64);
}

#[tokio::test]
async fn a_book_that_fails_means_no_whatever_the_person_says() {
    for (what, answer) in [("open", ONCE), ("close", ONCE), ("close", SESSION), ("grant", ALWAYS), ("close", ALWAYS)] {
        for book in [Book::failing(what), Book::panicking(what)] {
            let (shell, person) = (shell(), person([answer.clone(), ONCE]));
            let setting = talk(&shell, &person, &book);
            let report = run(&setting, "rm a").await;
            assert_refused(&report, "the book of approvals cannot be written");
            assert!(shell.calls().is_empty(), "{what} {answer:?}");
            let asked = usize::from(what != "open");
            assert_eq!(person.questions().len(), asked, "{what}: nobody is asked what cannot be written down");
            // And nothing of it is remembered.
            *book.fails.lock().unwrap() = Some(("grant", false));
            let granted = !book.granted.lock().unwrap().is_empty();
            run(&setting, "rm a").await;
            assert_eq!(person.questions().len(), asked + usize::from(!granted), "{what} {answer:?}");
        }
    }
}

#[tokio::test]
async fn the_book_never_says_that_something_is_approved_for_good_that_is_not() {
    let (shell, person, book) = (shell(), person([ALWAYS]), Book::failing("grant"));
    let setting = talk(&shell, &person, &book);
    assert_refused(&run(&setting, "rm a").await, "cannot be written");
    assert_eq!(book.only_end(), RequestEnd::Cancelled);
}

#[tokio::test]
async fn a_book_that_cannot_be_read_covers_nothing() {
    for book in [Book::failing("covers"), Book::panicking("covers")] {
        book.granted.lock().unwrap().insert("key of rm a".into());
        let (shell, person) = (shell(), person([DENY]));
        let setting = talk(&shell, &person, &book);
        assert_refused(&run(&setting, "rm a").await, "the user said no");
        assert_eq!(person.questions().len(), 1);
        assert!(shell.calls().is_empty());
    }
}

// --------------------------------------------------------------------------------------------------- the asker fails

#[tokio::test]
async fn an_asker_that_is_gone_leaves_without_answering_or_panics_means_no() {
    let (gone, silent) = (shell(), shell());
    let book = Book::new();
    let mut setting = talk(&gone, &person([]), &book);
    setting.task.asker = None;
    assert_refused(&run(&setting, "rm a").await, "nobody is here to ask");
    assert_eq!(book.ends(), [(RequestEnd::Denied, "nobody".into())]);

    let book = Book::new();
    let setting = talk(&silent, &person([Answer::None, Answer::Text("yes".into())]), &book);
    for _ in 0..2 {
        assert_refused(&run(&setting, "rm a").await, "nobody answered");
    }
    assert_eq!(book.ends(), [(RequestEnd::Expired, "nobody".into()), (RequestEnd::Expired, "nobody".into())]);

    let (crashed, book) = (shell(), Book::new());
    let setting = talk(&crashed, &meddler(|| panic!("the window was closed")), &book);
    assert_refused(&run(&setting, "rm a").await, "the question could not be asked");
    assert_eq!(book.only_end(), RequestEnd::Expired);
    assert!(gone.calls().is_empty() && silent.calls().is_empty() && crashed.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_in_time_expires() {
    let (shell, book) = (shell(), Book::new());
    let mut setting = talk(&shell, &Arc::new(Deaf), &book);
    setting.task.approval.expires = Duration::from_secs(7);
    let began = tokio::time::Instant::now();
    assert_refused(&run(&setting, "rm a").await, "nobody answered within 7 s; silence is no yes");
    assert_eq!(began.elapsed(), Duration::from_secs(7));
    assert_eq!(book.ends(), [(RequestEnd::Expired, "nobody".into())]);
    assert!(shell.calls().is_empty());
}

#[tokio::test]
async fn a_turn_that_is_stopped_withdraws_its_question_at_once() {
    let (shell, book) = (shell(), Book::new());
    let setting = talk(&shell, &Arc::new(Deaf), &book);
    let stop = async {
        while book.entries().is_empty() {
            tokio::task::yield_now().await;
        }
        setting.cancel.cancel();
    };
    let (report, ()) = tokio::join!(run(&setting, "rm a"), stop);
    assert_eq!(report.status, Status::NotStarted, "{}", report.text);
    assert_eq!(book.ends(), [(RequestEnd::Cancelled, "nobody".into())]);
    assert!(shell.calls().is_empty());
}

#[tokio::test]
async fn a_yes_that_comes_with_the_stop_is_none() {
    let (shell, book) = (shell(), Book::new());
    let mut setting = talk(&shell, &person([]), &book);
    let cancel = setting.cancel.clone();
    setting.task.asker = Some(meddler(move || cancel.cancel()));
    assert_eq!(run(&setting, "rm a").await.status, Status::NotStarted);
    assert!(shell.calls().is_empty());
    assert_eq!(book.ends().len(), 1);
}

#[tokio::test]
async fn a_question_whose_turn_is_dropped_ends_as_cancelled() {
    let (shell, book) = (shell(), Book::new());
    let setting = talk(&shell, &Arc::new(Deaf), &book);
    let call = called("a", "shell", &json!({ "command": "rm a" }));
    let scope = setting.scope();
    tokio::select! {
        biased;
        _ = setting.dispatcher.call(&call, &scope) => panic!("it waits"),
        () = async { while book.entries().is_empty() { tokio::task::yield_now().await } } => {}
    }
    assert_eq!(book.ends(), [(RequestEnd::Cancelled, "nobody".into())]);
    assert!(shell.calls().is_empty());
}

// ---------------------------------------------------------------------------------------------------- watchers fail

/// Panics at everything, after it has noted it.
#[derive(Default)]
struct Nervous(Mutex<Vec<(String, Option<RequestEnd>)>>);

impl ApprovalHook for Nervous {
    fn asked(&self, request: &ApprovalRequest) {
        self.0.lock().unwrap().push((request.id.clone(), None));
        panic!("a question!");
    }

    fn ended(&self, request: &ApprovalRequest, end: RequestEnd) {
        self.0.lock().unwrap().push((request.id.clone(), Some(end)));
        panic!("an answer!");
    }
}

#[tokio::test]
async fn watchers_hear_of_every_request_and_change_nothing_by_panicking() {
    for (answer, status, end) in
        [(ONCE, Status::Ok, RequestEnd::ApprovedOnce), (DENY, Status::Refused, RequestEnd::Denied)]
    {
        let (shell, book, nervous) = (shell(), Book::new(), Arc::new(Nervous::default()));
        let setting = Setting::new([&shell]).judged_by(Parts).asking(&person([answer]));
        let hooks = Hooks { approval: vec![Arc::clone(&nervous) as _, Arc::clone(&nervous) as _], ..Hooks::default() };
        let mut setting = setting.with_hooks(hooks);
        setting.task.approval.book = Some(Arc::clone(&book) as _);
        assert_eq!(run(&setting, "rm a").await.status, status);
        assert_eq!(book.only_end(), end);
        let id = book.requests()[0].id.clone();
        let (asked, ended) = ((id.clone(), None), (id, Some(end)));
        assert_eq!(*nervous.0.lock().unwrap(), [asked.clone(), asked, ended.clone(), ended]);
    }
}

// --------------------------------------------------------------------------------- what was asked about has changed

#[tokio::test]
async fn a_yes_is_for_the_directory_and_the_environment_that_were_shown() {
    type Change = fn(&FakeEnvironment);
    let changes: [Change; 2] = [|there| there.change_directory("/elsewhere"), FakeEnvironment::change_variables];
    for change in changes {
        let (shell, book) = (shell(), Book::new());
        let mut setting = talk(&shell, &person([]), &book);
        let there = Arc::clone(&setting.environment);
        setting.task.asker = Some(meddler(move || change(&there)));
        assert_refused(&run(&setting, "rm a").await, "its directory or environment has changed since it was asked");
        assert_eq!(book.only_end(), RequestEnd::Cancelled);
        assert!(shell.calls().is_empty());
        // The next try is about what is there now.
        setting.task.asker = Some(person([ONCE]));
        assert_eq!(run(&setting, "rm a").await.status, Status::Ok);
    }
}

#[tokio::test]
async fn a_yes_is_for_the_place_that_a_link_led_to() {
    let (shell, book) = (shell(), Book::new());
    let mut setting = talk(&shell, &person([]), &book);
    setting.environment.lead("/project/link", "/project/build");
    let there = Arc::clone(&setting.environment);
    setting.task.asker = Some(meddler(move || there.lead("/project/link", "/etc")));
    let report = setting.call("shell", json!({ "command": "rm a", "workdir": "link" })).await;
    assert_refused(&report, "a path in it leads elsewhere");
    assert_eq!(book.only_end(), RequestEnd::Cancelled);
    assert!(shell.calls().is_empty());
}

/// Says of every call what was last put here, as a judge does that finds a link or a script changed.
struct Moody(Arc<Mutex<Verdict>>);

impl Judge for Moody {
    fn judge(&self, _: &JudgeRequest<'_>) -> Verdict {
        self.0.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn a_yes_is_for_what_the_judge_said_when_it_was_asked_for() {
    let would = |what: &str| Verdict::Ask(Concern::new(what, None, None));
    let (allowed, forbidden) = (Verdict::Allow, Verdict::Refuse("it formats the disk".into()));
    for (then, refusal) in [
        (would("deletes /srv/b"), Some("it would do something else since it was asked about")),
        (forbidden, Some("it formats the disk")),
        (would("deletes /srv/a"), None),
        (allowed, None),
    ] {
        let (shell, book, mood) = (shell(), Book::new(), Arc::new(Mutex::new(would("deletes /srv/a"))));
        let (moody, later) = (Moody(Arc::clone(&mood)), move || *mood.lock().unwrap() = then.clone());
        let mut setting = Setting::new([&shell]).judged_by(moody).asking(&meddler(later));
        setting.task.approval.book = Some(Arc::clone(&book) as _);
        let report = run(&setting, "rm a").await;
        match refusal {
            Some(why) => {
                assert_refused(&report, why);
                assert_eq!(book.only_end(), RequestEnd::Cancelled);
                assert!(shell.calls().is_empty());
            }
            None => assert_eq!(report.status, Status::Ok, "{}", report.text),
        }
    }
}

/// Makes a snapshot, during which something happens.
struct Slow<F>(F);

#[async_trait]
impl<F: Fn() + Send + Sync> Checkpointer for Slow<F> {
    async fn before(&self, _: HookCall<'_>, _: &Touches, _: &ToolCx) -> Result<(), String> {
        (self.0)();
        Ok(())
    }
}

#[tokio::test]
async fn what_changes_between_the_answer_and_the_run_is_seen_when_it_runs() {
    type Change = fn(&FakeEnvironment);
    let changes: [(Change, Value); 3] = [
        (|there| there.change_directory("/elsewhere"), json!({ "command": "rm a" })),
        (FakeEnvironment::change_variables, json!({ "command": "rm a" })),
        (|there| there.lead("/project/link", "/etc"), json!({ "command": "rm a", "workdir": "link" })),
    ];
    for (change, arguments) in changes {
        let (shell, book) = (shell(), Book::new());
        let setting = talk(&shell, &person([ONCE]), &book);
        setting.environment.lead("/project/link", "/project/build");
        let there = Arc::clone(&setting.environment);
        let hooks = Hooks { checkpointer: Some(Arc::new(Slow(move || change(&there)))), ..Hooks::default() };
        let setting = setting.with_hooks(hooks);
        assert_refused(&setting.call("shell", arguments).await, "since it was asked about");
        assert!(shell.calls().is_empty());
    }
}

#[tokio::test]
async fn a_request_is_bound_to_everything_that_decides_what_happens() {
    let (shell, book) = (shell(), Book::new());
    let setting = talk(&shell, &person([]), &book);
    let ask = async |arguments: Value| {
        setting.call("shell", arguments).await;
        book.requests().last().unwrap().digest.clone()
    };
    let first = ask(json!({ "command": "rm a" })).await;
    assert_eq!(ask(json!({ "command": "rm a" })).await, first, "the same call");
    let mut digests = BTreeSet::from([first]);
    for arguments in [
        json!({ "command": "rm  a" }),
        json!({ "command": "rm a", "workdir": "/tmp" }),
        json!({ "command": "rm a", "timeout": 5 }),
    ] {
        assert!(digests.insert(ask(arguments.clone()).await), "{arguments}");
    }
    setting.environment.change_variables();
    assert!(digests.insert(ask(json!({ "command": "rm a" })).await));
    setting.environment.change_directory("/srv");
    assert!(digests.insert(ask(json!({ "command": "rm a" })).await));
}

// ------------------------------------------------------------------------------------------------- what a yes covers

// 05-approval-10
#[tokio::test]
async fn approval_10_every_part_needs_its_own_yes_and_one_that_never_runs_stops_all_of_it() {
    let (shell, book) = (shell(), Book::new());
    book.granted.lock().unwrap().insert("key of rm a".into());
    let (asked, setting) = {
        let person = person([DENY]);
        (Arc::clone(&person), talk(&shell, &person, &book))
    };
    assert_eq!(run(&setting, "ls; rm a").await.status, Status::Ok, "what is approved for good runs");
    assert_refused(&run(&setting, "rm a; rm b").await, "the user said no");
    assert_eq!(book.requests()[0].doubts, ["rm b does harm"], "the part that is not covered is asked about");
    let report = run(&setting, "rm a; mkfs x").await;
    assert_refused(&report, "it formats the disk");
    assert!(report.forbidden);
    assert_eq!((shell.calls().len(), asked.questions().len()), (1, 1));
}

#[tokio::test]
async fn always_goes_to_the_book_and_can_be_taken_back_there() {
    let (shell, book) = (shell(), Book::new());
    let person = person([ALWAYS, DENY]);
    let setting = talk(&shell, &person, &book);
    for _ in 0..2 {
        assert_eq!(run(&setting, "rm a; rm b").await.status, Status::Ok);
    }
    assert_eq!(book.only_end(), RequestEnd::ApprovedAlways);
    let entries = book.entries();
    let granted: Vec<&Entry> = entries.iter().filter(|entry| matches!(entry, Entry::Granted(_))).collect();
    assert_eq!(granted, [&Entry::Granted("key of rm a".into()), &Entry::Granted("key of rm b".into())]);
    // Another conversation with the same book needs no question either.
    let mut other = talk(&shell, &person, &book);
    other.task.id = "other".into();
    assert_eq!(run(&other, "rm a").await.status, Status::Ok);
    book.granted.lock().unwrap().clear();
    assert_refused(&run(&setting, "rm a").await, "the user said no");
}

#[tokio::test]
async fn a_yes_is_never_wider_than_what_was_offered() {
    // Each command with what is offered, and what an answer for longer comes down to.
    for (command, offered, lasting, answer, end) in [
        ("rm a; sh b", "", false, ALWAYS, RequestEnd::ApprovedOnce),
        ("rm a; sh b", "", false, SESSION, RequestEnd::ApprovedOnce),
        ("rm a; make b", "whatever rm a does; whatever make b does", false, ALWAYS, RequestEnd::ApprovedSession),
        ("rm a; rm a", "whatever rm a does", true, ALWAYS, RequestEnd::ApprovedAlways),
    ] {
        let (shell, book) = (shell(), Book::new());
        let person = person([answer, DENY]);
        let setting = talk(&shell, &person, &book);
        assert_eq!(run(&setting, command).await.status, Status::Ok);
        let questions = person.questions();
        let Question::Approval { scope, lasting: for_good, .. } = &questions[0] else { panic!("{questions:?}") };
        assert_eq!((scope.as_str(), *for_good), (offered, lasting), "{command}");
        assert_eq!(book.only_end(), end, "{command}");
        let again = run(&setting, "rm a").await.status;
        let expected = if end == RequestEnd::ApprovedOnce { Status::Refused } else { Status::Ok };
        assert_eq!(again, expected, "{command}: what was not offered is not remembered");
    }
}

// ----------------------------------------------------------------------------------------------- several at the same time

// 05-approval-26
#[tokio::test]
async fn approval_26_a_yes_for_longer_releases_the_same_calls_that_wait() {
    for answer in [ALWAYS, SESSION] {
        let (shell, book) = (shell(), Book::new());
        let person = person([answer]);
        let setting = talk(&shell, &person, &book);
        let ids = ["1", "2", "3", "4", "5"];
        let calls = ids.map(|id| called(id, "shell", &json!({ "command": "rm a" })));
        let reports = setting.call_all(&calls).await;
        assert!(reports.iter().all(|report| report.status == Status::Ok), "{reports:?}");
        assert_eq!((person.questions().len(), shell.calls().len(), book.ends().len()), (1, 5, 1));
    }
}

// 05-approval-21
#[tokio::test]
async fn approval_21_a_decision_is_about_the_request_it_names_and_no_other() {
    let (shell, book) = (shell(), Book::new());
    let person = person([ONCE, DENY, ONCE]);
    let setting = talk(&shell, &person, &book);
    let calls =
        ["rm cache", "rm table", "rm log"].map(|command| called(command, "shell", &json!({ "command": command })));
    let reports = setting.call_all(&calls).await;
    let statuses: Vec<Status> = reports.iter().map(|report| report.status).collect();
    assert_eq!(statuses, [Status::Ok, Status::Refused, Status::Ok]);
    let ran: Vec<String> =
        shell.calls().iter().map(|call| call.arguments["command"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ran, ["rm cache", "rm log"]);
    // Each question carries the id of its request, and each request its own end.
    let asked: Vec<String> = person
        .questions()
        .into_iter()
        .map(|question| match question {
            Question::Approval { id, .. } => id,
            Question::Rehearsed { .. } | Question::Clarify { .. } => panic!("{question:?}"),
        })
        .collect();
    let requests: Vec<String> = book.requests().iter().map(|request| request.id.clone()).collect();
    assert_eq!(asked, requests);
    let ends: Vec<RequestEnd> = book.ends().into_iter().map(|(end, _)| end).collect();
    assert_eq!(ends, [RequestEnd::ApprovedOnce, RequestEnd::Denied, RequestEnd::ApprovedOnce]);
}

#[tokio::test]
async fn requests_of_conversations_side_by_side_have_ids_of_their_own() {
    let (shell, book) = (shell(), Book::new());
    let settings: Vec<Setting> = (0..8).map(|_| talk(&shell, &person([]), &book)).collect();
    for _ in 0..25 {
        futures::future::join_all(settings.iter().map(|setting| run(setting, "rm a"))).await;
    }
    assert_eq!(book.ends().len(), 200);
}

// ------------------------------------------------------------------------------------------------------ nobody there

// 05-approval-24
#[tokio::test]
async fn approval_24_with_nobody_to_ask_a_flagged_command_is_refused_and_written_down() {
    let (shell, book) = (shell(), Book::new());
    let mut setting = Setting::new([&shell]).judged_by(Parts);
    setting.task.approval.book = Some(Arc::clone(&book) as _);
    assert_refused(&run(&setting, "rm -rf ws/build").await, "nobody is here to ask");
    assert_eq!(book.ends(), [(RequestEnd::Denied, "nobody".into())]);
    assert_eq!(run(&setting, "ls").await.status, Status::Ok, "the harmless one runs");
    assert_eq!(shell.calls().len(), 1);
}

// 05-approval-42
#[tokio::test]
async fn approval_42_whoever_embeds_this_and_sets_nothing_gets_a_no() {
    let shell = shell();
    let mut setting = Setting::new([&shell]).judged_by(Parts);
    setting.task = Task::new(Arc::clone(&setting.environment) as _);
    setting.approve = ApprovalMode::default();
    assert_refused(&run(&setting, "rm -rf ws/d").await, "nobody is here to ask");
    assert!(shell.calls().is_empty());
}

// 05-approval-25
#[tokio::test]
async fn approval_25_the_mode_is_a_value_of_the_call_and_no_variable_changes_it() {
    // The same dispatcher and task take calls in different modes; nothing about the process decides.
    let (shell, book) = (shell(), Book::new());
    let person = person([ONCE]);
    let mut setting = talk(&shell, &person, &book);
    assert_eq!(run(&setting, "rm a").await.status, Status::Ok);
    setting.approve = ApprovalMode::None;
    assert_refused(&run(&setting, "rm a").await, "nothing that needs approval runs here");
    setting.approve = ApprovalMode::All;
    assert_eq!(run(&setting, "rm a").await.status, Status::Ok);
    setting.approve = ApprovalMode::Ask;
    assert_refused(&run(&setting, "rm a").await, "nobody answered");
    assert_eq!(person.questions().len(), 2);
}

// 05-approval-27
#[tokio::test]
async fn approval_27_an_answer_that_is_none_is_said_to_the_model_and_never_counts_as_a_no_of_the_user() {
    let (shell, book) = (shell(), Book::new());
    let person = person([Answer::Text("option 17".into()), Answer::None, ONCE]);
    let setting = talk(&shell, &person, &book);
    for _ in 0..2 {
        let report = run(&setting, "rm a").await;
        assert_refused(&report, "nobody answered");
        assert!(!error(&report).contains("said no"), "{}", error(&report));
        assert_eq!(report.stop, None, "the turn goes on");
    }
    assert_eq!(run(&setting, "rm a").await.status, Status::Ok);
    let ends: Vec<RequestEnd> = book.ends().into_iter().map(|(end, _)| end).collect();
    assert_eq!(ends, [RequestEnd::Expired, RequestEnd::Expired, RequestEnd::ApprovedOnce]);
}
