//! Files in all sorts of encodings, and mixtures of them: each is read, and one word in it is changed. Nothing else may be
//! another byte afterwards.

use std::sync::Arc;
use std::time::Duration;

use hermes_testkit::FakeEnvironment;
use serde_json::{Value, json};

use crate::{Bench, Random};

const WORD: &str = "needle";
const OTHER: &str = "pin";

const PIECES: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"plain words",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xfe\xff",
    "工具可以读取文件。".as_bytes(),
    "größer".as_bytes(),
    "\u{1f600}".as_bytes(),
    // The same two words in GBK, Shift-JIS, EUC-KR and windows-1252.
    b"\xb9\xa4\xbe\xdf\xbf\xc9\xd2\xd4",
    b"\x83t\x83@\x83C\x83\x8b",
    b"\xc6\xc4\xc0\xcf",
    b"caf\xe9",
    // Halves of characters.
    b"\xe5\xb7",
    b"\xf0\x9f",
    b"\xd8",
    b"\x1b$B",
    b"\x7f",
];

pub(crate) fn call(random: &mut Random, bench: &Bench) -> (Value, Duration) {
    let mut bytes = Vec::new();
    let wide = random.below(4) == 0;
    let at = random.below(12);
    for index in 0..random.below(24).max(at + 1) {
        if index == at {
            bytes.extend_from_slice(WORD.as_bytes());
        }
        match random.below(12) {
            0 => bytes.extend((0..random.below(6)).map(|_| 1 + random.below(255) as u8)),
            1 => bytes.extend(PIECES[random.below(PIECES.len())].repeat(1 + random.below(2_000))),
            _ => bytes.extend_from_slice(PIECES[random.below(PIECES.len())]),
        }
    }
    if wide {
        let is_big = random.below(2) == 0;
        let order = |unit: u16| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        bytes = std::iter::once('\u{feff}').chain(text.chars()).flat_map(|letter| units(letter, order)).collect();
        // Half a character at the end.
        bytes.extend((random.below(4) == 0).then_some(7));
    }
    let machine = Arc::new(FakeEnvironment::new().with_file("f", bytes.clone()));
    let (answer, read) = bench.call("read_file", &json!({ "path": "f", "limit": 2000 }), Arc::clone(&machine) as _);
    let told = format!("{answer:?}");
    let arguments = json!({ "path": "f", "old_string": WORD, "new_string": OTHER });
    let (answer, patched) = bench.call("patch", &arguments, Arc::clone(&machine) as _);
    let now = machine.file("f").expect("the file");
    match answer {
        Ok(_) => {
            let is_so = [
                exchanged(&bytes, |text| text.bytes().collect()),
                exchanged(&bytes, |text| text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
                exchanged(&bytes, |text| text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            ];
            assert!(is_so.contains(&Some(now)), "more than a word has changed in {bytes:?}, read as {told}");
        }
        Err(error) => assert!(now == bytes, "{error:?} and changed {bytes:?}"),
    }
    (json!({ "bytes": bytes.len(), "told": told.chars().take(200).collect::<String>() }), read + patched)
}

fn units(letter: char, order: impl Fn(u16) -> [u8; 2]) -> Vec<u8> {
    letter.encode_utf16(&mut [0; 2]).iter().flat_map(|unit| order(*unit)).collect()
}

/// The bytes with the one word in place of the other, where that is there once in this way of writing.
fn exchanged(bytes: &[u8], written: impl Fn(&str) -> Vec<u8>) -> Option<Vec<u8>> {
    let (word, other) = (written(WORD), written(OTHER));
    let at = bytes.windows(word.len()).position(|window| window == word)?;
    Some([&bytes[..at], &other, &bytes[at + word.len()..]].concat())
}
