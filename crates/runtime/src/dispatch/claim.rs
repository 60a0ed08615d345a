//! Step: among the calls of one turn, wait until nobody who runs, and nobody earlier, is in the way.
//!
//! Everything after this step happens while the call has its place: what a hook or a person is asked about is what is
//! there now, not what was there before the calls in front of it ran.

use std::time::Instant;

use async_trait::async_trait;
use hermes_core::Effect;

use super::{Call, Phase, Status, Step, stopped_before_it_began};
use crate::parallel::Footprint;
use crate::registry::Entry;

#[derive(Debug)]
pub(super) struct Claim;

#[async_trait]
impl Step for Claim {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        if call.place.is_some() {
            wait(call).await;
            call.began = Instant::now();
        }
        if call.outcome.is_none() {
            call.announce();
        }
    }
}

/// The arguments have changed, so the call may be in somebody's way who was no concern before.
pub(super) async fn again(call: &mut Call<'_>) {
    if call.place.is_some() {
        let began = Instant::now();
        wait(call).await;
        call.waited += began.elapsed();
    }
}

async fn wait(call: &mut Call<'_>) {
    let (Some((board, index)), Some(entry)) = (call.place, call.entry) else { return };
    let mut claimed = footprint(call, entry).await;
    loop {
        tokio::select! {
            biased;
            () = call.no_more.cancelled() => return call.refuse(Status::NotStarted, stopped_before_it_began()),
            () = board.claim(index, claimed.clone()) => {}
        }
        // Whoever ran meanwhile may have moved the session elsewhere, or led a link elsewhere. Nobody in the way can move
        // anything now, so the second look is true.
        let now = footprint(call, entry).await;
        if now == claimed {
            return;
        }
        claimed = now;
    }
}

async fn footprint(call: &Call<'_>, entry: &Entry) -> Footprint {
    let (task, spec) = (call.scope.task, entry.tool.spec());
    match spec.effect {
        Effect::None | Effect::Read | Effect::Network | Effect::Write if spec.parallel => {
            let touches = entry.tool.touches(&call.arguments, &call.context(call.scope.cancel));
            match Footprint::of(&touches, &*task.environment).await {
                // It does something and does not say to what.
                Footprint::Nothing if spec.effect == Effect::Write => Footprint::Anything,
                Footprint::Nothing if spec.effect != Effect::None => Footprint::reading_anything(),
                footprint => footprint,
            }
        }
        // What runs programs reaches whatever they reach, and a person answers one question at a time.
        _ => Footprint::Anything,
    }
}
