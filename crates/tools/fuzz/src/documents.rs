//! Documents that were changed at random: the bytes of a file, or the bytes of one of its parts in an archive that is whole.
//!
//! They are read as the product reads them, in a process that has limits: what is looked at is that each is answered, in one
//! line and in time. How the reading ended is counted, and of panics their words.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_exec::LocalEnvironment;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::{Bench, Random};

const PIECES: &[&str] = &[
    "<",
    ">",
    "/>",
    "</",
    "\"",
    "&",
    "&amp;",
    "&#x0;",
    "&#99999999;",
    "&x;",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "<?xml?>",
    "<!DOCTYPE x [<!ENTITY x \"y\">]>",
    "<w:p>",
    "</w:p>",
    "<w:tbl>",
    "<w:tr>",
    "<w:tc>",
    "</w:tc>",
    "</w:tr>",
    "</w:tbl>",
    "<w:t>",
    "</w:t>",
    "<w:pPr>",
    "<mc:Fallback>",
    "<table:table>",
    "<text:p>",
    "<text:s text:c=\"99999999999\"/>",
    "number-columns-repeated=\"99999999999\"",
    "r=\"XFD1048576\"",
    "r=\"A0\"",
    "t=\"s\"",
    "<v>99999999999</v>",
    "s=\"9999\"",
    "../",
    "\u{feff}",
    "\u{0}",
    "工",
    "0",
    "-1",
    "999999999999999999999",
    "null",
    "{}",
    "[",
    "]",
    "1 0 R",
    "2 0 R",
    "<<",
    ">>",
    "stream\n",
    "\nendstream",
    "endobj",
    "/Length 99999999",
    "/Kids [1 0 R]",
    "/Filter /FlateDecode",
    "(",
    ")",
    "BT",
    "ET",
    "Tj",
    "<div>",
    "<table><tr><td>",
    "<pre>",
    "<li>",
];

pub(crate) struct Made {
    files: Vec<(String, Vec<u8>)>,
    folder: tempfile::TempDir,
    environment: Arc<LocalEnvironment>,
    ends: BTreeMap<String, u64>,
}

impl Made {
    pub(crate) fn new() -> Self {
        let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/documents");
        let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(documents)
            .expect("the folder of documents")
            .flatten()
            .map(|entry| {
                (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("a file"))
            })
            .filter(|(name, _)| !name.ends_with(".py") && !name.ends_with(".md"))
            .collect();
        files.push((
            "page.html".into(),
            b"<html><h1>One</h1><table><tr><td>a<td>b</table><ul><li>x</ul><pre>y</pre>".to_vec(),
        ));
        files.sort();
        let folder = tempfile::tempdir().expect("a folder");
        let environment =
            LocalEnvironment::new(folder.path(), folder.path(), std::env::vars_os(), &[]).expect("a machine");
        Self { files, folder, environment: Arc::new(environment), ends: BTreeMap::new() }
    }

    pub(crate) fn call(&mut self, random: &mut Random, bench: &Bench) -> (Value, Duration) {
        let (name, bytes) = &self.files[random.below(self.files.len())];
        let bytes = match random.below(4) {
            0 => None,
            _ => with_changed_part(bytes, random),
        }
        .unwrap_or_else(|| changed(bytes.clone(), random));
        std::fs::write(self.folder.path().join(name), bytes).expect("room");
        let view = if name.ends_with("html") { "text" } else { ["text", "source"][usize::from(random.below(20) == 0)] };
        let arguments = json!({ "path": name, "view": view });
        let (answer, took) = bench.call("read_file", &arguments, Arc::clone(&self.environment) as _);
        let end = match answer {
            Ok(_) => "read".to_owned(),
            Err(error) => {
                let said = Value::from(error)["error"].as_str().expect("words").to_owned();
                assert!(!said.contains('\n') && said.len() < 2_000, "{name}: {said}");
                let is_of_limits = ["gave up", "longer than", "memory", "deeply", "makes more", "apart", "signal"];
                if is_of_limits.iter().any(|word| said.contains(word)) {
                    said.split_once(": ")
                        .and_then(|(_, rest)| rest.split_once(": "))
                        .map_or(said.clone(), |(_, why)| why.into())
                } else {
                    "refused".into()
                }
            }
        };
        *self.ends.entry(end).or_default() += 1;
        assert!(took < Duration::from_secs(40), "{name} took {took:?}");
        (arguments, took)
    }

    pub(crate) fn report(&self) {
        for (end, count) in &self.ends {
            println!("{count}: {end}");
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
