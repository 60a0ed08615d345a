//! The loop: ask the model, answer its calls, ask again.
//!
//! What a turn guarantees, however it ends: the conversation can be sent as it stands. Every call has exactly one
//! answer, no two messages of the person follow one another, and where there is no answer a sentence says why.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use hermes_core::{
    CancellationToken, Definition, Finish, Message, Model, ModelDelta, ModelError, ModelErrorKind, ModelReply,
    ModelRequest, ToolCall, ToolName, Usage,
};
use hermes_runtime::{
    ApprovalMode, CallReport, Definitions, Dispatcher, Scope, Shown, Status, Stripped, Task, UnknownToolset, Wanted,
};

use crate::event::{Calls, Event, Listener};
use crate::news::{self, Told};
use crate::pictures::{self, Sight};

/// After this many turns in a row in which every call names a tool that does not exist, the run ends (spec agent §4.2).
const STRIKES: u32 = 3;
/// How often a model may answer with nothing at all before that is an error.
const EMPTY_ANSWERS: u32 = 3;

/// Everything an agent needs.
pub struct Setup {
    /// Who thinks.
    pub model: Arc<dyn Model>,
    /// Who takes calls.
    pub dispatcher: Arc<Dispatcher>,
    /// Where the calls happen.
    pub task: Task,
    /// Who makes the list of tools that the model sees.
    pub definitions: Arc<Definitions>,
    /// Which tools the agent may use, and in whose dialect the model is told.
    pub wanted: Arc<Wanted>,
    /// Who decides about dangerous calls.
    pub approve: ApprovalMode,
    /// Requests to the model in one turn; when they are spent, one more without tools asks for a summary.
    pub max_requests: u32,
    /// What the model is told first.
    pub system_prompt: String,
    /// Whether the model takes pictures, as far as anybody knows; the agent finds out more.
    pub sight: Sight,
}

/// A conversation and what it takes to go on with it.
pub struct Agent {
    setup: Setup,
    /// The tools of this turn: what the model sees and what it may call are one thing.
    shown: Arc<Shown>,
    messages: Vec<Message>,
    call_ids: HashSet<String>,
    usage: Usage,
    /// News of processes in the background that the model has not been told yet.
    news: Vec<String>,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnEnd {
    /// What the model said last; may be empty unless `reason` is [`EndReason::Answered`].
    pub answer: String,
    /// Why it ended.
    pub reason: EndReason,
    /// What the turn cost.
    pub usage: Usage,
    /// Requests made.
    pub requests: u32,
    /// Calls made.
    pub calls: u32,
    /// Calls that needed a yes and got none.
    pub refused: u32,
}

/// Why a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The model answered.
    Answered,
    /// The budget was spent; the answer is a summary.
    BudgetSpent,
    /// The model kept calling tools that do not exist; this is the last of them.
    UnknownTools(String),
    /// The model kept doing the same thing; this says what.
    Repetition(String),
    /// The model's output limit cut the answer off.
    CutOff,
    /// The provider filtered the answer.
    Filtered,
    /// The person stopped the turn.
    Cancelled,
    /// A tool said that the turn cannot go on.
    Broken(String),
}

impl TurnEnd {
    /// Whether less was done than was asked for: nothing failed, but something is missing.
    pub fn is_partial(&self) -> bool {
        self.reason != EndReason::Answered || self.refused > 0
    }
}

impl Agent {
    /// A new conversation; an error if the tools that it may use cannot be told.
    pub fn new(setup: Setup) -> Result<Self, UnknownToolset> {
        let messages = vec![Message::System(setup.system_prompt.clone())];
        let shown = setup.definitions.current(&setup.wanted)?;
        let (wanted, task) = (Self::from_now_on(&setup.wanted), setup.task.in_conversation());
        let setup = Setup { task, wanted, ..setup };
        Ok(Self { setup, shown, messages, call_ids: HashSet::new(), usage: Usage::default(), news: Vec::new() })
    }

    /// The conversation so far, system message first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// What the conversation has cost so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The names of the tools it may use, sorted.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.shown.tools.iter().map(ToolName::as_str)
    }

    /// The conversation, as those who take part in its calls know it.
    pub fn task(&self) -> &str {
        &self.setup.task.id
    }

    /// Tells the model something with its next request, for example what a person did to its files.
    pub fn tell(&mut self, what: String) {
        self.news.push(what);
    }

    /// What a person should know about the choice of tools, one line each.
    pub fn notes(&self) -> &[String] {
        &self.shown.notes
    }

    /// From the next turn on the agent may use other tools. What its provider refused before stays left out.
    pub fn want(&mut self, wanted: Wanted) -> Result<(), UnknownToolset> {
        let wanted = Arc::new(Wanted { without: self.setup.wanted.without.clone(), ..wanted });
        self.shown = self.setup.definitions.current(&wanted)?;
        self.setup.wanted = Self::from_now_on(&wanted);
        Ok(())
    }

    /// Tools come and go between turns and never within one: a list that changes under the model costs its cache.
    fn look_at_tools(&mut self, listener: &dyn Listener) {
        self.shown = self.setup.definitions.current(&self.setup.wanted).unwrap_or_else(|error| {
            // A restriction that cannot be read any more allows nothing, and says so.
            let message = format!("{error}; no tool is on until that is put right");
            listener.hear(Event::Warned { call: None, message: &message });
            Arc::new(Shown { notes: vec![message], ..Shown::default() })
        });
    }

    /// What is wrong with a choice when it is made is an error. What goes wrong later, because a server left, is a note.
    fn from_now_on(wanted: &Wanted) -> Arc<Wanted> {
        let mut wanted = wanted.clone();
        wanted.selection.lenient = true;
        Arc::new(wanted)
    }

    /// The provider refused the request and named parts of a schema; they are left out for the rest of this
    /// conversation. Answers whether anything new was named.
    fn leave_out(&mut self, refusal: &ModelError) -> bool {
        let named = Stripped::named_in(&refusal.message);
        let mut wanted = (*self.setup.wanted).clone();
        let grew = refusal.kind == ModelErrorKind::Rejected && wanted.without.add(&named);
        if grew {
            self.setup.wanted = Arc::new(wanted);
            self.shown = self.setup.definitions.told_again(&self.shown, &self.setup.wanted);
        }
        grew
    }

    /// The provider refused the request, and maybe because of the pictures in it: words stand in their place now. Answers
    /// the messages as they were, if there were any pictures.
    fn close_the_eyes(&mut self, refusal: &ModelError) -> Option<Vec<Message>> {
        let is_about_a_schema = !Stripped::named_in(&refusal.message).is_empty();
        if is_about_a_schema || !pictures::may_be_refused(refusal, self.setup.sight) || !pictures::any(&self.messages) {
            return None;
        }
        let before = self.messages.clone();
        pictures::take_out(&mut self.messages);
        Some(before)
    }

    /// Says something in the name of the person. Two of their messages must not follow one another.
    fn say(&mut self, words: String) {
        match self.messages.last_mut() {
            Some(Message::Pictures { text, .. } | Message::User(text)) => {
                text.push_str("\n\n");
                text.push_str(&words);
            }
            _ => self.messages.push(Message::User(words)),
        }
    }

    /// Ends everything that commands left running.
    pub async fn close(&self) {
        self.setup.task.environment.close().await;
    }

    /// Waits until a process in the background has news, or `cancel` fires.
    pub async fn until_news(&self, cancel: &CancellationToken) {
        match &self.setup.task.processes {
            Some(processes) => processes.until_news(cancel).await,
            None => cancel.cancelled().await,
        }
    }

    /// Takes the news of processes in the background; the model is told with its next request. Answers the same in a line
    /// each for people.
    pub async fn take_news(&mut self) -> Vec<String> {
        let news = self.setup.task.processes.as_ref().map(|processes| processes.news()).unwrap_or_default();
        let mut lines = Vec::new();
        for news in &news {
            let told = Told::of(news).await;
            self.news.push(self.setup.dispatcher.redacted(&told.for_the_model));
            lines.push(self.setup.dispatcher.redacted(&told.for_people));
        }
        lines
    }

    /// What the model has not been told yet, as a message.
    fn news_message(&mut self) -> Option<String> {
        let told = std::mem::take(&mut self.news);
        (!told.is_empty()).then(|| news::message(&told))
    }

    /// Answers `user`. On an error of the model before anything happened, the message is taken back, so that it can be
    /// sent again.
    pub async fn turn(
        &mut self,
        user: &str,
        listener: &dyn Listener,
        cancel: &CancellationToken,
    ) -> Result<TurnEnd, ModelError> {
        let before = self.messages.len();
        self.look_at_tools(listener);
        self.setup.task.begin_turn();
        for line in self.take_news().await {
            listener.hear(Event::News(&line));
        }
        let untold = self.news.clone();
        let news = self.news_message();
        let said = news.as_ref().map_or_else(|| user.to_owned(), |news| format!("{news}\n\n{user}"));
        self.messages.push(Message::User(said));
        let mut turn = Turn { agent: self, listener, cancel, end: TurnEnd::new() };
        let ended = turn.run().await;
        let end = turn.end;
        if let Err(why) = self.setup.dispatcher.settle(&self.setup.task).await {
            let message = format!("what this turn left was not kept, so an undo may take back more than it did: {why}");
            listener.hear(Event::Warned { call: None, message: &message });
        }
        self.usage += end.usage;
        match ended {
            Ok(()) => {
                self.close_turn(&end.reason);
                Ok(end)
            }
            Err(error) if error.kind == ModelErrorKind::Cancelled => {
                self.close_turn(&EndReason::Cancelled);
                Ok(TurnEnd { reason: EndReason::Cancelled, ..end })
            }
            Err(error) => {
                if end.calls == 0 {
                    self.messages.truncate(before);
                    self.news = untold;
                } else {
                    self.close_turn(&EndReason::Broken(error.message.clone()));
                }
                Err(error)
            }
        }
    }

    /// Puts a sentence where the conversation would otherwise end without a word of the model.
    fn close_turn(&mut self, reason: &EndReason) {
        if matches!(self.messages.last(), Some(Message::Assistant { .. })) {
            return;
        }
        let why = match reason {
            EndReason::Cancelled => "the user stopped this turn".to_owned(),
            EndReason::UnknownTools(name) => {
                format!("tools that do not exist were called again and again, last `{name}`")
            }
            EndReason::Repetition(what) => format!("this turn was ended because it went round in circles: {what}"),
            EndReason::Broken(why) => format!("this turn broke off: {why}"),
            EndReason::Answered | EndReason::BudgetSpent | EndReason::CutOff | EndReason::Filtered => {
                "this turn ended without an answer".to_owned()
            }
        };
        self.messages.push(Message::Assistant { text: format!("[{why}]"), calls: Vec::new() });
    }
}

impl TurnEnd {
    fn new() -> Self {
        Self {
            answer: String::new(),
            reason: EndReason::Answered,
            usage: Usage::default(),
            requests: 0,
            calls: 0,
            refused: 0,
        }
    }
}

/// One turn while it runs.
struct Turn<'a> {
    agent: &'a mut Agent,
    listener: &'a dyn Listener,
    cancel: &'a CancellationToken,
    end: TurnEnd,
}

impl Turn<'_> {
    async fn run(&mut self) -> Result<(), ModelError> {
        let (mut strikes, mut empty) = (0, 0);
        for _ in 0..self.agent.setup.max_requests {
            let reply = self.ask_with_tools().await?;
            if reply.calls.is_empty() {
                if reply.text.is_empty() && reply.finish == Finish::Done {
                    empty += 1;
                    if empty == EMPTY_ANSWERS {
                        let model = self.agent.setup.model.name();
                        let message = format!("{model} answered with nothing at all, {EMPTY_ANSWERS} times");
                        return Err(ModelError { kind: ModelErrorKind::Garbled, message });
                    }
                    continue;
                }
                self.answer(reply);
                return Ok(());
            }
            let reports = self.take_calls(reply).await;
            strikes = strikes_after(&reports, strikes);
            if let Some(reason) = self.reason_to_stop(&reports, strikes) {
                self.end.reason = reason;
                return Ok(());
            }
            self.tell_news().await;
        }
        self.summary().await
    }

    async fn ask_with_tools(&mut self) -> Result<ModelReply, ModelError> {
        loop {
            match self.ask(Arc::clone(&self.agent.shown.list)).await {
                Err(refusal) if self.agent.leave_out(&refusal) => {
                    let left_out: Vec<&str> = self.agent.setup.wanted.without.names().collect();
                    let left_out = left_out.join(", ");
                    let message = format!("the provider refused a tool's schema; asking again without {left_out}");
                    self.listener.hear(Event::Warned { call: None, message: &message });
                }
                answered => return answered,
            }
        }
    }

    async fn ask(&mut self, definitions: Arc<[Definition]>) -> Result<ModelReply, ModelError> {
        let refusal = match self.ask_once(Arc::clone(&definitions)).await {
            Err(refusal) => refusal,
            answered => return answered,
        };
        let Some(before) = self.agent.close_the_eyes(&refusal) else { return Err(refusal) };
        let model = self.agent.setup.model.name();
        let message = format!("{model} refused the pictures, as it seems; asking without them ({})", refusal.message);
        self.listener.hear(Event::Warned { call: None, message: &message });
        let answered = self.ask_once(definitions).await;
        match &answered {
            Ok(_) => self.agent.setup.sight = Sight::Blind,
            // It was not the pictures, or nobody knows.
            Err(_) => self.agent.messages = before,
        }
        answered
    }

    async fn ask_once(&mut self, definitions: Arc<[Definition]>) -> Result<ModelReply, ModelError> {
        self.end.requests += 1;
        let listener = self.listener;
        listener.hear(Event::Asking { request: self.end.requests });
        let mut deltas = |delta: ModelDelta| match &delta {
            ModelDelta::Text(text) => listener.hear(Event::Text(text)),
            ModelDelta::Reasoning(text) => listener.hear(Event::Reasoning(text)),
            ModelDelta::Restart { reason, delay, attempt, of } => {
                listener.hear(Event::Restart { reason, delay: *delay, attempt: *attempt, of: *of });
            }
        };
        let request = ModelRequest { messages: &self.agent.messages, definitions };
        let mut reply = self.agent.setup.model.respond(request, &mut deltas, self.cancel).await?;
        if pictures::any(&self.agent.messages) {
            self.agent.setup.sight = Sight::Sees;
        }
        self.agent.make_ids_unique(&mut reply.calls);
        self.end.usage += reply.usage;
        listener.hear(Event::Replied { text: &reply.text, calls: &reply.calls, usage: reply.usage });
        Ok(reply)
    }

    fn answer(&mut self, reply: ModelReply) {
        self.end.reason = match reply.finish {
            Finish::Done => EndReason::Answered,
            Finish::Length => EndReason::CutOff,
            Finish::Filtered => EndReason::Filtered,
        };
        self.end.answer.clone_from(&reply.text);
        if !reply.text.is_empty() {
            self.agent.messages.push(Message::Assistant { text: reply.text, calls: Vec::new() });
        }
    }

    async fn take_calls(&mut self, reply: ModelReply) -> Vec<CallReport> {
        // The model may say something beside its calls; if nothing better follows, that was the answer.
        self.end.answer.clone_from(&reply.text);
        let calls = reply.calls;
        self.agent.messages.push(Message::Assistant { text: reply.text, calls: calls.clone() });
        let (setup, shown) = (&self.agent.setup, &self.agent.shown);
        let meant: Vec<ToolCall> = calls.iter().map(|call| meant(call, shown)).collect();
        let scope = Scope {
            task: &setup.task,
            visible: &shown.tools,
            approve: setup.approve,
            cancel: self.cancel,
            observer: &Calls(self.listener),
        };
        let reports = setup.dispatcher.call_all(&meant, &scope).await;
        for (call, report) in calls.iter().zip(&reports) {
            self.end.calls += 1;
            self.end.refused += u32::from(report.status == Status::Refused);
            self.agent.messages.push(Message::ToolResult {
                call_id: call.id.clone(),
                name: call.name.clone(),
                content: report.text.clone(),
            });
        }
        if let Some(message) = pictures::message(&reports, self.agent.setup.sight) {
            self.agent.messages.push(message);
            pictures::keep_newest(&mut self.agent.messages);
        }
        reports
    }

    /// What happened in the background is told between two requests.
    async fn tell_news(&mut self) {
        for line in self.agent.take_news().await {
            self.listener.hear(Event::News(&line));
        }
        if let Some(news) = self.agent.news_message() {
            self.agent.say(news);
        }
    }

    fn reason_to_stop(&self, reports: &[CallReport], strikes: u32) -> Option<EndReason> {
        if self.cancel.is_cancelled() {
            return Some(EndReason::Cancelled);
        }
        if let Some(stop) = reports.iter().find_map(|report| report.stop.clone()) {
            return Some(match stop {
                hermes_core::StopTurn::Cancelled => EndReason::Cancelled,
                hermes_core::StopTurn::Repetition(what) => EndReason::Repetition(what),
                hermes_core::StopTurn::Broken(why) => EndReason::Broken(why),
            });
        }
        let last = reports.last().map(|report| report.name.chars().take(80).collect());
        (strikes == STRIKES).then(|| EndReason::UnknownTools(last.unwrap_or_default()))
    }

    /// The budget is spent: exactly one more request, without tools, so that the work done is not lost.
    async fn summary(&mut self) -> Result<(), ModelError> {
        let of = self.agent.setup.max_requests;
        self.listener.hear(Event::BudgetSpent { of });
        self.agent.say(format!(
            "The budget of {of} steps for this task is spent and no tool can be called any more. Say in a few sentences \
             what is done, what is not, and what the next step would be."
        ));
        let reply = self.ask(Arc::new([])).await?;
        self.answer(ModelReply { calls: Vec::new(), ..reply });
        self.end.reason = EndReason::BudgetSpent;
        Ok(())
    }
}

/// Turns in a row in which every call names a tool that is not there. One whose calls were all stopped for repetition says
/// nothing new about that.
fn strikes_after(reports: &[CallReport], strikes: u32) -> u32 {
    let all = |statuses: &[Status]| reports.iter().all(|report| statuses.contains(&report.status));
    if all(&[Status::Repeated]) {
        strikes
    } else if all(&[Status::UnknownTool, Status::Repeated]) {
        strikes + 1
    } else {
        0
    }
}

/// The call under the tool's own name, where the provider was shown another one.
fn meant(call: &ToolCall, shown: &Shown) -> ToolCall {
    ToolCall { name: shown.real_name(&call.name).to_owned(), ..call.clone() }
}

impl Agent {
    /// Results are paired by id and stored under it, so an id that was used before gets a new one.
    fn make_ids_unique(&mut self, calls: &mut [ToolCall]) {
        for call in calls {
            let mut n = 1;
            let given = call.id.clone();
            while !self.call_ids.insert(call.id.clone()) {
                n += 1;
                call.id = format!("{given}_{n}");
            }
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("model", &self.model.name()).field("wanted", &self.wanted).finish_non_exhaustive()
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("setup", &self.setup)
            .field("messages", &self.messages.len())
            .finish_non_exhaustive()
    }
}
