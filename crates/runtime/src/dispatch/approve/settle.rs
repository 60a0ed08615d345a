//! Step: what was only rehearsed is committed or thrown away; what could not be rehearsed is asked about as it is.
//!
//! A command that would have run without a question is committed without one. Otherwise somebody decides who now sees
//! what it did: the reviewer, or the person. Silence throws it away.

use std::time::Instant;

use async_trait::async_trait;
use hermes_core::{
    Answer, Approval, ApprovalRequest, Concern, Content, Doubt, NOT_REHEARSED, Pending, Question, Rehearsal, RequestEnd,
};
use serde_json::{Value, json};

use super::ask_instead;
use super::request::{NOBODY, Open, REVIEWER, made, reviewed};
use crate::dispatch::{ApprovalMode, Call, Phase, Status, Step};

/// Bytes of the differences that a reviewer reads.
const FOR_THE_REVIEWER: usize = 20_000;

#[derive(Debug)]
pub(in crate::dispatch) struct Settle;

#[async_trait]
impl Step for Settle {
    fn phase(&self) -> Phase {
        Phase::After
    }

    async fn apply(&self, call: &mut Call<'_>) {
        if let (Some(arguments), Some(why)) = (call.not_rehearsed.clone(), why_not_rehearsed(call)) {
            return ask_instead(call, arguments, why).await;
        }
        let Some(Pending(rehearsal)) = call.outcome.as_mut().and_then(|outcome| outcome.output.pending.take()) else {
            return;
        };
        let began = Instant::now();
        let settled = if rehearsal.is_empty() {
            rehearsal.throw_away().await;
            Settled { committed: None, says: "it changed nothing".into(), undo: None }
        } else {
            match decided(call, &*rehearsal).await {
                Ok(by) => committed(&*rehearsal, &by).await,
                Err(why) => {
                    rehearsal.throw_away().await;
                    Settled { committed: Some(false), says: format!("thrown away: {why}"), undo: None }
                }
            }
        };
        call.waited += began.elapsed();
        tell(call, &*rehearsal, settled);
    }
}

/// The reason that a tool gave for having made no rehearsal.
fn why_not_rehearsed(call: &Call<'_>) -> Option<String> {
    let outcome = call.outcome.as_ref().filter(|outcome| outcome.status == Status::Error && outcome.from_tool)?;
    let Content::Json(answer) = &outcome.output.content else { return None };
    (answer["status"] == NOT_REHEARSED)
        .then(|| answer["why"].as_str().unwrap_or("the tool does not say why").to_owned())
}

struct Settled {
    /// `None`: there was nothing to commit.
    committed: Option<bool>,
    says: String,
    undo: Option<String>,
}

async fn committed(rehearsal: &dyn Rehearsal, by: &str) -> Settled {
    match rehearsal.commit().await {
        Ok(undo) => Settled { committed: Some(true), says: format!("committed ({by})"), undo: Some(undo) },
        Err(why) => Settled { committed: Some(false), says: format!("not committed: {why}"), undo: None },
    }
}

/// Who says yes, or why nobody does.
async fn decided(call: &mut Call<'_>, rehearsal: &dyn Rehearsal) -> Result<String, String> {
    if call.scope.cancel.is_cancelled() {
        return Err("the turn was stopped".into());
    }
    match call.scope.approve {
        ApprovalMode::All => return Ok("everything runs without asking".into()),
        ApprovalMode::None => return Err("nothing that needs approval happens here (--approve none)".into()),
        ApprovalMode::Ask | ApprovalMode::Smart | ApprovalMode::Rehearse => {}
    }
    if call.runs_unasked {
        return Ok("no question is needed about this command".into());
    }
    let diff = rehearsal.diff().await;
    let lines = rehearsal.lines();
    let (request, doubts) = request(call, &lines);
    let open = Open::new(call, &request).map_err(|why| format!("the book of approvals cannot be written: {why}"))?;
    let task = call.scope.task;
    let ended = |open: Open<'_>, end, by: &str| open.end(task, &doubts, end, by, "commits a rehearsal");
    // What is too long for the reviewer to read is for the person, who sees all of it.
    if call.scope.approve == ApprovalMode::Smart && diff.len() <= FOR_THE_REVIEWER {
        let mut seen = request.clone();
        let shown = match &call.hooks.redactor {
            Some(redactor) => redactor.redact(&diff),
            None => diff.as_str().into(),
        };
        seen.subject = format!("{}\n\n{}\n\n{shown}", request.subject, lines.join("\n"));
        if reviewed(call, &seen, &doubts).await.is_ok() {
            return ended(open, RequestEnd::ApprovedOnce, REVIEWER).map_or(Ok(REVIEWER.to_owned()), Err);
        }
    }
    let Some(asker) = task.asker.clone() else {
        let _ = ended(open, RequestEnd::Denied, NOBODY);
        return Err("nobody is here to say yes (--approve all commits it)".into());
    };
    let question = Question::Rehearsed {
        id: request.id.clone(),
        cwd: request.cwd.clone(),
        command: request.subject.clone(),
        ended: how_it_ended(call),
        lines,
        diff,
        expires: task.approval.expires,
    };
    let answer = tokio::select! {
        biased;
        () = call.no_more.cancelled() => Answer::None,
        answer = tokio::time::timeout(task.approval.expires, asker.ask(question, call.no_more)) => answer.unwrap_or(Answer::None),
    };
    match answer {
        Answer::Approval(Approval::Once | Approval::Session | Approval::Always) => {
            let who = asker.who();
            ended(open, RequestEnd::ApprovedOnce, &who).map_or(Ok(who), Err)
        }
        Answer::Approval(Approval::Deny | Approval::Rehearse) => {
            let _ = ended(open, RequestEnd::Denied, &asker.who());
            Err("the user did not want it. Do not try it another way".into())
        }
        Answer::Text(_) | Answer::None => {
            let _ = ended(open, RequestEnd::Expired, NOBODY);
            Err("nobody answered".into())
        }
    }
}

fn request(call: &Call<'_>, lines: &[String]) -> (ApprovalRequest, Vec<Doubt>) {
    let touches = call.touches.clone().unwrap_or_default();
    let doubts = Concern::new(format!("commits what a rehearsal did: {}", lines.join("; ")), None, None).doubts;
    (made(call, &touches, &doubts), doubts)
}

/// The end of the command in the words of the tool.
fn how_it_ended(call: &Call<'_>) -> String {
    call.outcome.as_ref().and_then(|outcome| outcome.output.summary.clone()).unwrap_or_default()
}

/// Puts what became of it into the answer, for the model and for the person.
fn tell(call: &mut Call<'_>, rehearsal: &dyn Rehearsal, settled: Settled) {
    let Some(outcome) = &mut call.outcome else { return };
    let output = &mut outcome.output;
    let mut fields = json!({ "changes": rehearsal.summary(), "result": settled.says });
    if let Some(committed) = settled.committed {
        fields["committed"] = committed.into();
        fields["what"] = rehearsal.lines().into();
    }
    if let Some(undo) = &settled.undo {
        fields["undo"] = undo.clone().into();
    }
    if let Content::Json(Value::Object(result)) = &mut output.content {
        result.insert("rehearsal".into(), fields);
    }
    let said = output.summary.take().unwrap_or_default();
    output.summary = Some(format!("rehearsed · {said} · {}", settled.says));
    if settled.committed.is_some() {
        output.detail = rehearsal.lines();
        if let Some(undo) = settled.undo {
            output.detail.push(format!("undo: hermes rehearsals undo {undo}"));
        }
    }
}
