//! Documents: files that hold a text which is not their bytes. What is read of them is that text.
//!
//! The bytes may come from anybody, and parsers are led astray. So no parser runs in this process: [`extract`] has it done
//! apart, with limits ([`hermes_core::Environment::isolated`]), and whatever happens there is one sentence here.
//!
//! What a file is, is said by its content; the name decides only where the content leaves it open (JSON that is a notebook,
//! HTML). Each file of this folder is one family of formats.

mod compound;
mod epub;
mod flow;
mod lines;
mod notebook;
mod open_document;
mod package;
mod page;
mod pdf;
mod sheets;
mod slides;
mod word;
mod xml;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use hermes_core::{FileError, FileStat, FileVersion, Layout, LineFeed, ToolCx, Work, WorkLimits, grouped};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::lines::{Lines, MOST_TEXT};
use super::known::{Fingerprint, settled};
use super::text::{Looks, SNIFF_BYTES, looks};

/// A larger file is not read as a document.
pub(crate) const LARGEST: u64 = 64 * 1024 * 1024;

/// What reading a document may take. The text comes back as JSON, where a character can be six bytes.
const LIMITS: WorkLimits =
    WorkLimits { time: Duration::from_secs(30), memory: 1024 * 1024 * 1024, output: 6 * MOST_TEXT as u64 };

/// Texts that are kept for the next page of them, and how long they may be together, in bytes.
const MOST_KEPT: usize = 4;
const MOST_KEPT_BYTES: usize = 32 * 1024 * 1024;

/// Characters of a reason that are told.
const MOST_WHY: usize = 400;

/// A family of documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Pdf,
    /// A ZIP archive of parts: Office since 2007, `OpenDocument`, EPUB.
    Package,
    /// A compound file: Office before 2007, or with a password.
    Compound,
    Notebook,
    /// A web page. Its source is what people work with, so it is read as a document only on demand.
    Page,
}

/// What a file is, by its first bytes and, where they leave it open, its name. `None`: no document that is known here.
pub(crate) fn kind(path: &Path, head: &[u8]) -> Option<Kind> {
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default().to_lowercase();
    match head {
        [b'P', b'K', 3, 4, rest @ ..] => {
            // The first part of a package names it, where the producer keeps to the rule; else the name has to.
            let first = rest.get(26..).unwrap_or_default();
            let is_named = first.starts_with(b"[Content_Types].xml") || first.starts_with(b"mimetypeapplication/");
            (is_named || PACKAGES.contains(&&*suffix)).then_some(Kind::Package)
        }
        [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1, ..] => Some(Kind::Compound),
        head if head.starts_with(b"%PDF-") && (suffix == "pdf" || memmem::find(head, b" obj").is_some()) => {
            Some(Kind::Pdf)
        }
        // Some programs put a few bytes of their own before it (ISO 32000-1, annex H.3.4.1).
        head if suffix == "pdf" && memmem::find(&head[..head.len().min(1024)], b"%PDF-").is_some() => Some(Kind::Pdf),
        head if looks(&head[..head.len().min(SNIFF_BYTES)]) == Looks::Text => match &*suffix {
            "ipynb" => Some(Kind::Notebook),
            "html" | "htm" | "xhtml" => Some(Kind::Page),
            _ => None,
        },
        _ => None,
    }
}

const PACKAGES: [&str; 23] = [
    "docx", "docm", "dotx", "dotm", "xlsx", "xlsm", "xltx", "xltm", "xlsb", "pptx", "pptm", "potx", "potm", "ppsx",
    "ppsm", "odt", "ott", "odm", "ods", "ots", "odp", "otp", "epub",
];

impl Kind {
    /// Whether the text stands for the file unless its source is asked for.
    pub(crate) fn is_read_as_text(self) -> bool {
        self != Self::Page
    }

    /// Whether its bytes are a text that people edit.
    pub(crate) fn has_source(self) -> bool {
        matches!(self, Self::Notebook | Self::Page)
    }

    fn work(self) -> Work {
        match self {
            Self::Pdf => |bytes| told(&pdf::read(bytes)),
            Self::Package => |bytes| told(&package::read(bytes)),
            Self::Compound => |bytes| told(&compound::read(bytes)),
            Self::Notebook => |bytes| told(&notebook::read(bytes)),
            Self::Page => |bytes| told(&page::read(bytes)),
        }
    }
}

/// What a document says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extracted {
    /// What it is, in words.
    pub(crate) kind: String,
    /// How many pages, sheets or the like it has.
    count: Option<(String, usize)>,
    /// What else is to be known about the text.
    pub(crate) notes: Vec<String>,
    /// The text, line by line.
    pub(crate) text: String,
}

impl Extracted {
    fn new(kind: &str, lines: Lines) -> Self {
        let is_cut = lines.is_full();
        let cut = format!("only the first {} MiB of its text are there", MOST_TEXT / 1024 / 1024);
        Self {
            kind: kind.to_owned(),
            count: None,
            notes: is_cut.then_some(cut).into_iter().collect(),
            text: lines.into_text(),
        }
    }

    fn counting(mut self, what: &str, count: usize) -> Self {
        self.count = Some((what.to_owned(), count));
        self
    }

    /// What it is, for the result of a tool.
    pub(crate) fn facts(&self) -> Value {
        let mut facts = json!({ "kind": self.kind });
        if let Some((what, count)) = &self.count {
            facts[what] = json!(count);
        }
        facts
    }
}

/// What goes from the other process to us.
fn told(read: &Result<Extracted, String>) -> Vec<u8> {
    // A value of texts and numbers is always JSON.
    serde_json::to_vec(read).unwrap_or_default()
}

/// A document that was read, and the file that it was read from.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) extracted: Extracted,
    /// The lines of its text.
    pub(crate) layout: Layout,
    /// What the file was when it was read.
    pub(crate) fingerprint: Fingerprint,
}

/// The documents that a task has read last, newest first.
#[derive(Default)]
struct Kept(Mutex<VecDeque<(Source, Arc<Document>)>>);

/// What a document was read from, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    real: PathBuf,
    version: FileVersion,
    kind: Kind,
}

impl Kept {
    fn find(&self, source: &Source) -> Option<Arc<Document>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(is, _)| is == source).map(|(_, document)| Arc::clone(document))
    }

    fn keep(&self, source: Source, document: Arc<Document>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(is, _)| (&is.real, is.kind) != (&source.real, source.kind));
        kept.push_front((source, document));
        let mut bytes = 0;
        kept.retain(|(_, document)| {
            bytes += document.extracted.text.len();
            bytes <= MOST_KEPT_BYTES
        });
        kept.truncate(MOST_KEPT);
    }
}

/// Why there is no text of a document.
#[derive(Debug)]
pub(crate) enum Trouble {
    File(FileError),
    /// In words that follow the path and a colon.
    Unreadable(String),
}

/// The text of a document. One that was read before is used again while nothing about the file has changed.
pub(crate) async fn extract(cx: &ToolCx, path: &Path, stat: &FileStat, kind: Kind) -> Result<Arc<Document>, Trouble> {
    if stat.len > LARGEST {
        let (size, most) = (grouped(stat.len), grouped(LARGEST));
        return Err(Trouble::Unreadable(format!(
            "it has {size} bytes, more than the {most} that are read of a document"
        )));
    }
    let real = cx.environment.real_path(path).await.map_err(Trouble::File)?;
    let kept = cx.scratch.get::<Kept>();
    let source = |version| Source { real: real.clone(), version, kind };
    if let Some(document) = stat.version.and_then(|version| kept.find(&source(version))) {
        return Ok(document);
    }
    let looked_at = SystemTime::now();
    let bytes = cx.environment.read(path, 0..LARGEST).await.map_err(Trouble::File)?;
    let done = cx.environment.isolated(kind.work(), &bytes, LIMITS).await;
    let told = done.map_err(|error| Trouble::Unreadable(one_line(&error.to_string())))?;
    let read: Result<Extracted, String> =
        serde_json::from_slice(&told).map_err(|error| Trouble::Unreadable(format!("it was read in vain ({error})")))?;
    let extracted = read.map_err(|why| Trouble::Unreadable(one_line(&why)))?;
    let layout = Layout::of(extracted.text.as_bytes(), LineFeed::Byte);
    let document = Arc::new(Document { extracted, layout, fingerprint: Fingerprint::of(&bytes) });
    if let Some(version) = settled(stat, looked_at) {
        kept.keep(source(version), Arc::clone(&document));
    }
    Ok(document)
}

/// What a parser says may quote the document.
fn one_line(why: &str) -> String {
    let line = why.split(char::is_whitespace).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let end = line.char_indices().nth(MOST_WHY).map_or(line.len(), |(at, _)| at);
    line[..end].to_owned()
}

/// What it is that a text in the place of these bytes would destroy, in words; `None` where nothing would be lost but a text.
pub(crate) fn lost_to_text(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    let kind = kind(path, bytes)?;
    if kind.has_source() || std::str::from_utf8(bytes).is_ok() {
        return None;
    }
    Some(match kind {
        Kind::Pdf => "a PDF",
        Kind::Compound => "a file of an office program",
        _ => "an office document or a book",
    })
}
