//! Step: the judge looks at what the call would do, and where it says so, a person decides.
//!
//! Paths are resolved through links here, once, immediately before the call runs: a judgement made earlier in the turn
//! could be about a different directory. A path that cannot be resolved asks.

mod binding;
mod facts;
mod look;
mod request;
mod settle;

use std::time::Instant;

use async_trait::async_trait;
use hermes_core::{Concern, JsonMap, ToolError, ToolSpec, Touches, Verdict};

use self::binding::digest;
use self::look::Looked;
use self::request::Decision;
pub(super) use self::request::changed;
pub(super) use self::settle::Settle;
use super::checkpoint::Checkpoint;
use super::run::Run;
use super::{ApprovalMode, Call, Phase, Status, Step, stopped_before_it_began};

#[derive(Debug)]
pub(super) struct Approve;

#[async_trait]
impl Step for Approve {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    async fn apply(&self, call: &mut Call<'_>) {
        judge_and_ask(call).await;
        if let Some((board, index)) = call.place {
            board.decided(index);
        }
    }
}

async fn judge_and_ask(call: &mut Call<'_>) {
    if let Some(Decision::Rehearse) = judged_and_decided(call, None).await {
        // What runs now is another call: it is judged as what it is, a rehearsal.
        call.not_rehearsed = Some(call.arguments.clone());
        call.arguments.insert(request::REHEARSE.into(), true.into());
        call.binding = None;
        judged_and_decided(call, None).await;
    }
}

/// Asks about a call that was to be rehearsed first and could not be, for the reason `why`; runs it if it may.
async fn ask_instead(call: &mut Call<'_>, arguments: JsonMap, why: String) {
    call.arguments = arguments;
    call.outcome = None;
    call.binding = None;
    call.runs_unasked = false;
    judged_and_decided(call, Some(why)).await;
    for step in [&Checkpoint as &dyn Step, &Run] {
        if call.outcome.is_none() {
            step.apply(call).await;
        }
    }
}

/// What was decided, where somebody had to. `no_rehearsal`: why there is none.
async fn judged_and_decided(call: &mut Call<'_>, no_rehearsal: Option<String>) -> Option<Decision> {
    let entry = call.entry?;
    let spec = entry.tool.spec();
    let task = call.scope.task;
    let stated = entry.tool.touches(&call.arguments, &call.context(call.scope.cancel));
    let mut facts = Vec::new();
    let verdict = if stated == Touches::nothing() {
        // There is no path to follow, so nobody has to wait for the disk.
        judged(call, spec, &stated, Looked::at_nothing(task, &stated))
    } else {
        match Looked::through_links(task, &stated).await {
            Ok(looked) => {
                facts = facts::where_links_lead(&stated, &looked.touches);
                facts.extend(facts::what_is_there(task, &looked.touches.writes).await);
                judged(call, spec, &stated, looked)
            }
            Err(why) => Verdict::Ask(Concern::new(
                format!("touches a path that cannot be resolved: {why}"),
                Some(format!("this path cannot be resolved: {why}")),
                None,
            )),
        }
    };
    call.judged = Some(verdict.clone());
    let verdict = with_hooks(verdict, std::mem::take(&mut call.asks));
    let decision = match verdict {
        Verdict::Allow => return None,
        Verdict::Refuse(why) => {
            call.forbidden = true;
            Decision::Refuse(format!("{why}; nothing was run, and no approval can change that"))
        }
        Verdict::Ask(concern) => {
            let began = Instant::now();
            if let Some((board, index)) = call.place {
                tokio::select! {
                    biased;
                    () = call.no_more.cancelled() => {}
                    () = board.turn_to_ask(index) => {}
                }
            }
            let decision = if call.no_more.is_cancelled() {
                Decision::Run
            } else {
                request::decide(call, &stated, facts, concern, no_rehearsal).await
            };
            call.waited += began.elapsed();
            if call.no_more.is_cancelled() {
                call.refuse(Status::NotStarted, stopped_before_it_began());
                return None;
            }
            decision
        }
    };
    if let Decision::Refuse(why) = &decision {
        let error = ToolError::tell(format!("{} was not run: {why}", spec.name)).with("status", "refused");
        call.refuse(Status::Refused, error);
        // Whoever was asked knows why.
        let nobody_was_asked = call.forbidden || task.asker.is_none() || call.scope.approve == ApprovalMode::None;
        if let Some(outcome) = call.outcome.as_mut().filter(|_| nobody_was_asked) {
            outcome.output.detail.push(why.clone());
        }
    }
    Some(decision)
}

/// Asks the judge, and keeps what the call touches.
fn judged(call: &mut Call<'_>, spec: &ToolSpec, stated: &Touches, mut looked: Looked) -> Verdict {
    let request = looked.request(call, spec, stated);
    let (verdict, outside) = (call.judge.judge(&request), call.judge.outside(&request));
    if stated.rehearsed {
        // Whether the same command would run without a question is settled here, as things are before it runs.
        let plain = Touches { rehearsed: false, ..stated.clone() };
        looked.touches.rehearsed = false;
        call.runs_unasked = call.judge.judge(&looked.request(call, spec, &plain)) == Verdict::Allow;
        looked.touches.rehearsed = true;
    }
    call.outside = outside;
    call.touches = Some(looked.touches);
    verdict
}

/// A hook that wants a person to decide makes a question of a yes; to a question of the judge it adds its own doubts.
fn with_hooks(verdict: Verdict, asks: Vec<Concern>) -> Verdict {
    asks.into_iter().fold(verdict, |verdict, ask| match verdict {
        Verdict::Allow => Verdict::Ask(ask),
        Verdict::Refuse(why) => Verdict::Refuse(why),
        Verdict::Ask(concern) => {
            let mut doubts = concern.doubts;
            for mut doubt in ask.doubts {
                doubt.id = (doubts.len() + 1).to_string();
                doubts.push(doubt);
            }
            Verdict::Ask(Concern {
                reason: format!("{}, and {}", concern.reason, ask.reason),
                note: [concern.note, ask.note].into_iter().flatten().reduce(|all, note| format!("{all}; {note}")),
                doubts,
            })
        }
    })
}
