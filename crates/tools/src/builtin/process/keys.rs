//! Keys by their names, as the bytes that a terminal sends for them.

/// The bytes for `keys`: names separated by spaces, for example `Down Down Enter`, `Ctrl-C`, `Escape : q ! Enter`. A single
/// character is itself. `application` says that the cursor keys send the codes of an application (DECCKM).
pub(super) fn bytes(keys: &str, application: bool) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for name in keys.split_whitespace() {
        bytes.extend(one(name, application).ok_or_else(|| {
            format!(
                "there is no key {name:?}; there are Enter, Tab, Escape, Backspace, Delete, Insert, Space, Up, Down, Left, \
                 Right, Home, End, PageUp, PageDown, F1 to F12, Ctrl-X, Alt-X, and single characters"
            )
        })?);
    }
    Ok(bytes)
}

fn one(name: &str, application: bool) -> Option<Vec<u8>> {
    let mut characters = name.chars();
    if let (Some(only), None) = (characters.next(), characters.next()) {
        return Some(only.to_string().into_bytes());
    }
    let lower = name.to_ascii_lowercase();
    if let Some(key) = ["ctrl-", "ctrl+", "c-", "^"].into_iter().find_map(|prefix| lower.strip_prefix(prefix)) {
        return control(key);
    }
    if let Some(at) = ["alt-", "alt+", "meta-", "m-"].into_iter().find_map(|prefix| lower.starts_with(prefix).then_some(prefix.len())) {
        return Some([b"\x1b".to_vec(), one(&name[at..], application)?].concat());
    }
    let cursor = |letter: char| format!("\x1b{}{letter}", if application { 'O' } else { '[' });
    let sequence = match lower.as_str() {
        "enter" | "return" => "\r".into(),
        "tab" => "\t".into(),
        "shift-tab" | "backtab" => "\x1b[Z".into(),
        "escape" | "esc" => "\x1b".into(),
        "space" => " ".into(),
        "backspace" => "\x7f".into(),
        "delete" | "del" => "\x1b[3~".into(),
        "insert" => "\x1b[2~".into(),
        "up" => cursor('A'),
        "down" => cursor('B'),
        "right" => cursor('C'),
        "left" => cursor('D'),
        "home" => cursor('H'),
        "end" => cursor('F'),
        "pageup" | "page-up" | "pgup" => "\x1b[5~".into(),
        "pagedown" | "page-down" | "pgdn" => "\x1b[6~".into(),
        _ => function_key(&lower)?.into(),
    };
    Some(sequence.into_bytes())
}

fn control(key: &str) -> Option<Vec<u8>> {
    if key == "space" {
        return Some(vec![0]);
    }
    let mut bytes = key.bytes();
    match (bytes.next()?, bytes.next()) {
        (b'?', None) => Some(vec![0x7f]),
        (byte @ (b'a'..=b'z' | b'@' | b'['..=b'_'), None) => Some(vec![byte.to_ascii_uppercase() & 0x1f]),
        _ => None,
    }
}

/// As xterm sends them.
fn function_key(name: &str) -> Option<&'static str> {
    let codes = [
        "\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[15~", "\x1b[17~", "\x1b[18~", "\x1b[19~", "\x1b[20~", "\x1b[21~",
        "\x1b[23~", "\x1b[24~",
    ];
    let number: usize = name.strip_prefix('f')?.parse().ok()?;
    codes.get(number.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_what_a_terminal_sends() {
        let cases = [
            ("Escape : q ! Enter", "\x1b:q!\r"),
            ("Ctrl-C ctrl+d C-[ ^Z", "\x03\x04\x1b\x1a"),
            ("Down Up", "\x1b[B\x1b[A"),
            ("F1 F12 PageDown", "\x1bOP\x1b[24~\x1b[6~"),
            ("Alt-x Alt-Enter", "\x1bx\x1b\r"),
            ("y é Space", "yé "),
        ];
        for (keys, expected) in cases {
            assert_eq!(bytes(keys, false).unwrap(), expected.as_bytes(), "{keys}");
        }
        assert_eq!(bytes("Down", true).unwrap(), b"\x1bOB");
        for wrong in ["Foo", "F13", "F0", "Ctrl-Foo", "Ctrl-"] {
            assert!(bytes(wrong, false).unwrap_err().contains("there is no key"), "{wrong}");
        }
    }
}
