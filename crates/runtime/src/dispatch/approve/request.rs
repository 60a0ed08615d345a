//! A request for approval: made, written down, shown, ended exactly once.
//!
//! Whatever fails on the way is a no. The order matters: the request stands in the book before a model or a person sees
//! it, what is approved for good is stored before the request counts as approved, and the end is written down before the
//! call runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::SystemTime;

use futures::FutureExt as _;
use hermes_core::{
    Answer, Approval, ApprovalBook, ApprovalHook, ApprovalRequest, ApprovalScope, Asker, Concern, Doubt, Opinion,
    Question, RequestEnd, Review, Touches, Verdict,
};

use super::look::Looked;
use super::{digest, facts};
use crate::dispatch::{ApprovalMode, Call};
use crate::task::Task;

/// The argument of a tool that turns a call into a rehearsal.
pub(super) const REHEARSE: &str = "rehearse";
/// The argument that lets a command live on, which no rehearsal can show.
const BACKGROUND: &str = "background";
/// Who ends a request that no person and no model has answered.
pub(super) const NOBODY: &str = "nobody";
pub(super) const REVIEWER: &str = "the reviewer";

/// What was decided about a call.
pub(super) enum Decision {
    /// It may run.
    Run,
    /// It is to be rehearsed first.
    Rehearse,
    /// It does not run, and why.
    Refuse(String),
}

impl From<Option<String>> for Decision {
    fn from(refusal: Option<String>) -> Self {
        refusal.map_or(Self::Run, Self::Refuse)
    }
}

/// Whether the call may run. `no_rehearsal`: why it could not be rehearsed, if that was tried.
pub(super) async fn decide(
    call: &mut Call<'_>,
    stated: &Touches,
    facts: Vec<String>,
    concern: Concern,
    no_rehearsal: Option<String>,
) -> Decision {
    let task = call.scope.task;
    let Concern { reason, note, doubts } = concern;
    match call.scope.approve {
        // A wall that is on is left by nobody's leave but a person's.
        ApprovalMode::All if !stated.unconfined => return Decision::Run,
        ApprovalMode::None => {
            return Decision::Refuse(format!(
                "it {reason}, and nothing that needs approval runs here (--approve none)"
            ));
        }
        ApprovalMode::All | ApprovalMode::Ask | ApprovalMode::Smart | ApprovalMode::Rehearse => {}
    }
    // Every doubt needs its own yes; those that have one are not asked about again.
    let doubts: Vec<Doubt> = doubts.into_iter().filter(|doubt| !is_covered(task, doubt)).collect();
    if doubts.is_empty() {
        return Decision::Run;
    }
    let comes_first = call.scope.approve == ApprovalMode::Rehearse;
    let rehearsal = match no_rehearsal {
        Some(why) => Rehearsal::Fails(why),
        None => can_be_rehearsed(call, stated, &doubts).await,
    };
    let rehearsable = matches!(rehearsal, Rehearsal::Works);
    if rehearsable && comes_first {
        return Decision::Rehearse;
    }
    let request = made(call, stated, &doubts);
    call.binding = Some(request.digest.clone());
    let open = match Open::new(call, &request) {
        Ok(open) => open,
        Err(why) => return Decision::Refuse(unwritten(&reason, &why)),
    };
    let mut explain = Vec::new();
    if let Rehearsal::Fails(why) = rehearsal
        && (comes_first || call.not_rehearsed.is_some())
    {
        explain.push(format!("it could not be rehearsed first: {why}"));
    }
    if call.scope.approve == ApprovalMode::Smart {
        match reviewed(call, &request, &doubts).await {
            Ok(()) => {
                let changed = changed(call).await;
                let end = if changed.is_some() { RequestEnd::Cancelled } else { RequestEnd::ApprovedOnce };
                let ended = open.end(task, &doubts, end, REVIEWER, &reason);
                return changed.or(ended).into();
            }
            Err(why) => explain.push(why),
        }
    }
    if call.no_more.is_cancelled() {
        let _ = open.end(task, &doubts, RequestEnd::Cancelled, NOBODY, &reason);
        return Decision::Refuse(withdrawn(&reason));
    }
    let Some(asker) = task.asker.clone() else {
        let _ = open.end(task, &doubts, RequestEnd::Denied, NOBODY, &reason);
        return Decision::Refuse(format!(
            "it {reason}, which needs approval, and nobody is here to ask (--approve all allows it)"
        ));
    };
    if doubts.len() > 1 || doubts.iter().any(|doubt| doubt.what != format!("it {reason}")) {
        explain.extend(request.doubts.iter().cloned());
    }
    explain.extend(facts::what_would_go(task, &doubts).await);
    explain.extend(facts);
    explain.extend(note);
    explain.extend(stated.explain.iter().cloned());
    let question = question(task, &request, &doubts, explain, rehearsable);
    let asked = ask(call, &*asker, question, &reason).await;
    let by = if asked.answered { asker.who() } else { NOBODY.to_owned() };
    let ended = open.end(task, &doubts, no_wider_than_offered(asked.end, &doubts), &by, &reason);
    match (asked.refusal.or(ended), asked.end) {
        (None, RequestEnd::Rehearsed) => Decision::Rehearse,
        (refusal, _) => refusal.into(),
    }
}

/// What a rehearsal would be good for.
enum Rehearsal {
    /// It would answer every doubt.
    Works,
    /// It would, but for a reason in the environment it cannot be made.
    Fails(String),
    /// It would not answer every doubt.
    Useless,
}

/// Doubts that it answers are about files of the workspace, and the tool must know how.
async fn can_be_rehearsed(call: &Call<'_>, stated: &Touches, doubts: &[Doubt]) -> Rehearsal {
    let knows_how = |entry: &crate::registry::Entry| entry.tool.spec().parameters["properties"].get(REHEARSE).is_some();
    let would_answer = !stated.rehearsed
        && call.arguments.get(BACKGROUND) != Some(&true.into())
        && doubts.iter().all(|doubt| doubt.rehearsable && !doubt.by_person)
        && call.entry.is_some_and(knows_how);
    if !would_answer {
        return Rehearsal::Useless;
    }
    match call.scope.task.environment.can_rehearse().await {
        Ok(()) => Rehearsal::Works,
        Err(why) => Rehearsal::Fails(why),
    }
}

/// The request for a yes to `doubts`.
pub(super) fn made(call: &Call<'_>, stated: &Touches, doubts: &[Doubt]) -> ApprovalRequest {
    let task = call.scope.task;
    let tool = call.tool_name().to_owned();
    let opened = SystemTime::now();
    ApprovalRequest {
        id: Task::request_id(opened),
        task: task.id.clone(),
        subject: facts::subject(call, stated),
        cwd: stated.runs_in.clone().unwrap_or_else(|| task.environment.cwd()),
        digest: digest(task, &tool, &call.arguments, call.touches.as_ref().unwrap_or(stated)),
        tool,
        doubts: doubts.iter().map(|doubt| doubt.what.clone()).collect(),
        scopes: doubts.iter().filter_map(|doubt| doubt.scope.as_ref()).map(|scope| scope.words.clone()).collect(),
        opened,
        expires: opened + task.approval.expires,
    }
}

fn unwritten(reason: &str, why: &str) -> String {
    format!("it {reason}, which needs approval, and the book of approvals cannot be written: {why}")
}

fn withdrawn(reason: &str) -> String {
    format!("it {reason}, and the question was withdrawn")
}

// ------------------------------------------------------------------------------------------------- one request, one end

/// A request that stands in the book and has not ended. One that is dropped, because its turn was or because something
/// panicked, ends as cancelled.
pub(super) struct Open<'a> {
    book: Option<&'a dyn ApprovalBook>,
    hooks: &'a [std::sync::Arc<dyn ApprovalHook>],
    request: &'a ApprovalRequest,
    ended: bool,
}

impl<'a> Open<'a> {
    /// Writes the request down, then tells those who watch.
    pub(super) fn new(call: &Call<'a>, request: &'a ApprovalRequest) -> Result<Self, String> {
        let book = call.scope.task.approval.book.as_deref();
        if let Some(book) = book {
            guarded(|| book.open(request))?;
        }
        let open = Self { book, hooks: &call.hooks.approval, request, ended: false };
        for hook in open.hooks {
            quietly(|| hook.asked(request));
        }
        Ok(open)
    }

    /// Stores what was decided. `None` if that is a yes and everything about it is written down, else why it is none.
    pub(super) fn end(
        mut self,
        task: &Task,
        doubts: &[Doubt],
        end: RequestEnd,
        by: &str,
        reason: &str,
    ) -> Option<String> {
        let mut trouble = None;
        let mut end = end;
        if end == RequestEnd::ApprovedAlways
            && let Some(book) = self.book
        {
            let mut scopes = doubts.iter().filter_map(|doubt| doubt.scope.as_ref());
            if let Err(why) = guarded(|| scopes.try_for_each(|scope| book.grant(scope))) {
                // A yes that cannot be kept is none, and the book must not say that it was.
                trouble = Some(unwritten(reason, &why));
                end = RequestEnd::Cancelled;
            }
        }
        if let Err(why) = self.close(end, by) {
            trouble = trouble.or_else(|| Some(unwritten(reason, &why)));
            end = RequestEnd::Cancelled;
        }
        self.tell(end);
        if trouble.is_none() {
            remember(task, doubts, end);
        }
        trouble
    }

    fn close(&mut self, end: RequestEnd, by: &str) -> Result<(), String> {
        self.ended = true;
        self.book.map_or(Ok(()), |book| guarded(|| book.close(&self.request.id, end, by)))
    }

    fn tell(&self, end: RequestEnd) {
        for hook in self.hooks {
            quietly(|| hook.ended(self.request, end));
        }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // There is nobody left to hear that it could not be written; nothing ran.
            let _ = self.close(RequestEnd::Cancelled, NOBODY);
            self.tell(RequestEnd::Cancelled);
        }
    }
}

/// A book that panics is a book that cannot be written.
fn guarded(write: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| Err("the book failed inside".into()))
}

/// Watchers may panic; the decision does not hear of it.
fn quietly(watch: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(watch));
}

/// A book that cannot say whether it covers something does not.
fn is_covered(task: &Task, doubt: &Doubt) -> bool {
    let in_book = |key: &str| {
        let book = task.approval.book.as_deref();
        book.is_some_and(|book| catch_unwind(AssertUnwindSafe(|| book.covers(key))).unwrap_or(false))
    };
    doubt.scope.as_ref().is_some_and(|scope| task.is_approved(&scope.key) || scope.lasting && in_book(&scope.key))
}

/// Remembers what was allowed for longer than once. What the book holds is not held here as well: it can be revoked there.
fn remember(task: &Task, doubts: &[Doubt], end: RequestEnd) {
    for scope in doubts.iter().filter_map(|doubt| doubt.scope.as_ref()) {
        match end {
            RequestEnd::ApprovedAlways if task.approval.book.is_some() => {}
            RequestEnd::ApprovedAlways | RequestEnd::ApprovedSession => task.approve(scope.key.clone()),
            _ => {}
        }
    }
}

// -------------------------------------------------------------------------------------------------------- the reviewer

/// `Ok` if a model finds every doubt harmless; else what a person should know.
pub(super) async fn reviewed(call: &Call<'_>, request: &ApprovalRequest, doubts: &[Doubt]) -> Result<(), String> {
    let approval = &call.scope.task.approval;
    if doubts.iter().any(|doubt| doubt.by_person) {
        return Err("a rule or a plugin wants a person to decide".into());
    }
    let Some(reviewer) = &approval.reviewer else {
        return Err("no reviewer is set up (auxiliary.approval), so it is asked".into());
    };
    let review = Review { tool: &request.tool, cwd: &request.cwd, subject: &request.subject, doubts };
    let reviewing = AssertUnwindSafe(reviewer.review(&review, call.no_more)).catch_unwind();
    let opinions = tokio::select! {
        biased;
        () = call.no_more.cancelled() => Err("the turn was stopped".to_owned()),
        said = tokio::time::timeout(approval.expires, reviewing) => match said {
            Ok(Ok(opinions)) => opinions,
            Ok(Err(_)) => Err("it failed inside".to_owned()),
            Err(_) => Err(format!("it said nothing for {} s", approval.expires.as_secs_f32())),
        },
    };
    let opinions = opinions.map_err(|why| format!("the reviewer could not decide: {why}"))?;
    let opinion = |doubt: &Doubt| {
        let mut said = opinions.iter().filter(|(id, _)| *id == doubt.id).map(|(_, opinion)| *opinion);
        // Two opinions about one doubt are none.
        match (said.next(), said.next()) {
            (Some(opinion), None) => opinion,
            _ => Opinion::Unclear,
        }
    };
    let opinions: Vec<Opinion> = doubts.iter().map(opinion).collect();
    if opinions.iter().all(|opinion| *opinion == Opinion::Approve) {
        Ok(())
    } else if opinions.contains(&Opinion::Deny) {
        Err("the reviewer advises against it".into())
    } else {
        Err("the reviewer leaves it to you".into())
    }
}

// ---------------------------------------------------------------------------------------------------------- the person

fn question(
    task: &Task,
    request: &ApprovalRequest,
    doubts: &[Doubt],
    explain: Vec<String>,
    rehearsable: bool,
) -> Question {
    // One doubt that can only be allowed once makes the whole call one that is asked about every time.
    let scopes: Option<Vec<_>> = doubts.iter().map(|doubt| doubt.scope.as_ref()).collect();
    let mut words: Vec<&str> = Vec::new();
    for scope in scopes.iter().flatten() {
        if !words.contains(&scope.words.as_str()) {
            words.push(&scope.words);
        }
    }
    Question::Approval {
        id: request.id.clone(),
        tool: request.tool.clone(),
        cwd: request.cwd.clone(),
        subject: request.subject.clone(),
        explain,
        scope: if scopes.is_some() { words.join("; ") } else { String::new() },
        lasting: scopes.is_some_and(|scopes| scopes.iter().all(|scope| scope.lasting)),
        rehearsable,
        expires: task.approval.expires,
    }
}

/// A yes for longer than the question offered is a yes for as long as it did.
fn no_wider_than_offered(end: RequestEnd, doubts: &[Doubt]) -> RequestEnd {
    let all = |holds: fn(&ApprovalScope) -> bool| doubts.iter().all(|doubt| doubt.scope.as_ref().is_some_and(holds));
    match end {
        RequestEnd::ApprovedAlways if all(|scope| scope.lasting) => end,
        RequestEnd::ApprovedAlways | RequestEnd::ApprovedSession if all(|_| true) => RequestEnd::ApprovedSession,
        RequestEnd::ApprovedAlways | RequestEnd::ApprovedSession => RequestEnd::ApprovedOnce,
        _ => end,
    }
}

/// How a question went.
struct Asked {
    end: RequestEnd,
    /// Why the call does not run.
    refusal: Option<String>,
    /// A person has decided.
    answered: bool,
}

/// Asks the person, and looks again at what was asked about once the answer is there.
async fn ask(call: &Call<'_>, asker: &dyn Asker, question: Question, reason: &str) -> Asked {
    let task = call.scope.task;
    let expires = task.approval.expires;
    let unanswered = |end, refusal: String| Asked { end, refusal: Some(refusal), answered: false };
    let asking = AssertUnwindSafe(asker.ask(question, call.no_more)).catch_unwind();
    let answer = tokio::select! {
        biased;
        // A person who has left has not said no, and whoever asks may not notice that the turn is over.
        () = call.no_more.cancelled() => return unanswered(RequestEnd::Cancelled, withdrawn(reason)),
        answer = tokio::time::timeout(expires, asking) => answer,
    };
    let end = match answer {
        Ok(Ok(Answer::Approval(Approval::Once))) => RequestEnd::ApprovedOnce,
        Ok(Ok(Answer::Approval(Approval::Session))) => RequestEnd::ApprovedSession,
        Ok(Ok(Answer::Approval(Approval::Always))) => RequestEnd::ApprovedAlways,
        Ok(Ok(Answer::Approval(Approval::Rehearse))) => RequestEnd::Rehearsed,
        Ok(Ok(Answer::Approval(Approval::Deny))) => {
            let refusal = format!("it {reason}, and the user said no. Do not try it another way");
            return Asked { end: RequestEnd::Denied, refusal: Some(refusal), answered: true };
        }
        // No answer, and an answer to some other question, are no yes.
        Ok(Ok(Answer::Text(_) | Answer::None)) => {
            let (end, refusal) = if call.no_more.is_cancelled() {
                (RequestEnd::Cancelled, withdrawn(reason))
            } else {
                (RequestEnd::Expired, format!("it {reason}, which needs approval, and nobody answered"))
            };
            return unanswered(end, refusal);
        }
        Ok(Err(_)) => {
            let refusal = format!(
                "it {reason}, which needs approval, and the question could not be asked: whoever asks failed inside"
            );
            return unanswered(RequestEnd::Expired, refusal);
        }
        Err(_) => {
            let seconds = expires.as_secs_f32();
            let refusal =
                format!("it {reason}, which needs approval, and nobody answered within {seconds} s; silence is no yes");
            return unanswered(RequestEnd::Expired, refusal);
        }
    };
    // The answer may have taken a while, and is about what was shown.
    let refusal = changed(call).await;
    Asked { end: if refusal.is_some() { RequestEnd::Cancelled } else { end }, refusal, answered: true }
}

/// Why an answer does not count: something is not as it was when the question was asked.
pub(in crate::dispatch) async fn changed(call: &Call<'_>) -> Option<String> {
    let because = |what: &str| format!("{what} since it was asked about, so the answer does not count; try again");
    let (task, entry) = (call.scope.task, call.entry?);
    let stated = entry.tool.touches(&call.arguments, &call.context(call.scope.cancel));
    let touches = call.touches.as_ref().unwrap_or(&stated);
    let now = digest(task, call.tool_name(), &call.arguments, touches);
    if call.binding.as_ref() != Some(&now) {
        return Some(because("its directory or environment has changed"));
    }
    let looked = if stated == Touches::nothing() {
        Looked::at_nothing(task, &stated)
    } else {
        match Looked::through_links(task, &stated).await {
            Ok(looked) if call.touches.as_ref() == Some(&looked.touches) => looked,
            // What was asked about is that a path cannot be resolved.
            Err(_) if call.touches.is_none() => return None,
            _ => return Some(because("a path in it leads elsewhere")),
        }
    };
    // A link inside of a command may lead elsewhere, a file that it reads may say something else.
    match call.judge.judge(&looked.request(call, entry.tool.spec(), &stated)) {
        Verdict::Allow => None,
        Verdict::Ask(concern) if concern.doubts.iter().all(|doubt| was_shown(call, doubt)) => None,
        Verdict::Ask(_) => Some(because("it would do something else")),
        Verdict::Refuse(why) => Some(why),
    }
}

fn was_shown(call: &Call<'_>, doubt: &Doubt) -> bool {
    matches!(&call.judged, Some(Verdict::Ask(concern)) if concern.doubts.iter().any(|shown| shown.what == doubt.what))
}
