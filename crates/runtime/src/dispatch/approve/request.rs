//! A request for approval: made, written down, shown, ended exactly once.

use std::sync::Arc;
use std::time::SystemTime;

use hermes_core::{
    Answer, Approval, ApprovalBook, ApprovalRequest, Asker, Concern, Doubt, Opinion, Question, RequestEnd, Review,
    Touches,
};

use super::{digest, facts, resolved};
use crate::dispatch::{ApprovalMode, Call};
use crate::task::Task;

/// `None` if the call may run, else why not.
pub(super) async fn decide(
    call: &mut Call<'_>,
    stated: &Touches,
    facts: Vec<String>,
    concern: Concern,
) -> Option<String> {
    let task = call.scope.task;
    let Concern { reason, note, doubts } = concern;
    match call.scope.approve {
        ApprovalMode::All => return None,
        ApprovalMode::None => return Some(format!("it {reason}, and approvals are switched off (--approve none)")),
        ApprovalMode::Ask | ApprovalMode::Smart => {}
    }
    // Every doubt needs its own yes; those that have one are not asked about again.
    let doubts: Vec<Doubt> = doubts.into_iter().filter(|doubt| !is_covered(task, doubt)).collect();
    if doubts.is_empty() {
        return None;
    }
    let subject = facts::subject(call, stated);
    let cwd = stated.runs_in.clone().unwrap_or_else(|| task.environment.cwd());
    let tool = call.tool_name().to_owned();
    let touches = call.touches.clone();
    let shown = touches.as_ref().unwrap_or(stated);
    let digest = digest(task, &tool, &call.arguments, shown);
    call.binding = Some(digest.clone());
    let opened = SystemTime::now();
    let request = ApprovalRequest {
        id: task.request_id(opened),
        task: task.id.clone(),
        tool,
        subject,
        cwd,
        digest,
        doubts: doubts.iter().map(|doubt| doubt.what.clone()).collect(),
        scopes: doubts.iter().filter_map(|doubt| doubt.scope.as_ref()).map(|scope| scope.words.clone()).collect(),
        opened,
        expires: opened + task.approval.expires,
    };
    let mut explain = facts;
    if call.scope.approve == ApprovalMode::Smart {
        match reviewed(call, &request, &doubts).await {
            Ok(()) => {
                let written = task.book().map_or(Ok(()), |book| {
                    book.open(&request)?;
                    book.close(&request.id, RequestEnd::ApprovedOnce, "the reviewer")
                });
                return written.err().map(|why| unwritten(&reason, &why));
            }
            Err(why) => explain.push(why),
        }
    }
    let Some(asker) = task.asker.clone() else {
        return Some(format!("it {reason}, which needs approval, and nobody is here to ask (--approve all allows it)"));
    };
    explain.extend(facts::what_would_go(task, &doubts).await);
    explain.extend(note);
    explain.extend(stated.explain.iter().cloned());
    if doubts.len() > 1 || doubts.iter().any(|doubt| doubt.what != format!("it {reason}")) {
        explain.extend(request.doubts.iter().cloned());
    }
    if let Some(book) = task.book()
        && let Err(why) = book.open(&request)
    {
        return Some(unwritten(&reason, &why));
    }
    for hook in &call.hooks.approval {
        let _ = quietly(|| hook.asked(&request));
    }
    let (end, refusal) = ask(call, stated, &*asker, &request, &doubts, explain, &reason).await;
    for hook in &call.hooks.approval {
        let _ = quietly(|| hook.ended(&request, end));
    }
    if let Some(book) = task.book()
        && let Err(why) = book.close(&request.id, end, &asker.who())
    {
        return Some(unwritten(&reason, &why));
    }
    if refusal.is_none() { remember(task, &doubts, end).err().map(|why| unwritten(&reason, &why)) } else { refusal }
}

fn unwritten(reason: &str, why: &str) -> String {
    format!("it {reason}, which needs approval, and the book of approvals cannot be written: {why}")
}

/// Watchers may panic; the decision does not hear of it.
fn quietly(watch: impl FnOnce()) -> Result<(), ()> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(watch)).map_err(|_| ())
}

fn is_covered(task: &Task, doubt: &Doubt) -> bool {
    doubt.scope.as_ref().is_some_and(|scope| {
        task.is_approved(&scope.key) || scope.lasting && task.book().is_some_and(|book| book.covers(&scope.key))
    })
}

/// Remembers what was allowed for longer than once. What cannot be allowed for good is allowed for the session.
fn remember(task: &Task, doubts: &[Doubt], end: RequestEnd) -> Result<(), String> {
    for scope in doubts.iter().filter_map(|doubt| doubt.scope.as_ref()) {
        match end {
            RequestEnd::ApprovedAlways if scope.lasting => match task.book() {
                Some(book) => book.grant(scope)?,
                None => task.approve(scope.key.clone()),
            },
            RequestEnd::ApprovedAlways | RequestEnd::ApprovedSession => task.approve(scope.key.clone()),
            _ => {}
        }
    }
    Ok(())
}

/// `Ok` if a model finds every doubt harmless; else what a person should know.
async fn reviewed(call: &Call<'_>, request: &ApprovalRequest, doubts: &[Doubt]) -> Result<(), String> {
    let Some(reviewer) = &call.scope.task.approval.reviewer else {
        return Err("no reviewer is set up (auxiliary.approval), so it is asked".into());
    };
    let review = Review { tool: &request.tool, cwd: &request.cwd, subject: &request.subject, doubts };
    let opinions = reviewer.review(&review, call.no_more).await;
    let opinions = opinions.map_err(|why| format!("the reviewer could not decide: {why}"))?;
    let mut against = 0;
    let mut unclear = 0;
    for doubt in doubts {
        let mut said = opinions.iter().filter(|(id, _)| *id == doubt.id).map(|(_, opinion)| *opinion);
        match (said.next(), said.next()) {
            (Some(Opinion::Approve), None) => {}
            (Some(Opinion::Deny), None) => against += 1,
            _ => unclear += 1,
        }
    }
    match (against, unclear) {
        (0, 0) => Ok(()),
        (0, _) => Err("the reviewer leaves it to you".into()),
        _ => Err("the reviewer advises against it".into()),
    }
}

/// Asks the person, and looks again at what was asked about once the answer is there.
async fn ask(
    call: &Call<'_>,
    stated: &Touches,
    asker: &dyn Asker,
    request: &ApprovalRequest,
    doubts: &[Doubt],
    explain: Vec<String>,
    reason: &str,
) -> (RequestEnd, Option<String>) {
    let task = call.scope.task;
    let scopes: Vec<&str> =
        doubts.iter().map(|doubt| doubt.scope.as_ref().map_or("", |scope| scope.words.as_str())).collect();
    // One doubt that can only be allowed once makes the whole call one that is asked about every time.
    let named = scopes.iter().all(|words| !words.is_empty());
    let mut words: Vec<&str> = Vec::new();
    for scope in scopes {
        if !words.contains(&scope) {
            words.push(scope);
        }
    }
    let question = Question::Approval {
        id: request.id.clone(),
        tool: request.tool.clone(),
        cwd: request.cwd.clone(),
        subject: request.subject.clone(),
        explain,
        scope: if named { words.join("; ") } else { "nothing more than this once".into() },
        lasting: named && doubts.iter().all(|doubt| doubt.scope.as_ref().is_some_and(|scope| scope.lasting)),
        expires: task.approval.expires,
    };
    let answer = tokio::time::timeout(task.approval.expires, asker.ask(question, call.no_more)).await;
    let end = match answer {
        Ok(Answer::Approval(Approval::Once)) => RequestEnd::ApprovedOnce,
        Ok(Answer::Approval(Approval::Session)) => RequestEnd::ApprovedSession,
        Ok(Answer::Approval(Approval::Always)) => RequestEnd::ApprovedAlways,
        Ok(Answer::Approval(Approval::Deny)) => {
            return (RequestEnd::Denied, Some(format!("it {reason}, and the user said no. Do not try it another way")));
        }
        // No answer, and an answer to some other question, are no yes.
        Ok(Answer::Text(_) | Answer::None) if call.no_more.is_cancelled() => {
            return (RequestEnd::Cancelled, Some(format!("it {reason}, and the question was withdrawn")));
        }
        Ok(Answer::Text(_) | Answer::None) => {
            return (RequestEnd::Expired, Some(format!("it {reason}, which needs approval, and nobody answered")));
        }
        Err(_) => {
            let seconds = task.approval.expires.as_secs();
            return (
                RequestEnd::Expired,
                Some(format!(
                    "it {reason}, which needs approval, and nobody answered within {seconds} s; silence is no yes"
                )),
            );
        }
    };
    // The answer may have taken a while, and is about what was shown.
    let same = match &call.touches {
        Some(shown) if *stated != Touches::nothing() => {
            resolved(task, stated).await.is_ok_and(|(now, ..)| now == *shown)
        }
        _ => true,
    };
    let tool = &request.tool;
    let touches = call.touches.as_ref().unwrap_or(stated);
    if same && digest(task, tool, &call.arguments, touches) == request.digest {
        (end, None)
    } else {
        (RequestEnd::Cancelled, Some("a path in it leads elsewhere than when it was asked about; try again".into()))
    }
}

impl Task {
    fn book(&self) -> Option<&Arc<dyn ApprovalBook>> {
        self.approval.book.as_ref()
    }
}
