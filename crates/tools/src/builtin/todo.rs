//! `todo`: the model's own list of things to do.
//!
//! The list belongs to the agent, not to this file: the tool only edits it (spec agent §8.1). It is forgiving, because
//! a plan that is refused for a missing word helps nobody: an unknown status is pending, an id that comes twice keeps
//! its last version.

use hermes_core::{TodoItem, TodoStatus};

use crate::prelude::*;

/// At most this many things are kept (spec agent §8.1).
const MOST_ITEMS: usize = 256;
/// Longer descriptions are cut, visibly.
const LONGEST_CONTENT: usize = 4_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The new list, or with `merge` the items to change or add. Leave out to read the list.
    todos: Option<Vec<Item>>,
    /// Change and add items by id instead of putting the new list in place of the old one.
    merge: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    /// Short and unique, for example `1`.
    #[serde(default)]
    id: String,
    /// What is to be done.
    #[serde(default)]
    content: String,
    /// One of `pending`, `in_progress`, `completed`, `cancelled`. At most one item should be `in_progress`.
    #[serde(default)]
    status: String,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("todo", todo)
        .also_known_as(&["todo_write", "todo_read", "todos", "update_plan", "plan", "task_list", "update_todo_list"])
        .toolset("todo")
        .emoji("📋")
        .effect(Effect::None)
        .about(
            "Keep a list of steps for work that has three or more of them. Write it before you start, update it as you \
             go, and call it without arguments to read it.",
        )
        .headline(|args: &Args| match &args.todos {
            None => "read".into(),
            Some(items) if args.merge == Some(true) => format!("update {}", items.len()),
            Some(items) => format!("plan {}", items.len()),
        })
        .example(
            r#"{"todos": [{"id": "1", "content": "read the code", "status": "in_progress"}]}"#,
            gives(r#"{"summary": {"total": 1, "pending": 0, "in_progress": 1, "completed": 0, "cancelled": 0}}"#),
        )
        .example("{}", gives(r#"{"todos": [{"id": "1", "content": "read the code", "status": "in_progress"}]}"#))
        .example(
            r#"{"merge": true, "todos": [{"id": "1", "status": "completed"}, {"id": "2", "content": "fix it"}]}"#,
            gives(r#"{"summary": {"total": 2, "pending": 1, "in_progress": 0, "completed": 1, "cancelled": 0}}"#),
        )
}

async fn todo(args: Args, cx: ToolCx) -> ToolResult {
    let todos = cx.todos.ok_or_else(|| ToolError::tell("todo must be handled by the agent loop"))?;
    let list = match args.todos {
        None => todos.read(),
        Some(items) if args.merge == Some(true) => todos.replace(merged(todos.read(), items)),
        Some(items) => todos.replace(replaced(items)),
    };
    let count = |status| list.iter().filter(|item| item.status == status).count();
    let (done, total) = (count(TodoStatus::Completed), list.len());
    let result = json!({
        "todos": list,
        "summary": {
            "total": total,
            "pending": count(TodoStatus::Pending),
            "in_progress": count(TodoStatus::InProgress),
            "completed": done,
            "cancelled": count(TodoStatus::Cancelled),
        },
    });
    Ok(ToolOutput::json(result).with_summary(format!("{done} of {total} done")))
}

/// The last version of each id, at the place where it came last.
fn replaced(items: Vec<Item>) -> Vec<TodoItem> {
    let mut list: Vec<TodoItem> = Vec::new();
    for item in items {
        let item = whole(&item);
        list.retain(|known| known.id != item.id);
        list.push(item);
    }
    list.truncate(MOST_ITEMS);
    list
}

fn merged(mut list: Vec<TodoItem>, items: Vec<Item>) -> Vec<TodoItem> {
    for item in items.into_iter().filter(|item| !item.id.trim().is_empty()) {
        match list.iter_mut().find(|known| known.id == item.id.trim()) {
            Some(known) => {
                if !item.content.trim().is_empty() {
                    known.content = cut(&item.content);
                }
                if let Some(status) = status(&item.status) {
                    known.status = status;
                }
            }
            None => list.push(whole(&item)),
        }
    }
    list.truncate(MOST_ITEMS);
    list
}

fn whole(item: &Item) -> TodoItem {
    let or =
        |text: &str, instead: &str| if text.trim().is_empty() { instead.to_owned() } else { text.trim().to_owned() };
    TodoItem {
        id: or(&item.id, "?"),
        content: or(&cut(&item.content), "(no description)"),
        status: status(&item.status).unwrap_or_default(),
    }
}

fn status(written: &str) -> Option<TodoStatus> {
    match written.trim() {
        "pending" => Some(TodoStatus::Pending),
        "in_progress" => Some(TodoStatus::InProgress),
        "completed" => Some(TodoStatus::Completed),
        "cancelled" => Some(TodoStatus::Cancelled),
        _ => None,
    }
}

fn cut(content: &str) -> String {
    match content.char_indices().nth(LONGEST_CONTENT) {
        Some((at, _)) => format!("{}… [truncated]", &content[..at]),
        None => content.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, content: &str, status: &str) -> Item {
        Item { id: id.into(), content: content.into(), status: status.into() }
    }

    #[test]
    fn the_last_of_two_equal_ids_wins_and_an_unknown_status_is_pending() {
        let list = replaced(vec![item("1", "a", "completed"), item("2", "b", ""), item("1", "c", "soon")]);
        assert_eq!(list.iter().map(|item| item.content.as_str()).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(list[1].status, TodoStatus::Pending);
    }

    #[test]
    fn merging_keeps_the_order_and_what_was_not_said() {
        let list = replaced(vec![item("1", "a", "pending"), item("2", "b", "pending")]);
        let list = merged(list, vec![item("3", "c", ""), item("1", "", "completed"), item(" ", "lost", "")]);
        let short: Vec<_> = list.iter().map(|item| (item.id.as_str(), item.content.as_str(), item.status)).collect();
        assert_eq!(short[0], ("1", "a", TodoStatus::Completed));
        assert_eq!(short[2], ("3", "c", TodoStatus::Pending));
        assert_eq!(short.len(), 3);
    }

    #[test]
    fn long_things_are_cut_visibly() {
        let list = replaced(vec![item("", &"é".repeat(5_000), "")]);
        assert!(list[0].content.ends_with("… [truncated]"));
        assert_eq!(list[0].id, "?");
        assert_eq!(replaced((0..300).map(|i| item(&i.to_string(), "x", "")).collect()).len(), MOST_ITEMS);
    }
}
