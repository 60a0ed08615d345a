//! Texts that were quoted once too often: `\n` for a line end, `\"` for a quote.

/// What is undone at once, from everything to little: a text with `\"` may hold a `\n` that is meant.
const TOGETHER: [&str; 3] = ["ntr\"'\\", "\"'", "ntr"];

/// Both texts with escapes undone, in each way that changes the old one. The new one is treated as the old one is.
pub(super) fn undone(old: &str, new: &str) -> Vec<(String, String)> {
    let mut ways: Vec<(String, String)> = Vec::new();
    for letters in TOGETHER {
        let plain = without(old, letters);
        if plain != old && ways.iter().all(|(known, _)| *known != plain) {
            ways.push((plain, without(new, letters)));
        }
    }
    ways
}

fn without(text: &str, letters: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match rest.clone().next() {
            Some(escaped) if letter == '\\' && letters.contains(escaped) => {
                rest.next();
                plain.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                });
            }
            _ => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_is_tried_once_and_both_texts_go_the_same_way() {
        assert_eq!(undone("plain", r"a\nb"), []);
        assert_eq!(undone(r"a\nb", r"c\nd"), [("a\nb".into(), "c\nd".into())]);
        let ways = undone(r#"say(\"a\n\")"#, r#"say(\"b\n\")"#);
        assert_eq!(ways[0].0, "say(\"a\n\")");
        assert_eq!(ways[1], (r#"say("a\n")"#.into(), r#"say("b\n")"#.into()));
        assert_eq!(without(r"\\n \d \", TOGETHER[0]), r"\n \d \");
    }
}
