//! Smart approval: a model looks first, and whatever goes wrong with it leaves the decision to a person.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod book;
mod setting;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use book::{Book, DENY, ONCE, assert_refused, person, run, shell, talk};
use hermes_core::{ApprovalReviewer, CancellationToken, HookDecision, Opinion, Question, RequestEnd, Review};
use hermes_runtime::{ApprovalMode, Hooks, Status};
use hermes_testkit::hooks::Gate;
use hermes_testkit::{FakeTool, ScriptedPerson};
use setting::Setting;

/// Says what a test wrote down, and keeps what it was shown.
#[derive(Default)]
struct Reviewer {
    says: Vec<(&'static str, Opinion)>,
    fails: Option<&'static str>,
    saw: Mutex<Vec<(String, Vec<String>)>>,
}

impl Reviewer {
    fn saying(says: &[(&'static str, Opinion)]) -> Arc<Self> {
        Arc::new(Self { says: says.to_vec(), ..Self::default() })
    }

    fn failing(how: &'static str) -> Arc<Self> {
        Arc::new(Self { fails: Some(how), ..Self::default() })
    }
}

#[async_trait]
impl ApprovalReviewer for Reviewer {
    async fn review(&self, review: &Review<'_>, _: &CancellationToken) -> Result<Vec<(String, Opinion)>, String> {
        let doubts = review.doubts.iter().map(|doubt| doubt.what.clone()).collect();
        self.saw.lock().unwrap().push((review.subject.to_owned(), doubts));
        match self.fails {
            Some("hangs") => std::future::pending().await,
            Some("panics") => panic!("overworked"),
            Some(why) => Err(why.into()),
            None => Ok(self.says.iter().map(|(id, opinion)| ((*id).to_owned(), *opinion)).collect()),
        }
    }
}

fn smart(shell: &Arc<FakeTool>, person: &Arc<ScriptedPerson>, book: &Arc<Book>, reviewer: &Arc<Reviewer>) -> Setting {
    let mut setting = talk(shell, person, book).approving(ApprovalMode::Smart);
    setting.task.approval.reviewer = Some(Arc::clone(reviewer) as _);
    setting
}

fn told(person: &ScriptedPerson) -> Vec<String> {
    match &person.questions()[..] {
        [Question::Approval { explain, .. }] => explain.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_the_reviewer_finds_harmless_throughout_runs_this_once_without_a_question() {
    let (shell, book, person) = (shell(), Book::new(), person([]));
    let reviewer = Reviewer::saying(&[("1", Opinion::Approve), ("2", Opinion::Approve)]);
    let setting = smart(&shell, &person, &book, &reviewer);
    for _ in 0..2 {
        assert_eq!(run(&setting, "rm a; sh b").await.status, Status::Ok);
    }
    assert!(person.questions().is_empty());
    assert_eq!(reviewer.saw.lock().unwrap().len(), 2, "nothing of it is remembered");
    assert_eq!(book.ends(), vec![(RequestEnd::ApprovedOnce, "the reviewer".to_owned()); 2]);
}

#[tokio::test(start_paused = true)]
async fn a_reviewer_that_is_against_it_unclear_failing_or_hanging_leaves_it_to_the_person() {
    let one = ("1", Opinion::Approve);
    for (reviewer, says) in [
        (Reviewer::saying(&[one, ("2", Opinion::Deny)]), "the reviewer advises against it"),
        (Reviewer::saying(&[("1", Opinion::Unclear), ("2", Opinion::Deny)]), "the reviewer advises against it"),
        (Reviewer::saying(&[one, ("2", Opinion::Unclear)]), "the reviewer leaves it to you"),
        (Reviewer::saying(&[one]), "the reviewer leaves it to you"),
        (Reviewer::saying(&[one, one, ("2", Opinion::Approve)]), "the reviewer leaves it to you"),
        (Reviewer::saying(&[one, ("3", Opinion::Approve)]), "the reviewer leaves it to you"),
        (Reviewer::saying(&[]), "the reviewer leaves it to you"),
        (Reviewer::failing("no credit left"), "the reviewer could not decide: no credit left"),
        (Reviewer::failing("hangs"), "the reviewer could not decide: it said nothing for 60 s"),
        (Reviewer::failing("panics"), "the reviewer could not decide: it failed inside"),
    ] {
        for (answer, status) in [(DENY, Status::Refused), (ONCE, Status::Ok)] {
            let (shell, book, person) = (shell(), Book::new(), person([answer]));
            let setting = smart(&shell, &person, &book, &reviewer);
            assert_eq!(run(&setting, "rm a; sh b").await.status, status, "{says}");
            assert_eq!(told(&person)[0], says);
            assert_eq!(shell.calls().len(), usize::from(status == Status::Ok));
            assert_eq!(book.ends()[0].1, "the user", "one request, one end");
        }
        // And with nobody there it is a no.
        let (shell, book) = (shell(), Book::new());
        let mut setting = smart(&shell, &person([]), &book, &reviewer);
        setting.task.asker = None;
        assert_refused(&run(&setting, "rm a; sh b").await, "nobody is here to ask");
        assert!(shell.calls().is_empty());
    }
}

#[tokio::test]
async fn without_a_reviewer_the_person_is_asked() {
    let (shell, book, person) = (shell(), Book::new(), person([DENY]));
    let setting = talk(&shell, &person, &book).approving(ApprovalMode::Smart);
    assert_refused(&run(&setting, "rm a").await, "the user said no");
    assert!(told(&person)[0].contains("no reviewer is set up"));
}

#[tokio::test]
async fn the_reviewer_sees_the_whole_command_only_what_is_open_and_never_what_never_runs() {
    let (shell, book, person) = (shell(), Book::new(), person([]));
    book.granted.lock().unwrap().insert("key of rm a".into());
    let reviewer = Reviewer::saying(&[("2", Opinion::Approve)]);
    let setting = smart(&shell, &person, &book, &reviewer);
    assert_refused(&run(&setting, "rm a; mkfs /dev/sda").await, "it formats the disk");
    assert_eq!(run(&setting, "rm a").await.status, Status::Ok, "what is approved needs nobody");
    assert!(reviewer.saw.lock().unwrap().is_empty());
    let command = "rm a; sh 'b # not a comment' \"$X\"";
    assert_eq!(run(&setting, command).await.status, Status::Ok);
    let doubts = vec!["sh 'b # not a comment' \"$X\" does harm".to_owned()];
    assert_eq!(*reviewer.saw.lock().unwrap(), [(command.to_owned(), doubts)]);
}

#[tokio::test]
async fn what_a_rule_or_a_hook_wants_a_person_for_is_not_shown_to_the_reviewer() {
    let (shell, book) = (shell(), Book::new());
    let (first, second) = (person([DENY]), person([DENY]));
    let reviewer = Reviewer::saying(&[("1", Opinion::Approve), ("2", Opinion::Approve)]);
    let setting = smart(&shell, &first, &book, &reviewer);
    assert_refused(&run(&setting, "rm a; ask b").await, "the user said no");
    assert_eq!(told(&first)[0], "a rule or a plugin wants a person to decide");
    let ask = HookDecision::Ask { reason: "touches money".into(), key: String::new() };
    let hooks = Hooks { pre: vec![Arc::new(Gate::saying("bank", ask))], ..Hooks::default() };
    let setting = smart(&shell, &second, &book, &reviewer).with_hooks(hooks);
    assert_refused(&run(&setting, "rm a").await, "the user said no");
    assert!(reviewer.saw.lock().unwrap().is_empty() && shell.calls().is_empty());
}

#[tokio::test]
async fn a_stop_while_the_reviewer_thinks_asks_nobody_and_runs_nothing() {
    let (shell, book, person) = (shell(), Book::new(), person([ONCE]));
    let setting = smart(&shell, &person, &book, &Reviewer::failing("hangs"));
    let stop = async {
        while book.entries().is_empty() {
            tokio::task::yield_now().await;
        }
        setting.cancel.cancel();
    };
    let (report, ()) = tokio::join!(run(&setting, "rm a"), stop);
    assert_eq!(report.status, Status::NotStarted);
    assert!(person.questions().is_empty() && shell.calls().is_empty());
    assert_eq!(book.only_end(), RequestEnd::Cancelled);
}
