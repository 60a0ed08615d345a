//! `patch`: changes pieces of files.
//!
//! Mode `replace` puts one text in the place of another in one file, or several at once; mode `patch` takes a patch of
//! several files in the V4A format. Either everything that is asked for is done or nothing is, and bytes beside a change
//! are the bytes that were there, whatever they mean.
//!
//! How text is found is in `support/matching`, how patches work in `support/v4a`. Here is what a model sends and gets.

mod replace;

use std::path::Path;
use std::sync::Arc;

use hermes_core::{Edit, JsonMap, grouped, plural};

use self::replace::{Change, Made, change};
use crate::prelude::*;
use crate::support::diff;
use crate::support::known::{self, Fingerprint};
use crate::support::syntax;
use crate::support::text::{file_error, is_text, write_after};
use crate::support::v4a::{self, Content, Failure, Operation, Outcome, Plan, Step};
use crate::support::view::View;
use crate::support::words::quoted;

#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// `replace` (default): needs path, and `old_string` with `new_string`, or edits. `patch`: needs patch.
    mode: Option<Mode>,
    /// File to change (mode replace).
    path: Option<String>,
    /// The text to replace, copied exactly from the file, with enough lines around it to be unique.
    old_string: Option<String>,
    /// The text to put in its place; empty deletes.
    new_string: Option<String>,
    /// Replace every occurrence instead of requiring exactly one.
    replace_all: Option<bool>,
    /// Several replacements in the file at once, each with `old_string` and `new_string`; all are found in the file as it is now, and all are made or none.
    edits: Option<Vec<One>>,
    /// Mode patch: `*** Begin Patch`, then for each file `*** Update File: PATH` with hunks (`@@ class or function before it`, lines that begin with a blank, `-` or `+`), `*** Add File: PATH` with `+` lines, `*** Delete File: PATH` or `*** Move File: OLD -> NEW`, then `*** End Patch`.
    patch: Option<String>,
}

/// One replacement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    /// The text to replace.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    replace_all: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Replace,
    Patch,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("patch", patch)
        .also_known_as(&["edit", "edit_file", "str_replace", "str_replace_editor", "str_replace_based_edit_tool", "search_replace", "replace_in_file", "apply_patch", "apply_diff", "replace", "multi_edit"])
        .toolset("file")
        .emoji("🩹")
        .effect(Effect::Write)
        .parallel()
        .edits(edits)
        .about("Change pieces of files: replace a text in a file, or apply a patch that adds, updates, moves and deletes several files. All of it is done, or nothing. Read the file first and copy the old text exactly, indentation included.")
        .touches(touches)
        .headline(headline)
        .example(
            r#"{"path": "notes.txt", "old_string": "two", "new_string": "2"}"#,
            gives(r#"{"success": true, "strategy": "exact", "lines": [2]}"#),
        )
        .example(
            r#"{"path": "notes.txt", "edits": [{"old_string": "one", "new_string": "1"}, {"old_string": "three", "new_string": "3"}]}"#,
            gives(r#"{"success": true, "edits": [{"strategy": "exact", "lines": [1], "replacements": 1}, {"strategy": "exact", "lines": [3], "replacements": 1}]}"#),
        )
        .example(
            r#"{"mode": "patch", "patch": "*** Begin Patch\n*** Update File: notes.txt\n one\n-two\n+2\n*** Add File: new.txt\n+hi\n*** End Patch"}"#,
            gives(r#"{"success": true}"#),
        )
        .example(r#"{"path": "notes.txt", "old_string": "four", "new_string": "4"}"#, fails("was not found in notes.txt"))
        .example(r#"{"path": "notes.txt", "old_string": "\n", "new_string": " "}"#, fails("found 3 times in notes.txt"))
        .example(r#"{"path": "notes.txt", "old_string": "", "new_string": "x"}"#, fails("old_string is empty"))
        .example(r#"{"path": "notes.txt", "old_string": "one"}"#, fails("`new_string` is missing"))
        .example(r#"{"mode": "patch", "patch": "*** Update File: notes.txt\n-four\n+4"}"#, fails("nothing was changed"))
}

/// What is asked for.
enum Request {
    Replace(String, Vec<One>),
    Patch(Vec<Operation>),
}

/// An error after which every file is as it was.
fn unchanged(message: &str) -> ToolError {
    let said = if message.contains("nothing was changed") { "" } else { "; nothing was changed" };
    ToolError::tell(format!("patch: {message}{said}")).with("success", false)
}

impl Args {
    fn request(self) -> Result<Request, ToolError> {
        let has_edit = self.old_string.is_some() || self.edits.is_some();
        let mode = self.mode.unwrap_or(if self.patch.is_some() && !has_edit { Mode::Patch } else { Mode::Replace });
        if mode == Mode::Patch {
            let Some(patch) = self.patch.filter(|patch| !patch.trim().is_empty()) else {
                return Err(unchanged("`patch` is missing: mode patch needs the text of a patch in it"));
            };
            return v4a::parse(&patch).map(Request::Patch).map_err(|error| unchanged(&error.to_string()));
        }
        let needs = "mode replace needs path, and old_string with new_string, or edits";
        let missing = |field: &str| unchanged(&format!("`{field}` is missing: {needs}"));
        if self.patch.is_some() && !has_edit {
            return Err(unchanged("the mode is replace, but there is a `patch`; use mode patch for it"));
        }
        let path = self.path.filter(|path| !path.trim().is_empty()).ok_or_else(|| missing("path"))?;
        let mut edits = self.edits.unwrap_or_default();
        match (self.old_string, self.new_string) {
            // Filled in for the sake of form, beside a list that says everything.
            (None, None) if !edits.is_empty() => {}
            (Some(old), None) if old.is_empty() && !edits.is_empty() => {}
            (Some(old), Some(new)) if old.is_empty() && new.is_empty() && !edits.is_empty() => {}
            (Some(old_string), Some(new_string)) => {
                edits.insert(0, One { old_string, new_string, replace_all: self.replace_all });
            }
            (None, _) => return Err(missing("old_string")),
            (_, None) => return Err(missing("new_string")),
        }
        Ok(Request::Replace(path, edits))
    }
}

/// Both ends of every operation. What is no request reaches nothing: the call ends with an error.
fn touches(args: &Args, cx: &ToolCx) -> Touches {
    match args.clone().request() {
        Ok(Request::Replace(path, edits)) => {
            let mut touches = Touches::writing(cx.resolve(&path));
            for edit in edits {
                if edit.replace_all == Some(true) {
                    touches = touches.because("every occurrence is replaced:");
                }
                touches.explain.extend(quoted('-', &edit.old_string));
                touches.explain.extend(quoted('+', &edit.new_string));
            }
            touches
        }
        Ok(Request::Patch(operations)) => {
            let mut touches = Touches::nothing().because(format!("a patch: {}", in_short(&operations)));
            for operation in &operations {
                match operation {
                    Operation::Add { path, .. } | Operation::Delete { path } | Operation::Update { path, to: None, .. } => {
                        touches.writes.push(cx.resolve(path));
                    }
                    // Under its new name the content may be read by whoever may not read it under the old one.
                    Operation::Move { path, to } | Operation::Update { path, to: Some(to), .. } => {
                        touches.reads.push(cx.resolve(path));
                        touches.writes.extend([cx.resolve(path), cx.resolve(to)]);
                    }
                }
            }
            touches.explain.extend(args.patch.iter().flat_map(|patch| patch.lines()).map(str::to_owned));
            touches
        }
        Err(_) => Touches::nothing(),
    }
}

/// `changes 2 files, adds 1, moves 1`.
fn in_short(operations: &[Operation]) -> String {
    let count = |is: fn(&Operation) -> bool| operations.iter().filter(|operation| is(operation)).count();
    let counts = [
        ("changes", count(|operation| matches!(operation, Operation::Update { .. }))),
        ("adds", count(|operation| matches!(operation, Operation::Add { .. }))),
        ("moves", count(|operation| matches!(operation, Operation::Move { .. } | Operation::Update { to: Some(_), .. }))),
        ("deletes", count(|operation| matches!(operation, Operation::Delete { .. }))),
    ];
    let said = counts.iter().filter(|(_, count)| *count > 0).map(|(verb, count)| format!("{verb} {}", plural(*count, "file")));
    said.collect::<Vec<_>>().join(", ")
}

fn headline(args: &Args) -> String {
    match args.clone().request() {
        Ok(Request::Replace(path, _)) => path,
        Ok(Request::Patch(operations)) => match &operations[..] {
            [Operation::Add { path, .. } | Operation::Delete { path } | Operation::Update { path, .. } | Operation::Move { path, .. }] => path.clone(),
            operations => plural(operations.len(), "file"),
        },
        Err(_) => String::new(),
    }
}

async fn edits(args: Args, cx: ToolCx) -> Result<Vec<Edit>, String> {
    match args.request().map_err(|error| error.to_string())? {
        Request::Replace(path, edits) => {
            let change = change(&cx, &path, &edits).await.map_err(|error| error.to_string())?;
            Ok(vec![Edit::new(&change.path, Some(text_of(&change.before)), Some(text_of(&change.after)))])
        }
        Request::Patch(operations) => {
            let plan = planned(&cx, &operations).await.map_err(|error| error.to_string())?;
            let text = |content: &Content| match content {
                Content::Nothing => None,
                Content::Unread => Some("(not shown)".to_owned()),
                Content::Bytes(bytes) => Some(text_of(bytes)),
            };
            let edit = |outcome: &Outcome| {
                let (before, after) = (text(&outcome.before), text(&outcome.after));
                match &outcome.from {
                    Some(from) => vec![Edit::new(from, before, None), Edit::new(&outcome.path, None, after)],
                    None => vec![Edit::new(&outcome.path, before, after)],
                }
            };
            Ok(plan.outcomes.iter().flat_map(edit).collect())
        }
    }
}

/// A content for eyes.
fn text_of(content: &[u8]) -> String {
    if is_text(content) {
        View::new(content).text().to_owned()
    } else {
        format!("({} bytes that are no text)", grouped(content.len() as u64))
    }
}

async fn planned(cx: &ToolCx, operations: &[Operation]) -> Result<Plan, ToolError> {
    v4a::plan(cx, operations).await.map_err(|problems| {
        let said: Vec<&str> = problems.iter().map(|problem| problem.why.as_str()).collect();
        let error = match said[..] {
            [one] => unchanged(one),
            ref several => unchanged(&format!("{} problems:\n- {}", several.len(), several.join("\n- "))),
        };
        let near: Vec<&str> = problems.iter().filter_map(|problem| problem.nearest.as_deref()).collect();
        if near.is_empty() { error } else { error.with("nearest", near.join("---\n")) }
    })
}

async fn patch(args: Args, cx: ToolCx) -> ToolResult {
    match args.request()? {
        Request::Replace(path, edits) => {
            let asked = format!("{edits:?}");
            let change = change(&cx, &path, &edits).await?;
            match change.is_there.then(|| known::asked_again(&cx, &change.path, &asked, &change.before)) {
                None | Some(0) => replace(&cx, change, &asked).await,
                Some(times) => Ok(made_already(&change, times)),
            }
        }
        Request::Patch(operations) => apply(&cx, planned(&cx, &operations).await?).await,
    }
}

/// The answer to an edit that this task has just made, and that would be made on top of itself.
fn made_already(change: &Change, times: u32) -> ToolOutput {
    let line = change.made.first().and_then(|made| made.lines.first()).copied().unwrap_or(1);
    let next = if times > 1 { "; read the file again before you go on" } else { "" };
    let message = format!("already applied: the new text is there, in line {line}; nothing was changed{next}");
    let resolved = change.path.display().to_string();
    ToolOutput::json(json!({ "success": true, "status": "already_applied", "message": message, "resolved_path": resolved }))
        .with_summary("already applied")
}

async fn replace(cx: &ToolCx, change: Change, asked: &str) -> ToolResult {
    let Change { path, before, after, diff, quiet, made, .. } = change;
    let written = write_after(&*cx.environment, &path, &before, &after).await;
    written.map_err(|error| file_error("patch", &error).with("success", false))?;
    known::remember(cx, &path, Fingerprint::of(&after)).await;
    known::edited(cx, &path, asked, &after);
    let lint = syntax::check(&path, Some(Arc::new(before)), Arc::new(after), quiet).await;
    let mut result = json!({ "success": true });
    let told = |made: &Made| json!({ "strategy": made.strategy.word(), "lines": made.lines, "replacements": made.places });
    match &made[..] {
        [one] => add(&mut result, told(one)),
        several => result["edits"] = several.iter().map(told).collect(),
    }
    let resolved = path.display().to_string();
    add(&mut result, json!({ "diff": diff, "files_modified": [resolved], "resolved_path": resolved, "lint": lint.told() }));
    let places: usize = made.iter().map(|made| made.places).sum();
    let summary = match (places, made.first().and_then(|made| made.lines.first())) {
        (1, Some(line)) => format!("line {line}"),
        _ => plural(places, "place"),
    };
    let detail = diff::for_eyes(result["diff"].as_str().unwrap_or_default());
    Ok(ToolOutput::json(result).with_summary(lint.beside(&summary)).with_diff(detail))
}

async fn apply(cx: &ToolCx, plan: Plan) -> ToolResult {
    let Plan { steps, outcomes } = plan;
    let made = v4a::apply(Arc::clone(&cx.environment), cx.cancel.clone(), steps.clone()).await;
    let aside = made.map_err(|Failure { why, left }| {
        if left.is_empty() {
            return unchanged(&format!("{why}; what had been done was taken back"));
        }
        let said = format!("patch: {why}; taking back what had been done failed: {}", left.join("; "));
        ToolError::tell(said).with("success", false)
    })?;
    remember(cx, &steps);
    let mut result = told(&outcomes);
    if !aside.is_empty() {
        let aside: Vec<String> = aside.iter().map(|path| path.display().to_string()).collect();
        result["_warning"] = format!("deleted, but still there under another name: {}", aside.join(", ")).into();
    }
    let (lint, broken) = checked(&outcomes).await;
    if !lint.is_empty() {
        result["lint"] = lint.into();
    }
    let mut summary = plural(outcomes.len(), "file");
    if let [(path, first), rest @ ..] = &broken[..] {
        summary = match &outcomes[..] {
            [_] => first.beside(&summary),
            _ => first.beside(&format!("{summary} · {path}")),
        };
        if !rest.is_empty() {
            summary.push_str(&format!(" · and in {} more", plural(rest.len(), "file")));
        }
    }
    let detail = diff::for_eyes(result["diff"].as_str().unwrap_or_default());
    Ok(ToolOutput::json(result).with_summary(summary).with_diff(detail))
}

/// What a syntax check says of each file that has another content now, by its path, and those in which something broke.
async fn checked(outcomes: &[Outcome]) -> (JsonMap, Vec<(String, syntax::Report)>) {
    let (mut told, mut broken) = (JsonMap::new(), Vec::new());
    for (index, outcome) in outcomes.iter().enumerate() {
        let Content::Bytes(after) = &outcome.after else { continue };
        if outcome.before == outcome.after || outcomes[index + 1..].iter().any(|later| later.touches(&outcome.path)) {
            continue;
        }
        let first = outcomes.iter().find(|one| one.path == outcome.path).unwrap_or(outcome);
        let before = match &first.before {
            Content::Bytes(before) => Some(Arc::clone(before)),
            Content::Nothing | Content::Unread => None,
        };
        let report = syntax::check(&outcome.path, before, Arc::clone(after), outcome.quiet).await;
        let path = outcome.path.display().to_string();
        told.insert(path.clone(), report.told());
        if report.is_news() {
            broken.push((path, report));
        }
    }
    (told, broken)
}

/// What the task knows of the files, after every step was made.
fn remember(cx: &ToolCx, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Write { path, after: bytes, .. } | Step::Create { path, bytes } => known::learn(cx, path, Fingerprint::of(bytes)),
            Step::Remove { path } => known::forget(cx, path),
            Step::Rename { from, to } => known::moved(cx, from, to),
        }
    }
}

/// The answer to a patch.
fn told(outcomes: &[Outcome]) -> Value {
    let (mut modified, mut created, mut deleted, mut moved) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut hunks = Vec::new();
    let said = |path: &Path| path.display().to_string();
    for outcome in outcomes {
        let path = said(&outcome.path);
        match (&outcome.from, &outcome.before, &outcome.after) {
            (Some(from), _, _) => {
                deleted.push(said(from));
                created.push(path.clone());
                moved.push(json!({ "from": said(from), "to": path }));
            }
            (None, Content::Nothing, _) => created.push(path.clone()),
            (None, _, Content::Nothing) => deleted.push(path.clone()),
            (None, _, _) if modified.contains(&path) => {}
            _ => modified.push(path.clone()),
        }
        let told = outcome.hunks.iter().map(|(strategy, line)| json!({ "path": path, "strategy": strategy.word(), "line": line }));
        hunks.extend(told);
    }
    let diff: String = outcomes.iter().map(|outcome| outcome.diff.as_str()).collect();
    let mut result = json!({ "success": true, "diff": diff });
    let lists = [("files_modified", json!(modified)), ("files_created", json!(created)), ("files_deleted", json!(deleted)), ("files_moved", json!(moved)), ("hunks", json!(hunks))];
    for (name, list) in lists {
        if list.as_array().is_some_and(|list| !list.is_empty()) {
            result[name] = list;
        }
    }
    if let [only] = outcomes {
        result["resolved_path"] = said(&only.path).into();
    }
    result
}

fn add(result: &mut Value, more: Value) {
    if let (Value::Object(result), Value::Object(more)) = (result, more) {
        result.extend(more);
    }
}
