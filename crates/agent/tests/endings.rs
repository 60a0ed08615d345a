//! The ways a turn can end, and that the next one can always begin.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod session;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hermes_agent::{EndReason, Event, Retry};
use hermes_core::{Answer, Approval, Asker, CancellationToken, Effect, Message, ModelErrorKind, Question};
use hermes_core::{StopTurn, ToolError};
use hermes_runtime::Status;
use hermes_testkit::{Call, FakeTool, ModelServer, Reply, ScriptedPerson};
use serde_json::{Value, json};
use session::{Plan, Session, assert_accepted};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn todo() -> Call {
    Call::new("todo", json!({}))
}

fn last_words(session: &Session) -> &str {
    match session.agent.messages().last() {
        Some(Message::Assistant { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

/// One more turn works, and what it sends is acceptable.
async fn assert_goes_on(session: &mut Session, server: &ModelServer) {
    let end = session.turn("Are you still there?").await.unwrap();
    assert_eq!((end.answer.as_str(), end.reason), ("Still here.", EndReason::Answered));
    assert_accepted(&server.requests().last().unwrap().body);
}

fn still_here() -> Reply {
    Reply::text("Still here.")
}

// --------------------------------------------------------------------------------------------- the model has its say

#[tokio::test]
async fn an_answer_that_was_cut_off_or_filtered_says_so_and_is_kept() {
    for (finish, reason) in [("length", EndReason::CutOff), ("content_filter", EndReason::Filtered)] {
        for streamed in [true, false] {
            let server = ModelServer::start([Reply::text("It begins").finish(finish), still_here()]);
            let plan = Plan::new();
            let mut session = if streamed { plan } else { plan.not_streamed() }.with_model(&server);
            let end = session.turn("tell me").await.unwrap();
            assert_eq!((end.answer.as_str(), end.reason.clone()), ("It begins", reason.clone()));
            assert!(end.is_partial());
            assert_eq!(last_words(&session), "It begins");
            assert_goes_on(&mut session, &server).await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_before_its_first_word_is_not_asked_for_again() {
    let server = ModelServer::start([Reply::text("<think>hm").finish("length"), still_here()]);
    let mut session = Plan::new().with_model(&server);
    let end = session.turn("tell me").await.unwrap();
    assert_eq!((end.answer.as_str(), end.reason, end.requests), ("", EndReason::CutOff, 1));
    assert_goes_on(&mut session, &server).await;
}

#[tokio::test]
async fn a_model_that_says_nothing_is_asked_again_and_three_times_nothing_is_an_error() {
    let server = ModelServer::start([Reply::text(""), Reply::text("<think>hm</think>"), Reply::text("Sorry: yes.")]);
    let mut session = Plan::new().with_model(&server);
    let end = session.turn("yes?").await.unwrap();
    assert_eq!((end.answer.as_str(), end.requests), ("Sorry: yes.", 3));

    let server = ModelServer::start([Reply::text(""), Reply::text(" \n"), Reply::text(""), still_here()]);
    let mut session = Plan::new().with_model(&server);
    let error = session.turn("yes?").await.unwrap_err();
    assert_eq!((error.kind, server.requests().len()), (ModelErrorKind::Garbled, 3));
    assert!(error.message.contains("nothing at all"), "{error}");
    assert_eq!(session.agent.messages().len(), 1, "nothing happened, so the message is taken back");
    assert_goes_on(&mut session, &server).await;
}

#[tokio::test]
async fn an_empty_answer_that_spends_the_budget_leaves_a_conversation_that_alternates() {
    let server = ModelServer::start([Reply::text(""), Reply::text("Nothing was done."), still_here()]);
    let mut session = Plan::new().with_budget(1).with_model(&server);
    let end = session.turn("work").await.unwrap();
    assert_eq!(end.reason, EndReason::BudgetSpent);
    assert_accepted(&server.requests()[1].body);
    assert_goes_on(&mut session, &server).await;
}

#[tokio::test]
async fn an_error_after_nothing_but_silence_takes_the_message_back_too() {
    let server = ModelServer::start([Reply::text(""), Reply::status(400, "{}"), still_here()]);
    let mut session = Plan::new().with_budget(1).with_model(&server);
    assert_eq!(session.turn("work").await.unwrap_err().kind, ModelErrorKind::Rejected);
    // Neither a call nor a word: nothing happened, and the message can be sent again.
    assert_eq!(session.agent.messages().len(), 1, "{:#?}", session.agent.messages());
    assert_goes_on(&mut session, &server).await;
}

#[tokio::test]
async fn a_summary_that_says_nothing_still_closes_the_turn() {
    let server = ModelServer::start([Reply::calls([todo()]), Reply::text(""), still_here()]);
    let mut session = Plan::new().with_budget(1).with_model(&server);
    let end = session.turn("work").await.unwrap();
    assert_eq!((end.answer.as_str(), end.reason, server.requests().len()), ("", EndReason::BudgetSpent, 2));
    assert_goes_on(&mut session, &server).await;
}

#[tokio::test]
async fn a_summary_that_fails_is_an_error_and_still_closes_the_turn() {
    let server = ModelServer::start([Reply::calls([todo()]), Reply::status(400, "{}"), still_here()]);
    let mut session = Plan::new().with_budget(1).with_model(&server);
    assert_eq!(session.turn("work").await.unwrap_err().kind, ModelErrorKind::Rejected);
    assert_goes_on(&mut session, &server).await;
}

// -------------------------------------------------------------------------------------------------- the model fails

#[tokio::test]
async fn an_error_before_anything_happened_takes_the_message_back() {
    let server =
        ModelServer::start([Reply::text("Hello."), Reply::status(400, "{}"), Reply::status(401, "{}"), still_here()]);
    let mut session = Plan::new().with_model(&server);
    session.turn("hi").await.unwrap();
    let before = session.agent.messages().to_vec();
    for _ in 0..2 {
        session.turn("and now?").await.unwrap_err();
        assert_eq!(session.agent.messages(), before);
    }
    assert_goes_on(&mut session, &server).await;
    assert!(!server.requests()[3].body.to_string().contains("and now?"));
}

#[tokio::test]
async fn an_error_after_something_happened_keeps_it_and_closes_the_turn() {
    let write = Call::new("write_file", json!({ "path": "a.txt", "content": "done\n" }));
    let server = ModelServer::start([Reply::calls([write]), Reply::status(400, "{}"), still_here()]);
    let mut session = Plan::new().with_model(&server);
    let error = session.turn("write it").await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Rejected);
    assert_eq!(session.home.read("a.txt"), "done\n");
    assert!(last_words(&session).contains("broke off"), "{}", last_words(&session));
    assert_goes_on(&mut session, &server).await;
    // The model still knows what it did.
    assert!(server.requests()[2].body.to_string().contains("bytes_written"));
}

// --------------------------------------------------------------------------------------------------- the person stops

#[tokio::test]
async fn a_stop_while_the_model_is_silent_ends_the_turn_at_once() {
    for streamed in [true, false] {
        let server = Arc::new(ModelServer::start([Reply::text("never").hang(), still_here()]));
        let plan = Plan::new();
        let mut session = if streamed { plan } else { plan.not_streamed() }.with_model(&server);
        let cancel = CancellationToken::new();
        let (waiting, stop) = (Arc::clone(&server), cancel.clone());
        let stopper = std::thread::spawn(move || {
            waiting.wait_for_requests(1);
            stop.cancel();
        });
        let end = session.turn_until("hello?", &cancel).await.unwrap();
        stopper.join().unwrap();
        assert_eq!((end.reason, end.answer.as_str(), end.requests), (EndReason::Cancelled, "", 1));
        assert_eq!(session.heard.restarts(), [], "a stop is no failure that is repeated");
        assert!(last_words(&session).contains("stopped"), "{}", last_words(&session));
        assert_goes_on(&mut session, &server).await;
    }
}

#[tokio::test]
async fn a_stop_during_the_wait_for_another_attempt_ends_the_turn_at_once() {
    let server = ModelServer::start([Reply::status(503, "{}"), still_here()]);
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let stop_at_the_wait = move |event: &Event<'_>| {
        if matches!(event, Event::Restart { .. }) {
            stop.cancel();
        }
    };
    let a_minute = Retry { attempts: 3, base: Duration::from_secs(60) };
    let mut session = Plan::new().with_retry(a_minute).reacting(stop_at_the_wait).with_model(&server);
    let end = session.turn_until("hello?", &cancel).await.unwrap();
    assert_eq!((end.reason, server.requests().len()), (EndReason::Cancelled, 1));
    assert_goes_on(&mut session, &server).await;
}

#[tokio::test]
async fn a_stop_before_the_turn_asks_nobody() {
    let server = ModelServer::start([still_here()]);
    let mut session = Plan::new().with_model(&server);
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert_eq!(session.turn_until("hello?", &cancel).await.unwrap().reason, EndReason::Cancelled);
    assert_goes_on(&mut session, &server).await;
}

#[tokio::test]
async fn a_stop_while_a_command_runs_ends_it_with_all_its_children_and_answers_every_call() {
    // The command holds a connection open, and so do its children: when it closes, they are gone.
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo up >&3; (sleep 300; true) & sleep 300; echo late");
    let server = ModelServer::start([
        Reply::calls([
            todo(),
            Call::new("terminal", json!({ "command": command })),
            Call::new("write_file", json!({ "path": "late.txt", "content": "x" })),
            todo(),
        ])
        .with_text("I will wait."),
        still_here(),
    ]);
    let mut session = Plan::new().with_model(&server);
    let cancel = CancellationToken::new();
    let child = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut word = [0; 3];
        connection.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"up\n");
        cancel.cancel();
        let mut rest = Vec::new();
        connection.read_to_end(&mut rest).await.unwrap();
        connection.shutdown().await.ok();
    };
    let child = tokio::time::timeout(Duration::from_secs(30), child);
    let (end, gone) = tokio::join!(session.turn_until("wait", &cancel), child);
    gone.expect("the command and its children are gone");
    let end = end.unwrap();
    assert_eq!((end.reason, end.requests, end.calls), (EndReason::Cancelled, 1, 4), "nobody is asked what to do next");

    let ends = session.heard.ends();
    let expected = [
        ("call_1", Status::Ok),
        ("call_2", Status::Interrupted),
        ("call_3", Status::NotStarted),
        ("call_4", Status::NotStarted),
    ];
    // Whatever waited is answered at once; the command gets a moment to end.
    let mut ends = ends;
    ends.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(ends, expected.map(|(id, status)| (id.to_owned(), status)));
    let stopped: Value = serde_json::from_str(session.result("call_2")).unwrap();
    assert_eq!(stopped["exit_code"], 130);
    assert!(!session.home.work().join("late.txt").exists());
    assert_eq!(session.results().len(), 4);
    assert_goes_on(&mut session, &server).await;
}

/// Answers the question by stopping the turn.
struct Stopper(CancellationToken, Answer);

#[async_trait]
impl Asker for Stopper {
    async fn ask(&self, _: Question, _: &CancellationToken) -> Answer {
        self.0.cancel();
        self.1.clone()
    }
}

#[tokio::test]
async fn a_stop_at_the_question_runs_nothing_whatever_the_answer() {
    for answer in [Answer::None, Answer::Approval(Approval::Session)] {
        let write = |path: &str| Call::new("write_file", json!({ "path": path, "content": "x" }));
        let server = ModelServer::start([Reply::calls([write("a.txt"), write("b.txt")]), still_here()]);
        let cancel = CancellationToken::new();
        let mut session = Plan::new().asking(&Arc::new(Stopper(cancel.clone(), answer))).with_model(&server);
        let end = session.turn_until("write", &cancel).await.unwrap();
        assert_eq!(end.reason, EndReason::Cancelled);
        assert!(!session.home.work().join("a.txt").exists() && !session.home.work().join("b.txt").exists());
        assert_goes_on(&mut session, &server).await;
    }
}

// ----------------------------------------------------------------------------------------------------- calls end it

#[tokio::test]
async fn a_call_that_ends_the_turn_leaves_every_call_answered() {
    for (stop, reason) in [
        (StopTurn::Broken("the disk is full".into()), EndReason::Broken("the disk is full".into())),
        (StopTurn::Cancelled, EndReason::Cancelled),
    ] {
        let bomb = Arc::new(FakeTool::new("bomb").result(Err(ToolError::Stop(stop))));
        let calls = [todo(), Call::new("bomb", json!({})), todo()];
        let server = ModelServer::start([Reply::calls(calls), still_here()]);
        let mut session = Plan::new().with_tool(&bomb).with_model(&server);
        assert_eq!(session.turn("go").await.unwrap().reason, reason);
        assert_eq!((session.results().len(), server.requests().len()), (3, 1));
        assert_goes_on(&mut session, &server).await;
    }
}

#[tokio::test]
async fn a_refusal_is_told_to_the_model_and_counted_and_the_turn_goes_on() {
    let person = Arc::new(ScriptedPerson::new([Answer::Approval(Approval::Deny), Answer::Approval(Approval::Once)]));
    let write = |path: &str| Call::new("write_file", json!({ "path": path, "content": "x" }));
    let server = ModelServer::start([
        Reply::calls([write("no.txt"), write("yes.txt"), write("silence.txt")]),
        Reply::text("Two were refused."),
    ]);
    let mut session = Plan::new().asking(&person).with_model(&server);
    let end = session.turn("write").await.unwrap();
    assert_eq!((end.reason.clone(), end.calls, end.refused), (EndReason::Answered, 3, 2));
    assert!(end.is_partial(), "less was done than was asked for");
    assert_eq!(person.questions().len(), 3);
    assert!(session.result("call_1").contains("the user said no"));
    assert!(session.result("call_3").contains("nobody answered"));
    let there = |path: &str| session.home.work().join(path).exists();
    assert_eq!((there("no.txt"), there("yes.txt"), there("silence.txt")), (false, true, false));
}

#[tokio::test]
async fn ids_that_come_again_are_told_apart_and_stay_paired() {
    let say = |what: &str| Call::new("say", json!({ "what": what })).with_id("same");
    let server = ModelServer::start([
        Reply::calls([say("one"), say("two")]),
        Reply::calls([say("three")]),
        Reply::text("Done."),
        Reply::calls([say("four")]),
        Reply::text("Done."),
        still_here(),
    ]);
    let echo = FakeTool::new("say").effect(Effect::None).run(|arguments, _| Ok(arguments["what"].clone().into()));
    let echo = Arc::new(echo);
    let mut session = Plan::new().with_tool(&echo).with_model(&server);
    session.turn("say it").await.unwrap();
    session.turn("again").await.unwrap();
    let said: Vec<&str> = session.results().iter().map(|(_, result)| *result).collect();
    assert_eq!(said, ["\"one\"", "\"two\"", "\"three\"", "\"four\""]);
    // The tool saw the id that its result has.
    let seen: Vec<String> = echo.calls().into_iter().map(|call| call.id).collect();
    assert_eq!(seen, session.results().iter().map(|(id, _)| *id).collect::<Vec<_>>());
    for request in server.requests() {
        assert_accepted(&request.body);
    }
    assert_goes_on(&mut session, &server).await;
}

#[tokio::test]
async fn what_the_model_said_beside_its_calls_is_its_answer_where_nothing_better_follows() {
    let stop = Arc::new(FakeTool::new("stop").result(Err(ToolError::Stop(StopTurn::Broken("no".into())))));
    let server = ModelServer::start([Reply::calls([Call::new("stop", json!({}))]).with_text("I will stop now.")]);
    let mut session = Plan::new().with_tool(&stop).with_model(&server);
    assert_eq!(session.turn("go").await.unwrap().answer, "I will stop now.");
}
