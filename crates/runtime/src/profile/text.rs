//! Descriptions: what no longer fits into a schema is said in words, and words have a limit too.

use serde_json::Value;

/// The longest description of one parameter in characters. No provider names a limit (`OpenAI`'s 1,024 is for tools, see
/// [`super::rules`]); this keeps a server's essay out of every request.
pub(super) const PARAMETER_DESCRIPTION_CHARS: usize = 4_096;

/// How many values a description lists at most.
const LISTED: usize = 12;

/// The most characters of one listed value.
const LISTED_CHARS: usize = 60;

/// `text` if it has at most `chars` characters, else its beginning and an ellipsis, `chars` characters together.
pub(super) fn cut(text: &str, chars: usize) -> String {
    // Bytes are never fewer than characters, and cheaper to count.
    if text.len() <= chars || text.chars().count() <= chars {
        return text.to_owned();
    }
    let mut short = text.chars().take(chars.saturating_sub(1)).collect::<String>();
    short.push('…');
    short
}

/// `description` with `note` behind it. Where both do not fit, the note stays whole: it is the part that is nowhere else.
pub(super) fn noted(description: &str, note: &str) -> String {
    let note = cut(note, PARAMETER_DESCRIPTION_CHARS / 2);
    let description = description.trim_end();
    if description.is_empty() {
        return note;
    }
    let room = PARAMETER_DESCRIPTION_CHARS - note.chars().count() - 1;
    format!("{} {note}", cut(description, room))
}

/// The first of `values` as JSON, and how many there are if not all are listed.
pub(super) fn listed(values: &[Value]) -> String {
    let mut words = Vec::new();
    for value in values.iter().take(LISTED) {
        match value {
            Value::String(text) => words.push(format!("\"{}\"", cut(text, LISTED_CHARS))),
            Value::Null | Value::Bool(_) | Value::Number(_) => words.push(value.to_string()),
            // Lists and objects would need a budget of their own.
            Value::Array(_) => words.push("a list".to_owned()),
            Value::Object(_) => words.push("an object".to_owned()),
        }
    }
    let mut text = words.join(", ");
    if values.len() > LISTED {
        text.push_str(&format!(", … ({} values)", values.len()));
    }
    text
}

/// The first of `names`, in backquotes, and how many there are if not all are listed.
pub(super) fn names_listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let total = names.len();
    let mut text =
        names.take(LISTED).map(|name| format!("`{}`", cut(name, LISTED_CHARS))).collect::<Vec<_>>().join(", ");
    if total > LISTED {
        text.push_str(&format!(", … ({total} names)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_falls_between_characters_and_is_final() {
        let text = "ä".repeat(20);
        let short = cut(&text, 10);
        assert_eq!(short.chars().count(), 10);
        assert!(short.ends_with('…'));
        assert_eq!(cut(&short, 10), short);
        assert_eq!(cut(&text, 20), text);
    }

    #[test]
    fn a_note_survives_a_long_description() {
        let text = noted(&"x".repeat(10_000), "Takes text.");
        assert_eq!(text.chars().count(), PARAMETER_DESCRIPTION_CHARS);
        assert!(text.ends_with("… Takes text."));
    }
}
