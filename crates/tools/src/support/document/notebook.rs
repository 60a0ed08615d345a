//! Jupyter notebooks (`.ipynb`, nbformat 3 and 4): the cells in their order, and what running them printed.

use serde_json::Value;

use super::Extracted;
use super::lines::Lines;

/// Lines that are shown of what one cell printed.
const MOST_PRINTED: usize = 40;

pub(super) fn read(bytes: &[u8]) -> Result<Extracted, String> {
    let notebook: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is no valid notebook ({error})"))?;
    let sheets = notebook["worksheets"].as_array().map(Vec::as_slice).unwrap_or_default();
    let cells: Vec<&Value> = match &notebook["cells"] {
        Value::Array(cells) => cells.iter().collect(),
        _ if !sheets.is_empty() => sheets.iter().filter_map(|sheet| sheet["cells"].as_array()).flatten().collect(),
        _ => return Err("it is no valid notebook (it has no cells)".into()),
    };
    let mut lines = Lines::default();
    for (index, cell) in cells.iter().enumerate() {
        let number = index + 1;
        let kind = match cell["cell_type"].as_str() {
            Some("markdown") => "Markdown cell",
            Some("code") => "Code cell",
            Some("heading") => "Heading cell",
            Some("raw") => "Raw cell",
            _ => "Cell",
        };
        lines.title(&format!("{kind} {number}"));
        lines.block(&text(&cell["source"]).or_else(|| text(&cell["input"])).unwrap_or_default());
        let printed = printed(cell["outputs"].as_array().map(Vec::as_slice).unwrap_or_default());
        if !printed.is_empty() {
            lines.title(&format!("Output of code cell {number}"));
            let all: Vec<&str> = printed.lines().collect();
            lines.block(&all[..all.len().min(MOST_PRINTED)].join("\n"));
            if all.len() > MOST_PRINTED {
                lines.push(&format!("(… {} more lines)", all.len() - MOST_PRINTED));
            }
        }
        lines.push("");
        if lines.is_full() {
            break;
        }
    }
    Ok(Extracted::new("Jupyter notebook", lines).counting("cells", cells.len()))
}

/// A text, which may be cut into lines.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(lines) => Some(lines.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// What a cell printed, and what else came of it by name.
fn printed(outputs: &[Value]) -> String {
    let mut printed = String::new();
    for output in outputs {
        let shown = text(&output["text"]).or_else(|| text(&output["data"]["text/plain"])).or_else(|| {
            let error = output["ename"].as_str()?;
            Some(format!("{error}: {}", output["evalue"].as_str().unwrap_or_default()))
        });
        let kinds = output["data"].as_object().into_iter().flat_map(serde_json::Map::keys);
        let pictures = kinds.filter(|kind| kind.starts_with("image/")).map(|kind| format!("[{kind}]"));
        for text in shown.into_iter().chain(pictures) {
            printed.push_str(text.trim_end_matches('\n'));
            printed.push('\n');
        }
    }
    printed
}
