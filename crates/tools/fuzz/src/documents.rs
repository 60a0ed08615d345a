//! Documents that were changed at random: the bytes of a file, or the bytes of one of its parts in an archive that is whole.
//!
//! In the product a parser that panics ends a process that is there for that. So a panic in a library is counted, by its
//! place, and no crash; one in our own code is.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_core::ToolError;
use hermes_testkit::FakeEnvironment;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::{Bench, Random};

/// Where a panic was, as `file:line`.
static PLACES: Mutex<Vec<String>> = Mutex::new(Vec::new());

const PIECES: &[&str] = &[
    "<", ">", "/>", "</", "\"", "&", "&amp;", "&#x0;", "&#99999999;", "&x;", "<![CDATA[", "]]>", "<!--", "-->", "<?xml?>",
    "<!DOCTYPE x [<!ENTITY x \"y\">]>", "<w:p>", "</w:p>", "<w:tbl>", "<w:tr>", "<w:tc>", "</w:tc>", "</w:tr>", "</w:tbl>",
    "<w:t>", "</w:t>", "<w:pPr>", "<mc:Fallback>", "<table:table>", "<text:p>", "<text:s text:c=\"99999999999\"/>",
    "number-columns-repeated=\"99999999999\"", "r=\"XFD1048576\"", "r=\"A0\"", "t=\"s\"", "<v>99999999999</v>", "s=\"9999\"",
    "../", "\u{feff}", "\u{0}", "工", "0", "-1", "999999999999999999999", "null", "{}", "[", "]", "1 0 R", "2 0 R", "<<", ">>",
    "stream\n", "\nendstream", "endobj", "/Length 99999999", "/Kids [1 0 R]", "/Filter /FlateDecode", "(", ")", "BT", "ET", "Tj",
    "<div>", "<table><tr><td>", "<pre>", "<li>",
];

pub(crate) struct Made {
    files: Vec<(String, Vec<u8>)>,
    ends: BTreeMap<String, u64>,
    panics: BTreeMap<String, u64>,
}

impl Made {
    pub(crate) fn new() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/documents");
        let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
            .expect("the folder of documents")
            .flatten()
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file")))
            .filter(|(name, _)| !name.ends_with(".py") && !name.ends_with(".md"))
            .collect();
        files.push(("page.html".into(), b"<html><h1>One</h1><table><tr><td>a<td>b</table><ul><li>x</ul><pre>y</pre>".to_vec()));
        files.sort();
        std::panic::set_hook(Box::new(|panic| {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            PLACES.lock().unwrap_or_else(PoisonError::into_inner).push(place);
        }));
        Self { files, ends: BTreeMap::new(), panics: BTreeMap::new() }
    }

    pub(crate) fn call(&mut self, random: &mut Random, bench: &Bench) -> (Value, Duration) {
        let (name, bytes) = &self.files[random.below(self.files.len())];
        let bytes = match random.below(4) {
            0 => None,
            _ => with_changed_part(bytes, random),
        }
        .unwrap_or_else(|| changed(bytes.clone(), random));
        let machine = Arc::new(FakeEnvironment::new().with_file(name, bytes));
        let view = if name.ends_with("html") { "text" } else { ["text", "source"][usize::from(random.below(20) == 0)] };
        let arguments = json!({ "path": name, "view": view });
        let (answer, took) = bench.call("read_file", &arguments, &machine);
        let end = match answer {
            Ok(_) => "read".to_owned(),
            Err(ToolError::Tell(error)) => {
                let said = Value::from(ToolError::Tell(error))["error"].as_str().unwrap_or_default().to_owned();
                assert!(!said.contains('\n'), "several lines: {said}");
                if said.contains("gave up") { "panic".into() } else { "refused".into() }
            }
            Err(error) => format!("{error:?}"),
        };
        *self.ends.entry(end).or_default() += 1;
        for place in std::mem::take(&mut *PLACES.lock().unwrap_or_else(PoisonError::into_inner)) {
            let is_ours = place.contains("crates/tools") || place.contains("src/support") || place.contains("src/builtin");
            *self.panics.entry(place.clone()).or_default() += 1;
            assert!(!is_ours, "{name}: a panic at {place}");
        }
        assert!(took < Duration::from_secs(20), "{name} took {took:?}");
        (arguments, took)
    }

    pub(crate) fn report(&self) {
        println!("ends: {:?}", self.ends);
        for (place, count) in &self.panics {
            println!("panics of libraries: {count} at {place}");
        }
    }
}

/// An archive with one part changed; `None` for what is no archive.
fn with_changed_part(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).ok()?;
    let changed_one = random.below(archive.len());
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for index in 0..archive.len() {
        let mut part = archive.by_index(index).ok()?;
        let mut content = Vec::new();
        part.read_to_end(&mut content).ok()?;
        if index == changed_one {
            content = changed(content, random);
        }
        zip.start_file(part.name().ok()?.into_owned(), options).ok()?;
        zip.write_all(&content).ok()?;
    }
    Some(zip.finish().ok()?.into_inner())
}

fn changed(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        let to = (at + random.below(60)).min(bytes.len());
        match random.below(6) {
            0 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            1 => drop(bytes.drain(at..to)),
            2 => {
                let piece = bytes[at..to].repeat(1 + random.below(50));
                bytes.splice(at..at, piece);
            }
            3 if random.below(8) == 0 => bytes.truncate(at),
            4 => {
                let from = random.below(bytes.len() + 1);
                let piece = bytes[from..(from + random.below(200)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let times = if random.below(30) == 0 { 1 + random.below(20_000) } else { 1 };
                bytes.splice(at..at, PIECES[random.below(PIECES.len())].repeat(times).into_bytes());
            }
        }
    }
    bytes
}
