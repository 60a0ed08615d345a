//! `hermes tools search`: which tools a question may mean, of this build or of a catalogue in a file.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use hermes_core::plural;
use hermes_runtime::Snapshot;
use hermes_runtime::registry::Entry;
use hermes_runtime::tool_search::{Described, Hit, Index};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::terminal::events::millis;
use crate::terminal::out;
use crate::terminal::screen::{Abilities, Stream};
use crate::terminal::text::{one_line, padded, visible, width};
use crate::words::{Exit, Failure};
use crate::world::World;

/// Where is searched, and how much is shown.
pub(super) struct Wanted {
    pub(super) catalog: Option<PathBuf>,
    pub(super) limit: usize,
    pub(super) as_json: bool,
}

/// One tool of a catalogue in a file.
#[derive(Deserialize)]
struct Line {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Value,
}

impl Line {
    fn described(&self) -> Described<'_> {
        Described {
            name: &self.name,
            description: self.description.as_deref().unwrap_or_default(),
            parameters: &self.parameters,
        }
    }
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    id: Value,
    query: String,
}

/// Answers `question`, or if there is none the lines of standard input.
pub(super) fn run(
    world: &World,
    snapshot: &Snapshot,
    question: Option<String>,
    wanted: &Wanted,
) -> Result<Exit, Failure> {
    let catalog = match &wanted.catalog {
        Some(file) => read(&world.cwd.join(file))?,
        None => of_this_build(snapshot),
    };
    let index = Index::new(catalog.iter().map(Line::described));
    let Some(question) = question else { return answer_lines(&catalog, &index, wanted.limit) };
    let hits = index.search(&question, wanted.limit);
    if wanted.as_json {
        let hit = |hit: &Hit| {
            let tool = &catalog[hit.tool];
            json!({ "name": tool.name, "description": tool.description, "score": hit.score })
        };
        out::pretty(&hits.iter().map(hit).collect::<Value>())?;
        return Ok(Exit::Done);
    }
    if hits.is_empty() {
        out::line(&format!("None of {} fits.", plural(catalog.len(), "tool")))?;
        return Ok(Exit::Done);
    }
    let columns = Abilities::of(Stream::Out, world).columns();
    let names: Vec<String> = hits.iter().map(|hit| visible(&catalog[hit.tool].name)).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or_default().min(40);
    let lines = names.iter().zip(&hits).map(|(name, hit)| {
        let line = format!(
            "{}  {}",
            padded(name, widest),
            visible(catalog[hit.tool].described().description).replace('\n', " ")
        );
        one_line(&line, columns).trim_end().to_owned()
    });
    out::line(&lines.collect::<Vec<_>>().join("\n"))?;
    Ok(Exit::Done)
}

fn of_this_build(snapshot: &Snapshot) -> Vec<Line> {
    let sees = |name: &str| snapshot.get(name).is_some();
    let line = |entry: &Arc<Entry>| Line {
        name: entry.tool.spec().name.to_string(),
        description: Some(entry.tool.describe(&sees).into_owned()),
        parameters: entry.tool.parameters(&sees).into_owned(),
    };
    snapshot.entries().map(line).collect()
}

fn read(file: &Path) -> Result<Vec<Line>, Failure> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Failure::usage(format!("cannot read {}: {error}", file.display())))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let tools = lines.map(|(at, line)| {
        serde_json::from_str(line)
            .map_err(|error| Failure::usage(format!("{}, line {}: no tool: {error}", file.display(), at + 1)))
    });
    tools.collect()
}

fn answer_lines(catalog: &[Line], index: &Index, limit: usize) -> Result<Exit, Failure> {
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| Failure::new(format!("cannot read standard input: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let asked: Asked = serde_json::from_str(&line)
            .map_err(|error| Failure::usage(format!("line {} of standard input is no question: {error}", at + 1)))?;
        let began = Instant::now();
        let hits = index.search(&asked.query, limit);
        let took = began.elapsed();
        let names: Vec<&str> = hits.iter().map(|hit| catalog[hit.tool].name.as_str()).collect();
        out::line(&json!({ "id": asked.id, "hits": names, "ms": millis(took) }).to_string())?;
    }
    Ok(Exit::Done)
}
