//! A whole session: the real loop, the real adapter, the real built-in tools in a folder of their own.
//!
//! Only the model is scripted. Every turn made here is a check as well: however it ends, the conversation it leaves can
//! be sent as it stands.
#![allow(dead_code, reason = "each test file uses its own part of this")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_agent::chat_completions::Transport;
use hermes_agent::{Agent, ChatCompletions, Event, HttpTransport, Listener, Retry, Setup, Sight, TodoList, TurnEnd};
use hermes_core::{Asker, CancellationToken, Environment as _, Message, ModelError, Tool};
use hermes_exec::LocalEnvironment;
use hermes_runtime::{
    ApprovalMode, Budget, Checks, Definitions, Dispatcher, Guardrails, Hooks, Owner, OwnerKind, PlainJudge, Profile,
    Registry, Selection, Status, Task, Wanted,
};
use hermes_testkit::{FakeSurroundings, FakeTool, ModelServer, TempHome};
use hermes_tools::Builtins;
use serde_json::Value;

/// What every session here is told first.
pub(crate) const SYSTEM: &str = "You are under test.";
/// The name of the model.
pub(crate) const MODEL: &str = "test-model";
/// A turn that takes longer never ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a session is set up. It starts with everything allowed, nobody to ask, streaming, and patience for three
/// attempts a millisecond apart.
pub(crate) struct Plan {
    home: TempHome,
    tools: Vec<Arc<dyn Tool>>,
    approve: ApprovalMode,
    person: Option<Arc<dyn Asker>>,
    max_requests: u32,
    sight: Sight,
    stream: bool,
    max_tokens: Option<u64>,
    retry: Retry,
    guardrails: Option<Guardrails>,
    budget: Budget,
    hooks: Hooks,
    shared: Option<Arc<Definitions>>,
    heard: Heard,
}

impl Plan {
    pub(crate) fn new() -> Self {
        Self {
            home: TempHome::new(),
            tools: Vec::new(),
            approve: ApprovalMode::All,
            person: None,
            max_requests: 90,
            sight: Sight::Unknown,
            stream: true,
            max_tokens: None,
            retry: Retry { attempts: 3, base: Duration::from_millis(1) },
            guardrails: None,
            budget: Budget::default(),
            hooks: Hooks::default(),
            shared: None,
            heard: Heard::default(),
        }
    }

    /// Puts a file into the folder of the session.
    pub(crate) fn with_file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.home.write(path, content);
        self
    }

    /// Adds a tool beside the built-in ones.
    pub(crate) fn with_tool(mut self, tool: &Arc<FakeTool>) -> Self {
        self.tools.push(Arc::clone(tool) as _);
        self
    }

    /// Asks a person about dangerous calls.
    pub(crate) fn asking(mut self, person: &Arc<impl Asker + 'static>) -> Self {
        self.approve = ApprovalMode::Ask;
        self.person = Some(Arc::clone(person) as _);
        self
    }

    pub(crate) fn with_budget(mut self, max_requests: u32) -> Self {
        self.max_requests = max_requests;
        self
    }

    pub(crate) fn with_sight(mut self, sight: Sight) -> Self {
        self.sight = sight;
        self
    }

    pub(crate) fn not_streamed(mut self) -> Self {
        self.stream = false;
        self
    }

    pub(crate) fn with_max_tokens(mut self, max_tokens: u64) -> Self {
        self.max_tokens = Some(max_tokens);
        self
    }

    pub(crate) fn with_retry(mut self, retry: Retry) -> Self {
        self.retry = retry;
        self
    }

    /// Puts on the brakes against repetition.
    pub(crate) fn with_guardrails(mut self) -> Self {
        self.guardrails = Some(Guardrails::default());
        self
    }

    /// Sets how long the results may be.
    pub(crate) fn with_result_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Lets others take part in the calls.
    pub(crate) fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = hooks;
        self
    }

    /// Takes the tools and the remembered lists of another session of the same process.
    pub(crate) fn beside(mut self, session: &Session) -> Self {
        self.shared = Some(Arc::clone(&session.definitions));
        self
    }

    /// Does something at each event, for example stop the turn.
    pub(crate) fn reacting(mut self, react: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.heard.react = Some(Box::new(react));
        self
    }

    /// Starts the session with a server as its model.
    pub(crate) fn with_model(self, server: &ModelServer) -> Session {
        self.over(HttpTransport::new(&server.base_url(), None).unwrap())
    }

    /// Starts the session over any transport.
    pub(crate) fn over(self, transport: impl Transport + 'static) -> Session {
        let definitions = self.shared.unwrap_or_else(|| {
            let registry = Arc::new(Registry::new());
            registry.built_in(&Builtins).unwrap();
            Arc::new(Definitions::new(registry, Checks::new(Arc::new(FakeSurroundings::complete()))))
        });
        let registry = Arc::clone(definitions.registry());
        let extra = registry.owner(OwnerKind::Plugin, "extra", true);
        registry.offer(&extra, self.tools).unwrap();
        let selection = Selection::exactly(&["all"]);

        let (work, user_home) = (self.home.work(), self.home.user_home());
        let environment = LocalEnvironment::new(&work, &user_home, std::env::vars_os(), &[]).unwrap();
        let store = environment.scratch().join("results");
        let mut task = Task::new(Arc::new(environment)).with_todos(Arc::new(TodoList::default()));
        task.asker = self.person;
        task.guardrails = self.guardrails;
        task.budget = self.budget;
        let model = ChatCompletions::new(transport, MODEL)
            .with_retry(self.retry)
            .with_stream(self.stream)
            .with_max_tokens(self.max_tokens);
        let agent = Agent::new(Setup {
            model: Arc::new(model),
            dispatcher: Arc::new(Dispatcher::new(registry, Arc::new(PlainJudge)).with_hooks(self.hooks)),
            task,
            definitions: Arc::clone(&definitions),
            wanted: Arc::new(Wanted::new(selection, Profile::OpenAiChat)),
            approve: self.approve,
            max_requests: self.max_requests,
            system_prompt: SYSTEM.into(),
            sight: self.sight,
        })
        .unwrap();
        Session { agent, home: self.home, store, definitions, extra, heard: self.heard }
    }
}

/// A session and everything it showed.
pub(crate) struct Session {
    pub(crate) agent: Agent,
    pub(crate) home: TempHome,
    /// Where long results are stored.
    pub(crate) store: PathBuf,
    /// Its registry is the one that the calls go to.
    pub(crate) definitions: Arc<Definitions>,
    /// In whose name the tools of the plan were offered.
    pub(crate) extra: Owner,
    pub(crate) heard: Heard,
}

impl Session {
    /// One turn that nobody stops.
    pub(crate) async fn turn(&mut self, user: &str) -> Result<TurnEnd, ModelError> {
        self.turn_until(user, &CancellationToken::new()).await
    }

    /// One turn, stopped when `cancel` fires.
    pub(crate) async fn turn_until(&mut self, user: &str, cancel: &CancellationToken) -> Result<TurnEnd, ModelError> {
        let turn = tokio::time::timeout(PATIENCE, self.agent.turn(user, &self.heard, cancel));
        let ended = turn.await.expect("the turn ends");
        assert_sendable(self.agent.messages());
        ended
    }

    /// What the model was told about the calls so far: id and text, in the order of the conversation.
    pub(crate) fn results(&self) -> Vec<(&str, &str)> {
        let messages = self.agent.messages().iter();
        let results = messages.filter_map(|message| match message {
            Message::ToolResult { call_id, content, .. } => Some((call_id.as_str(), content.as_str())),
            _ => None,
        });
        results.collect()
    }

    /// The result of the call `id`.
    pub(crate) fn result(&self, id: &str) -> &str {
        self.results().iter().find(|(call, _)| *call == id).unwrap_or_else(|| panic!("no result for {id}")).1
    }
}

/// The rules that make a conversation acceptable to a provider (spec agent, appendix E).
pub(crate) fn assert_sendable(messages: &[Message]) {
    let mut ids = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (i, message) in messages.iter().enumerate() {
        let before = i.checked_sub(1).map(|before| &messages[before]);
        let here = || format!("message {i} of {messages:#?}");
        match message {
            Message::System(_) => assert_eq!(i, 0, "{}", here()),
            Message::ToolResult { call_id, .. } => {
                assert!(!open.is_empty() && open.remove(0) == call_id, "a result without its call: {}", here());
            }
            Message::User(_) | Message::Pictures { .. } => {
                assert!(
                    !matches!(before, Some(Message::User(_) | Message::Pictures { .. })),
                    "two messages of the person in a row: {}",
                    here()
                );
                assert!(open.is_empty(), "calls without an answer: {}", here());
            }
            Message::Assistant { calls, .. } => {
                assert!(!matches!(before, None | Some(Message::System(_) | Message::Assistant { .. })), "{}", here());
                assert!(open.is_empty(), "calls without an answer: {}", here());
                open.extend(calls.iter().map(|call| call.id.as_str()));
                for call in calls {
                    assert!(ids.insert(&call.id), "the id {} comes twice: {}", call.id, here());
                }
            }
        }
    }
    assert!(open.is_empty(), "calls without an answer at the end of {messages:#?}");
    let last = messages.last();
    assert!(matches!(last, Some(Message::System(_) | Message::Assistant { .. })), "nobody answered {last:?}");
}

/// The same rules for what was really sent, where the next answer is the model's.
pub(crate) fn assert_accepted(request: &Value) {
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "system");
    let mut open: Vec<&Value> = Vec::new();
    for (i, message) in messages.iter().enumerate().skip(1) {
        let before = messages[i - 1]["role"].as_str().unwrap();
        match message["role"].as_str().unwrap() {
            "tool" => {
                assert!(!open.is_empty() && *open.remove(0) == message["tool_call_id"], "{messages:#?}");
            }
            role => {
                assert!(open.is_empty(), "calls without an answer before message {i}: {messages:#?}");
                assert!(role != before, "two messages of one side in a row: {messages:#?}");
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    open.push(&call["id"]);
                    let arguments = call["function"]["arguments"].as_str().unwrap();
                    let parsed: Result<BTreeMap<String, Value>, _> = serde_json::from_str(arguments);
                    assert!(parsed.is_ok(), "providers refuse a history with these arguments: {arguments}");
                    assert!(!call["function"]["name"].as_str().unwrap().trim().is_empty(), "a call without a name");
                }
            }
        }
    }
    assert!(open.is_empty(), "calls without an answer at the end: {messages:#?}");
    assert_ne!(messages.last().unwrap()["role"], "assistant", "the model would answer itself: {messages:#?}");
}

/// Everything a listener was told, kept.
#[derive(Default)]
pub(crate) struct Heard {
    moments: Mutex<Vec<Moment>>,
    react: Option<Reaction>,
}

type Reaction = Box<dyn Fn(&Event<'_>) + Send + Sync>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Moment {
    Asking(u32),
    Text(String),
    Reasoning(String),
    Restart { reason: String, delay: Duration, attempt: u32, of: u32 },
    Replied,
    Started(String),
    Finished(String, Status),
    Warned(String),
    News(String),
    BudgetSpent(u32),
}

impl Heard {
    pub(crate) fn moments(&self) -> Vec<Moment> {
        self.moments.lock().unwrap().clone()
    }

    /// What a person sees of the answers: one text a request, without what was withdrawn.
    pub(crate) fn shown(&self) -> Vec<String> {
        let mut shown: Vec<String> = Vec::new();
        for moment in self.moments() {
            match moment {
                Moment::Asking(_) => shown.push(String::new()),
                Moment::Text(text) => shown.last_mut().unwrap().push_str(&text),
                Moment::Restart { .. } => shown.last_mut().unwrap().clear(),
                _ => {}
            }
        }
        shown
    }

    pub(crate) fn reasoning(&self) -> String {
        let reasoning = |moment| if let Moment::Reasoning(text) = moment { Some(text) } else { None };
        self.moments().into_iter().filter_map(reasoning).collect()
    }

    /// The number of the next attempt and the wait before it, for each attempt that failed and was repeated.
    pub(crate) fn restarts(&self) -> Vec<(u32, Duration)> {
        let restart =
            |moment| if let Moment::Restart { attempt, delay, .. } = moment { Some((attempt, delay)) } else { None };
        self.moments().into_iter().filter_map(restart).collect()
    }

    /// What a person was told beside the answers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warning = |moment| if let Moment::Warned(message) = moment { Some(message) } else { None };
        self.moments().into_iter().filter_map(warning).collect()
    }

    /// How each call ended, in the order in which they ended.
    pub(crate) fn ends(&self) -> Vec<(String, Status)> {
        let end = |moment| if let Moment::Finished(id, status) = moment { Some((id, status)) } else { None };
        self.moments().into_iter().filter_map(end).collect()
    }
}

impl Listener for Heard {
    fn hear(&self, event: Event<'_>) {
        if let Some(react) = &self.react {
            react(&event);
        }
        self.moments.lock().unwrap().push(match event {
            Event::Asking { request } => Moment::Asking(request),
            Event::Text(text) => Moment::Text(text.into()),
            Event::Reasoning(text) => Moment::Reasoning(text.into()),
            Event::Restart { reason, delay, attempt, of } => {
                Moment::Restart { reason: reason.into(), delay, attempt, of }
            }
            Event::Replied { .. } => Moment::Replied,
            Event::CallStarted(call) => Moment::Started(call.id.clone()),
            Event::CallFinished(report) => Moment::Finished(report.id.clone(), report.status),
            Event::Warned { message, .. } => Moment::Warned(message.into()),
            Event::News(line) => Moment::News(line.into()),
            Event::BudgetSpent { of } => Moment::BudgetSpent(of),
        });
    }
}
