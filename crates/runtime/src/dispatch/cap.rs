//! Step 8: a result that would fill the model's window is stored, and the model gets the beginning and the place.
//!
//! What is stored is made for `read_file`: the long text itself rather than JSON around it, and no line longer than
//! that tool shows, so that offset and limit reach every character.

use async_trait::async_trait;
use hermes_core::{Content, ToolSpec};
use serde_json::Value;

use super::{Call, Phase, Step};

/// How much of a stored result the model sees at once, in characters (spec core §16.2).
const PREVIEW_CHARS: usize = 1_500;
/// Longer lines are broken in the stored text; `read_file` shows at most 2,000 characters of a line.
const LONGEST_LINE: usize = 1_900;

#[derive(Debug)]
pub(super) struct Cap;

#[async_trait]
impl Step for Cap {
    fn phase(&self) -> Phase {
        Phase::After
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let cap = match &call.entry {
            Some(entry) => entry.tool.spec().max_result_chars,
            None => Some(ToolSpec::DEFAULT_MAX_RESULT_CHARS),
        };
        let chars = call.text.chars().count();
        let (Some(cap), Some(outcome)) = (cap, &call.outcome) else { return };
        if chars <= cap {
            return;
        }
        let Readable { text, what, beside } = readable(&outcome.output.content);
        let (text, broken) = with_short_lines(&text);
        let task = call.scope.task;
        let path = task.environment.scratch().join("results").join(task.result_name(&call.request.id));
        let place = match task.environment.write(&path, text.as_bytes()).await {
            Ok(_) => format!(
                "{what} stored in {} ({} lines{}). Read it with read_file, offset and limit.",
                path.display(),
                text.lines().count(),
                if broken { format!("; lines over {LONGEST_LINE} characters are broken") } else { String::new() }
            ),
            Err(error) => format!("The rest is lost: it could not be stored ({error}). Ask for less at a time."),
        };
        let preview = preview(&text);
        let shown = preview.chars().count();
        call.text = format!(
            "<persisted-output>\nThis result has {chars} characters, more than the {cap} that fit. {place}\n\
             {beside}The first {shown} characters:\n{preview}\n</persisted-output>"
        );
    }
}

/// A long result, made readable.
struct Readable {
    text: String,
    /// What to call the text.
    what: String,
    /// A line with what stands beside the text, such as an exit code; empty if there is nothing.
    beside: String,
}

fn readable(content: &Content) -> Readable {
    let whole = |text| Readable { text, what: "It is".into(), beside: String::new() };
    let fields = match content {
        Content::Text(text) => return whole(text.clone()),
        Content::Json(Value::Object(fields)) => fields,
        Content::Json(value) => return whole(pretty(value)),
    };
    let texts = fields.iter().filter_map(|(key, value)| value.as_str().map(|text| (key, text)));
    let Some((key, text)) = texts.max_by_key(|(_, text)| text.len()) else {
        return whole(pretty(&Value::Object(fields.clone())));
    };
    let mut others = fields.clone();
    others.shift_remove(key);
    let others = Value::Object(others).to_string();
    // The rest is repeated in every answer, so it must be short; else everything is stored as JSON.
    if others.chars().count() > PREVIEW_CHARS / 3 {
        return whole(pretty(&Value::Object(fields.clone())));
    }
    let beside = if fields.len() > 1 { format!("Its other fields: {others}\n") } else { String::new() };
    Readable { text: text.to_owned(), what: format!("The text of its field `{key}` is"), beside }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string())
}

fn with_short_lines(text: &str) -> (String, bool) {
    let mut out = String::with_capacity(text.len());
    let mut broken = false;
    for line in text.split_inclusive('\n') {
        for (i, c) in line.chars().enumerate() {
            if i > 0 && i % LONGEST_LINE == 0 && c != '\n' {
                out.push('\n');
                broken = true;
            }
            out.push(c);
        }
    }
    (out, broken)
}

/// The beginning of `text`, cut at the end of a line if one lies in its second half.
fn preview(text: &str) -> &str {
    let end = text.char_indices().nth(PREVIEW_CHARS).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    match head.rfind('\n') {
        Some(at) if at >= end / 2 && end < text.len() => &head[..at],
        _ => head,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_one_long_text_is_stored_without_the_json_around_it() {
        let long = readable(&Content::Json(json!({"output": "x\n".repeat(9_000), "exit_code": 3})));
        assert_eq!((long.text.lines().count(), long.what.as_str()), (9_000, "The text of its field `output` is"));
        assert_eq!(long.beside, "Its other fields: {\"exit_code\":3}\n");
        let long = readable(&Content::Json(json!({"path": "p", "matches": vec!["a"; 500]})));
        assert!(long.text.lines().count() > 500 && long.beside.is_empty());
    }

    #[test]
    fn long_lines_are_broken_and_nothing_is_lost() {
        let line = "é".repeat(5_000);
        let (text, broken) = with_short_lines(&format!("{line}\nshort\n"));
        assert!(broken && text.lines().all(|line| line.chars().count() <= LONGEST_LINE));
        assert_eq!(text.replace('\n', ""), format!("{line}short"));
        assert_eq!(with_short_lines(&"a".repeat(LONGEST_LINE)), ("a".repeat(LONGEST_LINE), false));
    }

    #[test]
    fn the_preview_ends_with_a_line_where_it_can() {
        assert_eq!(preview("short"), "short");
        let text = format!("{}\n{}", "a".repeat(1_000), "b".repeat(1_000));
        assert_eq!(preview(&text), "a".repeat(1_000));
        assert_eq!(preview(&"c".repeat(5_000)).len(), PREVIEW_CHARS);
    }
}
