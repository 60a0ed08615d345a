//! The [`Tool`] trait, and what a tool may ask of its surroundings.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use serde_json::Value;

use crate::stated_path;
use crate::{
    Asker, CancellationToken, Check, Edit, Environment, JsonMap, Judge, Processes, Todos, ToolResult, ToolSpec, Touches,
};

/// Something a model can call. It answers three questions and does one thing.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The static facts.
    fn spec(&self) -> &ToolSpec;

    /// Is it usable here, beyond the variables and programs that its facts name? `None`: nothing more is needed.
    fn check(&self) -> Option<&Check> {
        None
    }

    /// How should the description read, given which other tools the model can see?
    fn describe(&self, visible: &dyn Fn(&str) -> bool) -> Cow<'_, str> {
        let _ = visible;
        Cow::Borrowed(&self.spec().description)
    }

    /// How should the arguments be described, given which other tools the model can see? Calls are validated against
    /// the schema of [`Tool::spec`], so this one may only be narrower, or say more.
    fn parameters(&self, visible: &dyn Fn(&str) -> bool) -> Cow<'_, Value> {
        let _ = visible;
        Cow::Borrowed(&self.spec().parameters)
    }

    /// What would this call do? `arguments` have passed the schema; no I/O happens here.
    fn touches(&self, arguments: &JsonMap, cx: &ToolCx) -> Touches;

    /// Calls that show how it is used; each one is run as a test.
    fn examples(&self) -> &[Example] {
        &[]
    }

    /// The call in a few words for the person at the screen, for example `"checkout" in tests/`.
    fn headline(&self, arguments: &JsonMap) -> String {
        let first = arguments.values().next();
        first.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).unwrap_or_default()
    }

    /// Every file that the call would change, with its text before and after, for an editor that shows them. Reads, and
    /// changes nothing. `Err` says why the change cannot be shown.
    async fn edits(&self, arguments: &JsonMap, cx: &ToolCx) -> Result<Vec<Edit>, String> {
        let _ = (arguments, cx);
        Err(format!("{} cannot show its changes", self.spec().name))
    }

    /// Does it. `arguments` have passed the schema. The future may be dropped at any await point.
    async fn call(&self, arguments: JsonMap, cx: ToolCx) -> ToolResult;
}

/// A call and what it must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The arguments, as JSON text.
    pub arguments: &'static str,
    /// What comes back.
    pub expected: Expected,
}

/// What an [`Example`] must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A JSON object with at least these fields.
    Fields(&'static str),
    /// An error whose text contains this.
    Error(&'static str),
}

/// Something that yields tools: the built-ins, an MCP server, a plugin.
pub trait ToolSource: Send + Sync {
    /// Who owns the tools, as shown to people.
    fn name(&self) -> &str;

    /// The tools it offers now.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

/// What a running call may use. Cheap to clone; everything in it belongs to one task.
#[derive(Clone)]
pub struct ToolCx {
    /// The call being answered.
    pub call_id: String,
    /// Where commands run and files live.
    pub environment: Arc<dyn Environment>,
    /// The person, when there is one to ask.
    pub asker: Option<Arc<dyn Asker>>,
    /// The agent's todo list, when an agent drives the call.
    pub todos: Option<Arc<dyn Todos>>,
    /// The processes in the background, where there can be any.
    pub processes: Option<Arc<dyn Processes>>,
    /// Who says which files are secret, where somebody does.
    pub judge: Option<Arc<dyn Judge>>,
    /// Which part of a conversation reads the answer: it grows when the conversation is made shorter and what was said before
    /// is gone. `None` if nobody remembers, because a program reads it.
    pub segment: Option<u64>,
    /// State that tools keep from call to call of the same task.
    pub scratch: Arc<Scratch>,
    /// How much a tool may show and how long it may take.
    pub limits: Limits,
    /// Fires when the person stops the turn.
    pub cancel: CancellationToken,
}

/// How much a tool may show and how long it may take (`terminal.*` and `tool_output.*` in the configuration).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A command that names no time limit gets this one.
    pub command_timeout: Duration,
    /// The longest limit that a call may ask for.
    pub longest_command_timeout: Duration,
    /// A command that outlives its limit lives on in the background, where there can be any, instead of being ended.
    pub keep_at_limit: bool,
    /// Bytes of command output that are kept.
    pub output_bytes: usize,
    /// Lines of a file that one read shows at most.
    pub read_lines: usize,
    /// Characters of one line that are shown.
    pub line_chars: usize,
    /// Characters of one result that reach the model as they are; a longer one is stored and previewed, so a tool that
    /// can show less and say so stays below. Set by the runtime, from the model's window.
    pub result_chars: usize,
}

impl Default for Limits {
    /// The values of the reference (spec exec §2.2, §9.1).
    fn default() -> Self {
        Self {
            command_timeout: Duration::from_secs(180),
            longest_command_timeout: Duration::from_secs(600),
            keep_at_limit: true,
            output_bytes: 50_000,
            read_lines: 2_000,
            line_chars: 2_000,
            result_chars: ToolSpec::DEFAULT_MAX_RESULT_CHARS,
        }
    }
}

impl ToolCx {
    /// The context of a call that nobody but a program is behind: no person, no todo list, no processes, no judge, no
    /// conversation. Whoever has one of them adds it.
    pub fn of_a_program(environment: Arc<dyn Environment>) -> Self {
        Self {
            call_id: "call".into(),
            environment,
            asker: None,
            todos: None,
            processes: None,
            judge: None,
            segment: None,
            scratch: Arc::default(),
            limits: Limits::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// The absolute path that `raw` means in a call: see [`crate::stated_path`]. Everything that a tool does with a path
    /// begins here, so that who judges a call and who runs it speak of the same file.
    pub fn resolve(&self, raw: &str) -> PathBuf {
        stated_path::resolve(raw, &self.environment.cwd(), self.environment.home())
    }
}

impl fmt::Debug for ToolCx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCx").field("call_id", &self.call_id).finish_non_exhaustive()
    }
}

/// State that tools keep per task, one value a type.
///
/// A tool defines a private type and asks for it; nobody else can name that type, so nobody else can touch the state.
#[derive(Default)]
pub struct Scratch(Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Scratch {
    /// The task's value of type `T`, made on first use.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = map.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // The key is the type's own id, so the stored value always has that type.
        Arc::clone(slot).downcast::<T>().unwrap_or_default()
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tool({})", self.spec().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_keeps_one_value_a_type() {
        let scratch = Scratch::default();
        *scratch.get::<Mutex<u8>>().lock().unwrap() = 7;
        assert_eq!(*scratch.get::<Mutex<u8>>().lock().unwrap(), 7);
        assert_eq!(*scratch.get::<Mutex<u16>>().lock().unwrap(), 0);
    }
}
