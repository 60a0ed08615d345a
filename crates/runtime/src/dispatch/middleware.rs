//! Step: middleware may change what is asked for. Each one sees what the one before it made, and what it makes is
//! coerced and validated again, so that everybody after it looks at arguments that could run.

use async_trait::async_trait;

use super::hooks::within;
use super::{Call, Phase, Step};

#[derive(Debug)]
pub(super) struct Middleware;

#[async_trait]
impl Step for Middleware {
    fn phase(&self) -> Phase {
        Phase::Before
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let Some(entry) = call.entry else { return };
        let hooks = call.hooks;
        for middleware in &hooks.middleware {
            let facts = middleware.facts();
            let rewritten = within(facts.timeout, middleware.rewrite(call.for_hooks(entry))).await;
            match rewritten {
                Ok(Some(arguments)) => call.take_arguments(facts, arguments),
                Ok(None) => {}
                Err(why) => call.hook_failed(facts, &why),
            }
            if call.outcome.is_some() {
                return;
            }
        }
    }
}
