//! What a test says the provider answers. One reply serves streamed and whole requests alike: the request decides.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

/// One scripted answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) what: What,
    pub(super) headers: Vec<(String, String)>,
    pub(super) delay: Duration,
    pub(super) ending: Ending,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Turn(Turn),
    Raw { status: u16, content_type: &'static str, body: String },
}

#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// `None` is `"content": null`, as providers send it beside calls.
    pub(super) text: Option<String>,
    pub(super) calls: Vec<Call>,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    /// Bytes per delta; `None` sends each text whole.
    pub(super) chunk: Option<usize>,
    pub(super) finish: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Whole,
    CutAfter(usize),
    Hang,
}

/// One tool call of a scripted turn.
#[derive(Clone, Debug)]
pub struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Call {
    /// A call with arguments as compact JSON.
    pub fn new(name: impl Into<String>, arguments: impl Into<Value>) -> Self {
        Self::raw(name, arguments.into().to_string())
    }

    /// A call whose arguments are any text, well-formed or not.
    pub fn raw(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { id: String::new(), name: name.into(), arguments: arguments.into() }
    }

    /// Sets the id. Calls without one are `call_1`, `call_2` … in the order of the script.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }
}

impl Reply {
    /// A turn that only says something.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(What::Turn(Turn { text: Some(text.into()), ..Turn::default() }))
    }

    /// A turn that calls tools.
    pub fn calls(calls: impl IntoIterator<Item = Call>) -> Self {
        Self::new(What::Turn(Turn { calls: calls.into_iter().collect(), ..Turn::default() }))
    }

    /// A plain HTTP answer of type `application/json` with this status and body.
    #[track_caller]
    pub fn status(status: u16, body: impl Into<String>) -> Self {
        assert!((200..=599).contains(&status), "{status} is no final HTTP status");
        Self::new(What::Raw { status, content_type: "application/json", body: body.into() })
    }

    /// HTTP 200 that promises an event stream and then sends exactly this text.
    pub fn garbage(body: impl Into<String>) -> Self {
        Self::new(What::Raw { status: 200, content_type: "text/event-stream", body: body.into() })
    }

    fn new(what: What) -> Self {
        Self { what, headers: Vec::new(), delay: Duration::ZERO, ending: Ending::Whole }
    }

    /// Says something beside the calls. Panics on a reply that is no turn, like everything that shapes a turn.
    #[must_use]
    #[track_caller]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.turn().text = Some(text.into());
        self
    }

    /// Sets the tokens that the provider claims to have counted; without it, zero.
    #[must_use]
    #[track_caller]
    pub fn with_usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        let turn = self.turn();
        turn.input_tokens = input_tokens;
        turn.output_tokens = output_tokens;
        self
    }

    /// Streams text and arguments in deltas of at most `bytes` bytes; a longer character gets a delta of its own.
    #[must_use]
    #[track_caller]
    pub fn in_chunks_of(mut self, bytes: usize) -> Self {
        assert!(bytes > 0, "a delta of no bytes never gets anywhere");
        self.turn().chunk = Some(bytes);
        self
    }

    /// Sets `finish_reason`; without it, `tool_calls` when there are calls and else `stop`.
    #[must_use]
    #[track_caller]
    pub fn finish(mut self, reason: impl Into<String>) -> Self {
        self.turn().finish = Some(reason.into());
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Lets the client wait this long for the first byte.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Closes the connection after `events` events, always before a `finish_reason` or `[DONE]`.
    ///
    /// An answer that is not streamed breaks off in the middle (from 1 on) or before its first byte (0).
    #[must_use]
    pub fn cut_after(mut self, events: usize) -> Self {
        self.ending = Ending::CutAfter(events);
        self
    }

    /// Sends headers and the first event (or the first half of an answer that is not streamed), and then nothing for
    /// as long as the client stays.
    #[must_use]
    pub fn hang(mut self) -> Self {
        self.ending = Ending::Hang;
        self
    }

    #[track_caller]
    fn turn(&mut self) -> &mut Turn {
        match &mut self.what {
            What::Turn(turn) => turn,
            What::Raw { .. } => panic!("a reply with a raw body has no turn to shape"),
        }
    }
}

/// Gives every call without an id its own, in the order of the script and not of the requests, so that a test can
/// predict it even when two clients race for the replies.
pub(super) fn number_calls(replies: impl IntoIterator<Item = Reply>) -> VecDeque<Reply> {
    let mut replies: VecDeque<Reply> = replies.into_iter().collect();
    let mut number = 0;
    for reply in &mut replies {
        let What::Turn(turn) = &mut reply.what else { continue };
        for call in turn.calls.iter_mut().filter(|call| call.id.is_empty()) {
            number += 1;
            call.id = format!("call_{number}");
        }
    }
    replies
}
