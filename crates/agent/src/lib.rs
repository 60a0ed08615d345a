//! Models and the loop that drives them.
//!
//! [`Agent`] keeps a conversation, asks a [`hermes_core::Model`] for the next turn, has the calls in it dispatched, and
//! goes on until there is an answer, the budget is spent or the person stops it. [`chat_completions`] is the model
//! adapter; [`script`] plays prepared turns through the very same adapter.
//!
//! What this crate refuses to do: name a tool, print, read the environment or a configuration file. Whoever builds an
//! [`Agent`] says what it may use, and listens to its [`Event`]s.
//!
//! The one tricky idea: the conversation is always in a state that can be sent. Every call has exactly one answer, the
//! roles alternate, and a turn that is cut short is closed with a sentence that says so.
//!
//! Start reading at [`agent`], then [`chat_completions`].

pub mod agent;
pub mod chat_completions;
pub mod event;
pub mod local_servers;
mod news;
mod pictures;
pub mod project_file;
pub mod reviewer;
pub mod script;
pub mod system_prompt;
mod think;
pub mod todo_list;

pub use agent::{Agent, EndReason, Setup, TurnEnd};
pub use chat_completions::{ChatCompletions, HttpTransport, Retry};
pub use event::{Event, Listener};
pub use pictures::Sight;
pub use reviewer::ModelReviewer;
pub use script::Script;
pub use todo_list::TodoList;
