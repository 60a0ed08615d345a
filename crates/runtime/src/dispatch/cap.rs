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
        let (text, what) = readable(&outcome.output.content);
        let (text, broken) = with_short_lines(&text);
        let environment = &call.scope.task.environment;
        let name: String = call
            .request
            .id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .take(80)
            .collect();
        let path = environment.scratch().join("results").join(format!("{name}.txt"));
        let place = match environment.write(&path, text.as_bytes()).await {
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
             The first {shown} characters:\n{preview}\n</persisted-output>"
        );
    }
}

/// The long text in `content`, and what to call it.
fn readable(content: &Content) -> (String, String) {
    let value = match content {
        Content::Text(text) => return (text.clone(), "It is".into()),
        Content::Json(value) => value,
    };
    let longest = value
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| value.as_str().map(|text| (key, text)))
        .max_by_key(|(_, text)| text.len());
    match longest {
        Some((key, text)) if json_len(text) * 10 > value.to_string().len() * 9 => {
            (text.to_owned(), format!("The text of its field `{key}` is"))
        }
        _ => (pretty(value), "It is".into()),
    }
}

/// How long `text` is inside JSON, where a line end takes two characters.
fn json_len(text: &str) -> usize {
    serde_json::to_string(text).map_or(text.len(), |quoted| quoted.len())
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
        let (text, what) = readable(&Content::Json(json!({"output": "x\n".repeat(9_000), "exit_code": 0})));
        assert_eq!((text.lines().count(), what.as_str()), (9_000, "The text of its field `output` is"));
        let (text, _) = readable(&Content::Json(json!({"matches": vec!["a"; 500]})));
        assert!(text.lines().count() > 500);
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
