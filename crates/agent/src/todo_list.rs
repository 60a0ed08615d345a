//! The agent's todo list, in memory.

use std::sync::{Mutex, PoisonError};

use hermes_core::{TodoItem, Todos};

/// One list, for one conversation.
#[derive(Debug, Default)]
pub struct TodoList(Mutex<Vec<TodoItem>>);

impl Todos for TodoList {
    fn read(&self) -> Vec<TodoItem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, items: Vec<TodoItem>) -> Vec<TodoItem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&items);
        items
    }
}
