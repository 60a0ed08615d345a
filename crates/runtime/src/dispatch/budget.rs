//! Step: a result that would fill the model's window is stored, and the model gets its beginning, its end and the place.
//!
//! There are two limits: one for a result, one for all results of a turn together. Both follow the model's window. What
//! is stored is made for `read_file`: the long text itself rather than JSON around it, and no line longer than that tool
//! shows, so that offset and limit reach every character. Pictures are no text and are never counted.

use async_trait::async_trait;
use hermes_core::{Content, ToolSpec};
use serde_json::Value;

use super::{Call, CallReport, Phase, Step, fence};
use crate::task::Task;

/// How much of a stored result the model sees at once, in characters: from its beginning and from its end.
const HEAD_CHARS: usize = 1_000;
const TAIL_CHARS: usize = 500;
/// Longer lines are broken in the stored text; `read_file` shows at most 2,000 characters of a line.
const LONGEST_LINE: usize = 1_900;

/// How long results may be that a model reads, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// One result.
    pub per_result: usize,
    /// All results of one turn.
    pub per_turn: usize,
}

impl Default for Budget {
    /// For a model whose window is not known (spec core §16.1).
    fn default() -> Self {
        Self { per_result: ToolSpec::DEFAULT_MAX_RESULT_CHARS, per_turn: 2 * ToolSpec::DEFAULT_MAX_RESULT_CHARS }
    }
}

impl Budget {
    /// For a model with a window of `tokens`, at 4 characters a token: one result may take 15 % of it, a turn 30 %, within
    /// 8,000 to 100,000 and 16,000 to 200,000 characters (spec core §16.1).
    pub fn for_context(tokens: Option<u64>) -> Self {
        let most = Self::default();
        let Some(tokens) = tokens else { return most };
        let chars = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(4);
        Self {
            per_result: (chars / 100 * 15).clamp(8_000, most.per_result),
            per_turn: (chars / 100 * 30).clamp(16_000, most.per_turn),
        }
    }
}

#[derive(Debug)]
pub(super) struct Cap;

#[async_trait]
impl Step for Cap {
    fn phase(&self) -> Phase {
        Phase::After
    }

    async fn apply(&self, call: &mut Call<'_>) {
        let task = call.scope.task;
        let own = match call.spec() {
            Some(spec) => spec.max_result_chars,
            None => Some(ToolSpec::DEFAULT_MAX_RESULT_CHARS),
        };
        let (Some(own), Some(outcome)) = (own, &call.outcome) else { return };
        let cap = own.min(task.budget.per_result);
        // A character has at least one byte, so most results need no counting.
        if call.text.len() <= cap {
            return;
        }
        let chars = call.text.chars().count();
        if chars <= cap {
            return;
        }
        let from_outside = fence::origin(call).is_some();
        let readable = readable(&outcome.output.content);
        let why = format!("This result has {chars} characters, more than the {cap} that fit.");
        call.text = stored(readable, &why, &call.request.id, from_outside, task).await;
        call.body.is_stored = true;
    }
}

/// Stores the longest results until all of them together fit.
pub(super) async fn fit_turn(reports: &mut [CallReport], task: &Task) {
    let most = task.budget.per_turn;
    let mut lengths: Vec<usize> = reports.iter().map(|report| report.text.chars().count()).collect();
    let mut total: usize = lengths.iter().sum();
    while total > most {
        let candidates =
            (0..reports.len()).filter(|i| !reports[*i].body.is_stored && lengths[*i] > 2 * (HEAD_CHARS + TAIL_CHARS));
        // The longest first, and of two as long the earlier one, so that the outcome does not depend on chance.
        let Some(longest) = candidates.max_by_key(|i| (lengths[*i], std::cmp::Reverse(*i))) else { return };
        let report = &mut reports[longest];
        let body = report.body.unfenced.take().unwrap_or_else(|| std::mem::take(&mut report.text));
        let why = format!("The results of this turn have {total} characters, more than the {most} that fit.");
        let content = serde_json::from_str(&body).map_or(Content::Text(body), Content::Json);
        let preview = stored(readable(&content), &why, &report.id, report.body.origin.is_some(), task).await;
        report.text = fence::finished(preview, report.body.origin.as_deref(), report.body.hint.as_deref());
        report.body.is_stored = true;
        let now = report.text.chars().count();
        total = total - lengths[longest] + now;
        lengths[longest] = now;
    }
}

/// Puts a long result into a file of the session and answers what the model reads instead.
async fn stored(readable: Readable, why: &str, call_id: &str, from_outside: bool, task: &Task) -> String {
    let Readable { text, what, beside } = readable;
    let (text, broken) = with_short_lines(&text);
    let results = task.environment.scratch().join("results");
    let folder = if from_outside { fence::folder(task) } else { results };
    let path = folder.join(task.result_name(call_id));
    let place = match task.environment.write(&path, text.as_bytes()).await {
        Ok(_) => format!(
            "{what} stored in {} ({} lines{}). Read it with read_file, offset and limit.",
            path.display(),
            text.lines().count(),
            if broken { format!("; lines over {LONGEST_LINE} characters are broken") } else { String::new() }
        ),
        Err(error) => format!("The rest is lost: it could not be stored ({error}). Ask for less at a time."),
    };
    let (head, tail) = preview(&text);
    let (first, last) = (head.chars().count(), tail.chars().count());
    let end = if tail.is_empty() { String::new() } else { format!("\n…\nThe last {last} characters:\n{tail}") };
    format!(
        "<persisted-output>\n{why} {place}\n{beside}The first {first} characters:\n{head}{end}\n</persisted-output>"
    )
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
    if others.chars().count() > TAIL_CHARS {
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

/// The beginning and the end of `text`, each cut at the end of a line if one lies in its second half, and never the
/// same characters twice.
fn preview(text: &str) -> (&str, &str) {
    let end = text.char_indices().nth(HEAD_CHARS).map_or(text.len(), |(at, _)| at);
    let head = &text[..end];
    let head = match head.rfind('\n') {
        Some(at) if at >= end / 2 && end < text.len() => &head[..at],
        _ => head,
    };
    let rest = &text[head.len()..];
    let begin = rest.char_indices().rev().nth(TAIL_CHARS - 1).map_or(0, |(at, _)| at);
    let tail = &rest[begin..];
    let tail = match tail.find('\n') {
        Some(at) if begin > 0 && at < tail.len() / 2 => &tail[at + 1..],
        _ => tail,
    };
    (head, tail)
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
        assert_eq!(preview("short"), ("short", ""));
        let text = format!("{}\n{}\n{}", "a".repeat(900), "b".repeat(1_000), "c".repeat(400));
        assert_eq!(preview(&text), (&*"a".repeat(900), &*"c".repeat(400)));
        let long = "d".repeat(5_000);
        let (head, tail) = preview(&long);
        assert_eq!((head.len(), tail.len()), (HEAD_CHARS, TAIL_CHARS));
        let nearly = "e".repeat(HEAD_CHARS + 10);
        let (head, tail) = preview(&nearly);
        assert_eq!(head.len() + tail.len(), nearly.len());
    }

    #[test]
    fn the_budget_follows_the_window_within_limits() {
        for (tokens, per_result, per_turn) in [
            (None, 100_000, 200_000),
            (Some(4_000), 8_000, 16_000),
            (Some(32_000), 19_200, 38_400),
            (Some(1_000_000), 100_000, 200_000),
            (Some(u64::MAX), 100_000, 200_000),
        ] {
            assert_eq!(Budget::for_context(tokens), Budget { per_result, per_turn }, "{tokens:?}");
        }
    }
}
