//! Documents that `read_file` reads, through real dispatch: each family as its usual programs write it, and what hostile,
//! damaged and mistaken files are answered. How the files were made is in `documents/README.md`; the hostile ones are made
//! here.
#![allow(clippy::unwrap_used)]

#[path = "search/session.rs"]
mod session;

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use session::{Place, Session};

impl Session {
    /// A conversation with one of the documents that are kept beside this test.
    fn with(name: &str) -> Self {
        let session = Self::new(Place::Here);
        session.home.write(name, fs::read(made(name)).unwrap());
        session
    }

    async fn read(&self, name: &str) -> Value {
        self.call("read_file", json!({ "path": name })).await
    }

    /// The error that reading a file with these bytes gives.
    async fn refusal(name: &str, bytes: impl AsRef<[u8]>) -> String {
        let session = Self::new(Place::Here);
        session.home.write(name, bytes);
        let answer = session.read(name).await;
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("no error: {answer}")).to_owned();
        assert!(!error.contains('\n') && error.len() < 600, "one line: {error}");
        error
    }
}

fn made(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents").join(name)
}

/// The text of an answer, without the numbers of its lines.
fn text(answer: &Value) -> String {
    let content = answer["content"].as_str().unwrap_or_else(|| panic!("no content: {answer}"));
    content.lines().map(|line| line.split_once('|').unwrap().1).collect::<Vec<_>>().join("\n")
}

/// A ZIP archive of these parts.
fn zipped(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in parts {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(CompressionMethod::Deflated)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A Word document with this body.
fn docx(body: &str) -> Vec<u8> {
    let xml = format!(r#"<?xml version="1.0"?><w:document xmlns:w="w"><w:body>{body}</w:body></w:document>"#);
    zipped(&[("word/document.xml", xml.as_bytes())])
}

// ------------------------------------------------------------------------------------------------- what is read

#[tokio::test]
async fn a_word_document_is_its_paragraphs_tables_and_comments() {
    let answer = Session::with("report.docx").read("report.docx").await;
    assert_eq!(
        text(&answer),
        "Report[^c0]\n工具可以读取文件。\nA line\nand another\tafter a tab\n名称\tPrice\n苹果 & pear\t1.20\nThe end\n\
         # ── Comments ──\n[^c0] Anna: Is it?"
    );
    assert_eq!(answer["extracted_document"], true);
    assert_eq!(answer["document"], json!({ "kind": "Word document" }));
    assert_eq!(answer["total_lines"], 9);
    assert_eq!(answer["file_size"], fs::metadata(made("report.docx")).unwrap().len());
}

#[tokio::test]
async fn a_spreadsheet_is_its_visible_sheets() {
    let answer = Session::with("sales.xlsx").read("sales.xlsx").await;
    assert_eq!(
        text(&answer),
        "# ── Sheet: Sales ──\nName\tQty\tDay\tSold\n苹果\t3\t2026-11-30\tTRUE\n\
         two\\nlines\t1.5\t2026-01-02 03:04:05\tFALSE\n\n\t\t=SUM(B2:B3)\n(34 empty rows)\nfar\n# ── Sheet: Empty ──\n(empty)"
    );
    assert_eq!(answer["document"], json!({ "kind": "spreadsheet", "sheets": 2 }));
    assert!(answer["note"].as_str().unwrap().contains("hidden and not shown: Secret"), "{answer}");
    let old = Session::with("sales.xls").read("sales.xls").await;
    assert_eq!(text(&old), "# ── Sheet: Sales ──\n苹果\t3\tTRUE\n\n\t2026-11-30");
    let open = Session::with("sales.ods").read("sales.ods").await;
    assert_eq!(text(&open), "# ── Sheet: Sales ──\n苹果\t3\npear\t4");
}

#[tokio::test]
async fn a_presentation_is_its_slides_with_their_notes() {
    let answer = Session::with("talk.pptx").read("talk.pptx").await;
    assert_eq!(
        text(&answer),
        "# ── Slide 1 ──\nWelcome\n工具可以读取文件。\nNotes:\nsay hello\n# ── Slide 2 ──\nNumbers\na\tb"
    );
    assert_eq!(answer["document"], json!({ "kind": "presentation", "slides": 2 }));
    let open = Session::with("talk.odp").read("talk.odp").await;
    assert_eq!(text(&open), "# ── Slide 1 ──\nFirst\n# ── Slide 2 ──\n第二");
}

#[tokio::test]
async fn an_open_document_is_its_paragraphs_and_tables() {
    let answer = Session::with("report.odt").read("report.odt").await;
    assert_eq!(text(&answer), "Report\n工具可以读取文件。\tafter a tab &  blanks\n名称\tPrice");
}

#[tokio::test]
async fn a_book_is_its_chapters() {
    let answer = Session::with("book.epub").read("book.epub").await;
    let text = text(&answer);
    assert!(text.starts_with("# ── Chapter 1: EPUB/one.xhtml ──\n"), "{text}");
    for part in ["# One", "工具可以读取文件。", "- item", "# ── Chapter 2: EPUB/two.xhtml ──", "It & they **ended**."]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(answer["document"]["chapters"], 2);
}

#[tokio::test]
async fn a_notebook_is_its_cells_and_its_source_is_there_to_be_patched() {
    let session = Session::with("work.ipynb");
    let answer = session.read("work.ipynb").await;
    assert_eq!(
        text(&answer),
        "# ── Markdown cell 1 ──\n# 工具可以读取文件。\n\n# ── Code cell 2 ──\nx = 1\nprint(x)\n\
         # ── Output of code cell 2 ──\n1\n<Figure>\n[image/png]\nValueError: no\n\n# ── Raw cell 3 ──\nraw\n"
    );
    let source = session.call("read_file", json!({ "path": "work.ipynb", "view": "source" })).await;
    assert!(text(&source).contains(r#""cell_type": "markdown""#), "{source}");
    let patched =
        session.call("patch", json!({ "path": "work.ipynb", "old_string": "x = 1", "new_string": "x = 2" })).await;
    assert_eq!(patched["success"], true, "{patched}");
    assert!(text(&session.read("work.ipynb").await).contains("x = 2\n"));
}

#[tokio::test]
async fn what_is_no_notebook_is_shown_as_it_is() {
    for broken in ["{not json", r#"{"cells": 7}"#, "[]"] {
        let session = Session::new(Place::Here);
        session.home.write("n.ipynb", broken);
        let answer = session.read("n.ipynb").await;
        assert_eq!(answer["content"], format!("1|{broken}"));
        assert!(answer["note"].as_str().unwrap().contains("no valid notebook"), "{answer}");
    }
}

#[tokio::test]
async fn a_pdf_is_its_pages_also_in_chinese() {
    for name in ["report.pdf", "streams.pdf"] {
        let answer = Session::with(name).read(name).await;
        let expected = "# ── Page 1 ──\nReport 11/30/26: 1,234.56\n工具可以读取文件。\n\
                        # ── Page 2 ──\n第二页：工具可以读取文件。\n\nCafé";
        assert_eq!(text(&answer), expected, "{name}");
        assert_eq!(answer["document"], json!({ "kind": "PDF", "pages": 2 }));
    }
}

#[tokio::test]
async fn a_page_that_is_a_picture_is_told() {
    let answer = Session::with("picture.pdf").read("picture.pdf").await;
    assert!(answer["note"].as_str().unwrap().contains("may be pictures"), "{answer}");
}

#[tokio::test]
async fn html_is_its_source_and_markdown_on_demand() {
    let session = Session::new(Place::Here);
    session.home.write("page.html", "<html><script>run()</script><h1>标题</h1><p>one <b>two</b></p></html>\n");
    let source = session.read("page.html").await;
    assert!(text(&source).starts_with("<html><script>") && source["document"].is_null(), "{source}");
    let read = session.call("read_file", json!({ "path": "page.html", "view": "text" })).await;
    assert_eq!(text(&read), "# 标题\n\none **two**");
    assert_eq!(read["document"], json!({ "kind": "HTML page" }));
}

#[tokio::test]
async fn a_long_document_is_read_page_by_page_without_being_extracted_again() {
    let session = Session::new(Place::Here);
    let lines: Vec<String> = (1..=3000).map(|line| format!("<w:p><w:r><w:t>line {line}</w:t></w:r></w:p>")).collect();
    let path = session.home.write("long.docx", docx(&lines.concat()));
    // What was written a moment ago could be written again at the same tick.
    fs::File::options().append(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let first = session.read("long.docx").await;
    assert_eq!(
        (&first["total_lines"], &first["next_offset"], &first["truncated"]),
        (&json!(3000), &json!(501), &json!(true))
    );
    let next = session.call("read_file", json!({ "path": "long.docx", "offset": 501, "limit": 2 })).await;
    assert_eq!(next["content"], "501|line 501\n502|line 502");
    let last = session.call("read_file", json!({ "path": "long.docx", "offset": -1 })).await;
    assert_eq!(last["content"], "3000|line 3000");
    let again = session.read("long.docx").await;
    assert_eq!(again["status"], "unchanged");
    session.home.write("long.docx", docx("<w:p><w:r><w:t>other</w:t></w:r></w:p>"));
    assert_eq!(session.read("long.docx").await["content"], "1|other");
}

// ------------------------------------------------------------------------------------------------- what it is

#[tokio::test]
async fn content_says_what_a_file_is_and_not_its_name() {
    let session = Session::new(Place::Here);
    session.home.write("notes.pdf", "only text\n");
    assert_eq!(session.read("notes.pdf").await["content"], "1|only text");
    session.home.write("a.docx", "");
    assert_eq!(session.read("a.docx").await["total_lines"], 0);
    for (name, other) in
        [("report.docx", "report.txt"), ("sales.xlsx", "sales.docx"), ("report.odt", "odt"), ("report.pdf", "x")]
    {
        session.home.write(other, fs::read(made(name)).unwrap());
        assert_eq!(session.read(other).await["extracted_document"], true, "{name} as {other}");
    }
    session.home.write("about.txt", "%PDF-1.4 is how such a file begins\n");
    assert_eq!(session.read("about.txt").await["content"], "1|%PDF-1.4 is how such a file begins");
    // An archive is an archive.
    session.home.write("a.zip", zipped(&[("word/document.xml", b"<x/>")]));
    assert_eq!(session.read("a.zip").await["is_binary"], true);
}

#[tokio::test]
async fn what_is_not_the_document_that_its_name_says_is_answered_so() {
    let error = Session::refusal("a.docx", zipped(&[("a.txt", b"a"), ("b.txt", b"b")])).await;
    assert!(error.contains("without the parts of an Office") && error.contains("a.txt, b.txt"), "{error}");
    let error = Session::refusal("a.docx", &fs::read(made("report.docx")).unwrap()[..20_000]).await;
    assert!(error.contains("damaged or cut off"), "{error}");
    let error = Session::refusal("a.pdf", &fs::read(made("report.pdf")).unwrap()[..60]).await;
    assert!(error.contains("damaged or cut off PDF"), "{error}");
    let error = Session::refusal("a.docx", docx("<w:p><w:r></w:p>")).await;
    assert!(error.contains("word/document.xml is damaged"), "{error}");
}

#[tokio::test]
async fn a_password_and_an_old_format_are_named() {
    let error = Session::refusal("locked.pdf", fs::read(made("locked.pdf")).unwrap()).await;
    assert!(error.contains("protected with a password"), "{error}");
    let compound = |stream: &str| {
        let name: Vec<u8> = stream.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        [&b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"[..], &[0; 600], &name].concat()
    };
    let error = Session::refusal("a.docx", compound("EncryptedPackage")).await;
    assert!(error.contains("protected with a password"), "{error}");
    let error = Session::refusal("a.doc", compound("WordDocument")).await;
    assert!(error.contains("before 2007") && error.contains("--convert-to docx"), "{error}");
}

// ------------------------------------------------------------------------------------------------- what is written

#[tokio::test]
async fn a_document_that_is_too_large_to_be_looked_at_is_not_destroyed_either() {
    let session = Session::new(Place::Here);
    let path = session.home.write("large.pdf", fs::read(made("report.pdf")).unwrap());
    let size = 300 << 20;
    fs::File::options().write(true).open(&path).unwrap().set_len(size).unwrap();
    let refused = session.call("write_file", json!({ "path": "large.pdf", "content": "text" })).await;
    assert!(refused["error"].as_str().unwrap().contains("is a PDF"), "{refused}");
    assert_eq!(fs::metadata(path).unwrap().len(), size);
}

#[tokio::test]
async fn a_document_is_not_destroyed_by_a_text() {
    for name in ["report.docx", "report.pdf", "sales.xls", "sales.xlsx", "book.epub"] {
        let session = Session::with(name);
        let written = session.call("write_file", json!({ "path": name, "content": "text" })).await;
        assert!(written["error"].as_str().unwrap().contains("would destroy"), "{written}");
        let patched = session.call("patch", json!({ "path": name, "old_string": "a", "new_string": "b" })).await;
        assert!(patched["error"].as_str().unwrap().contains("nothing was changed"), "{patched}");
        assert_eq!(fs::read(session.home.work().join(name)).unwrap(), fs::read(made(name)).unwrap());
    }
    let session = Session::with("work.ipynb");
    let written = session.call("write_file", json!({ "path": "work.ipynb", "content": "{}" })).await;
    assert_eq!(written["bytes_written"], 2, "{written}");
}

#[tokio::test]
async fn a_notebook_that_changed_since_its_cells_were_read_is_stale() {
    let session = Session::with("work.ipynb");
    session.read("work.ipynb").await;
    session.home.write("work.ipynb", "{}");
    let written = session.call("write_file", json!({ "path": "work.ipynb", "content": "x" })).await;
    assert!(written["error"].as_str().unwrap().contains("has changed"), "{written}");
}

// ------------------------------------------------------------------------------------------------- what is hostile

#[tokio::test]
async fn what_unpacks_without_end_is_refused() {
    let blanks = vec![b' '; 257 * 1024 * 1024];
    let error = Session::refusal("a.docx", zipped(&[("word/document.xml", &blanks)])).await;
    assert!(error.contains("unpack to more than 256 MiB"), "{error}");
}

#[tokio::test]
async fn a_text_without_end_is_cut_and_that_is_told() {
    let session = Session::new(Place::Here);
    let line = format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", "x".repeat(1024 * 1024));
    session.home.write("a.docx", docx(&line.repeat(20)));
    let answer = session.read("a.docx").await;
    assert_eq!(answer["total_lines"], 15);
    assert!(answer["note"].as_str().unwrap().contains("only the first 16 MiB"), "{}", answer["note"]);
}

#[tokio::test]
async fn depth_costs_nothing() {
    let session = Session::new(Place::Here);
    let depth = 100_000;
    let body = format!("{}<w:p><w:r><w:t>deep</w:t></w:r></w:p>{}", "<w:x>".repeat(depth), "</w:x>".repeat(depth));
    session.home.write("a.docx", docx(&body));
    assert_eq!(session.read("a.docx").await["content"], "1|deep");
    session.home.write("a.html", format!("{}deep", "<div>".repeat(depth)));
    let answer = session.call("read_file", json!({ "path": "a.html", "view": "text" })).await;
    assert!(answer["note"].as_str().unwrap().contains("nested too deeply"), "{answer}");
    session.home.write("a.ipynb", format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    assert!(session.read("a.ipynb").await["note"].as_str().unwrap().contains("no valid notebook"));
}

#[tokio::test]
async fn entities_do_not_multiply() {
    let session = Session::new(Place::Here);
    let mut bomb = String::from(r#"<!DOCTYPE x [<!ENTITY a0 "ha">"#);
    for level in 1..30 {
        bomb.push_str(&format!(r#"<!ENTITY a{level} "&a{0};&a{0};&a{0};&a{0};">"#, level - 1));
    }
    bomb.push_str("]><w:document><w:body><w:p><w:r><w:t>&a29;&#x6587;&amp;</w:t></w:r></w:p></w:body></w:document>");
    session.home.write("a.docx", zipped(&[("word/document.xml", bomb.as_bytes())]));
    assert_eq!(session.read("a.docx").await["content"], "1|&a29;文&");
}

#[tokio::test]
async fn a_cell_in_the_last_corner_costs_nothing() {
    let sheet = r#"<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
        <row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="A1048576"><v>2</v></c><c r="XFD1048576"><v>3</v></c></row>
        </sheetData></worksheet>"#;
    let book = r#"<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
        <sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>"#;
    let relations = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1"
        Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>"#;
    let root = relations.replace("worksheet\"", "officeDocument\"").replace("worksheets/sheet1", "xl/workbook");
    let session = Session::new(Place::Here);
    session.home.write(
        "a.xlsx",
        zipped(&[
            ("_rels/.rels", root.as_bytes()),
            ("xl/workbook.xml", book.as_bytes()),
            ("xl/_rels/workbook.xml.rels", relations.as_bytes()),
            ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
        ]),
    );
    let answer = session.read("a.xlsx").await;
    assert_eq!(text(&answer), "# ── Sheet: S ──\n1\n(1,048,574 empty rows)\n2");
    assert!(answer["note"].as_str().unwrap().contains("first 256 columns"), "{answer}");
}

/// A PDF of these objects, without a table of where they are.
fn pdf(objects: &[&str]) -> String {
    let numbered = objects.iter().enumerate().map(|(index, object)| format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    format!("%PDF-1.4\n{}trailer\n<< /Root 1 0 R /Size {} >>\n%%EOF\n", numbered.collect::<String>(), objects.len() + 1)
}

#[tokio::test]
async fn a_pdf_that_leads_in_circles_comes_to_an_end() {
    let circles = [
        pdf(&["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R 1 0 R] /Count 9 >>"]),
        pdf(&["<< /Type /Catalog /Pages 1 0 R >>"]),
        pdf(&[
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources 4 0 R >>",
            "[4 0 R 4 0 R]",
        ]),
        pdf(&[&"[".repeat(100_000)]),
        pdf(&["<< /Type /Catalog /Pages 2 0 R >>", &format!("{}1{}", "<< /A ".repeat(50_000), " >>".repeat(50_000))]),
    ];
    for circle in circles {
        let session = Session::new(Place::Here);
        session.home.write("a.pdf", &circle);
        let began = Instant::now();
        let answer = session.read("a.pdf").await;
        assert!(began.elapsed() < Duration::from_secs(20));
        assert!(answer["content"].is_string() || answer["error"].is_string(), "{answer}");
    }
}

#[tokio::test]
async fn a_document_that_is_too_large_is_refused_before_it_is_read() {
    let session = Session::new(Place::Here);
    let path = session.home.write("a.pdf", "%PDF-1.4\n1 0 obj\n");
    fs::File::options().write(true).open(path).unwrap().set_len(65 * 1024 * 1024).unwrap();
    let answer = session.read("a.pdf").await;
    assert!(answer["error"].as_str().unwrap().contains("more than the 67,108,864"), "{answer}");
}
