//! What a patch would do to the files that are there, decided before anything is done.
//!
//! The tricky idea: operations are carried out on a picture of the files in which each sees what those before it did, so
//! a file may be changed twice, or moved and then changed. What comes out is a list of single steps that each have a
//! way back.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{FileErrorKind, FileKind, ToolCx, ToolError, grouped, stated_path};

use super::hunks::placed;
use super::parse::{Hunk, Operation};
use crate::support::diff;
use crate::support::discretion::keeps_quiet;
use crate::support::echo::echo;
use crate::support::known;
use crate::support::matching::{Lines, Strategy};
use crate::support::paths::shown;
use crate::support::text::{LARGEST_EDIT, file_error, is_text, read_for_editing};
use crate::support::view::{Splice, View};

/// A larger file that goes is not shown.
const LARGEST_SHOWN: u64 = 256 * 1024;

/// Stands in a diff for a content that is not shown.
pub(crate) const NOT_SHOWN: &str = "[not shown: the file may hold secrets]";

/// One thing that is done to one file. Paths are real.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Write { path: PathBuf, before: Arc<Vec<u8>>, after: Arc<Vec<u8>> },
    Create { path: PathBuf, bytes: Arc<Vec<u8>> },
    Remove { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
}

/// What becomes of one file, for whoever reads about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) path: PathBuf,
    /// Its name before, if it gets another one.
    pub(crate) from: Option<PathBuf>,
    pub(crate) before: Content,
    pub(crate) after: Content,
    pub(crate) diff: String,
    /// How each hunk was found, and in which line.
    pub(crate) hunks: Vec<(Strategy, usize)>,
    /// Nothing of the file is quoted.
    pub(crate) quiet: bool,
}

impl Outcome {
    /// Whether this is about the file that is at the path then.
    pub(crate) fn touches(&self, path: &Path) -> bool {
        self.path == path || self.from.as_deref() == Some(path)
    }
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// There is no file.
    Nothing,
    /// Something that did not have to be read.
    Unread,
    /// This.
    Bytes(Arc<Vec<u8>>),
}

impl From<Option<Arc<Vec<u8>>>> for Content {
    fn from(bytes: Option<Arc<Vec<u8>>>) -> Self {
        bytes.map_or(Self::Unread, Self::Bytes)
    }
}

/// Everything that a patch does, in its order.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) outcomes: Vec<Outcome>,
}

/// What keeps a patch from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) why: String,
    /// What in the file is nearest to a hunk that was not found.
    pub(crate) nearest: Option<String>,
}

impl From<String> for Problem {
    fn from(why: String) -> Self {
        Self { why, nearest: None }
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        let said = error.to_string();
        said.strip_prefix(TOOL).and_then(|said| said.strip_prefix(": ")).unwrap_or(&said).to_owned().into()
    }
}

const TOOL: &str = "patch";

/// A file in the picture.
#[derive(Clone, Debug)]
struct Held {
    /// Its content, where it was read or made.
    bytes: Option<Arc<Vec<u8>>>,
    /// Where it is on the disk as long as nothing is done.
    on_disk: PathBuf,
    /// It is not quoted.
    quiet: bool,
    is_link: bool,
}

/// Where a path leads.
struct Place {
    /// The name itself, behind whatever links lead to its folder.
    name: PathBuf,
    /// What the name leads to.
    real: PathBuf,
}

impl Place {
    fn is_link(&self) -> bool {
        self.name != self.real
    }
}

/// Decides what the operations do. Reads files, and changes none. `Err` has everything that is wrong.
pub(crate) async fn plan(cx: &ToolCx, operations: &[Operation]) -> Result<Plan, Vec<Problem>> {
    let mut planner = Planner { cx, files: HashMap::new(), plan: Plan::default() };
    let mut problems = Vec::new();
    for operation in operations {
        let done = match operation {
            Operation::Add { path, content } => planner.add(path, content).await,
            Operation::Delete { path } => planner.delete(path).await,
            Operation::Move { path, to } => planner.update(path, Some(to), &[]).await,
            Operation::Update { path, to, hunks } => planner.update(path, to.as_deref(), hunks).await,
        };
        problems.extend(done.err().into_iter().flatten());
    }
    if problems.is_empty() { Ok(planner.plan) } else { Err(problems) }
}

struct Planner<'c> {
    cx: &'c ToolCx,
    /// The files that the patch has to do with; `None` for those that are gone.
    files: HashMap<PathBuf, Option<Held>>,
    plan: Plan,
}

impl Planner<'_> {
    fn name(&self, path: &Path) -> String {
        shown(self.cx, path)
    }

    async fn place(&self, path: &Path) -> Result<Place, Vec<Problem>> {
        let wrong = |error| vec![file_error(TOOL, &error).into()];
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(vec![format!("{} is a directory", path.display()).into()]);
        };
        let name = self.cx.environment.real_path(folder).await.map_err(wrong)?.join(name);
        let real = self.cx.environment.real_path(path).await.map_err(wrong)?;
        Ok(Place { name, real })
    }

    /// The file at a path as the operations before left it, and the name of it that is meant: of what a link leads to
    /// where the content is meant, of the link where the name is.
    async fn file(&mut self, path: &Path, place: &Place) -> Result<Held, Vec<Problem>> {
        let said = path.display();
        if let Some(held) = self.files.get(&place.name) {
            return match held {
                Some(held) if held.is_link => {
                    Err(vec![format!("{said} is a link that this patch has moved; change what it leads to").into()])
                }
                Some(held) => Ok(held.clone()),
                None => {
                    Err(vec![format!("{said} is not there any more: an operation before this one took it away").into()])
                }
            };
        }
        if let Some(Some(held)) = self.files.get(&place.real) {
            return Ok(held.clone());
        }
        let failed = |error| vec![file_error(TOOL, &error).into()];
        let stat = self.cx.environment.stat(path).await.map_err(failed)?;
        if stat.kind != FileKind::File {
            return Err(vec![format!("{said} is {}, not a regular file", stat.kind.in_words()).into()]);
        }
        known::check(self.cx, TOOL, path).await.map_err(|error| vec![error.into()])?;
        let head = self.cx.environment.read(path, 0..4_096).await.unwrap_or_default();
        Ok(Held {
            bytes: None,
            on_disk: place.real.clone(),
            quiet: keeps_quiet(self.cx, path, &place.real, &head),
            is_link: false,
        })
    }

    /// Refuses a place where something is, or where nothing can be.
    async fn must_be_free(&self, path: &Path, place: &Place) -> Result<(), Vec<Problem>> {
        if path.as_os_str().as_encoded_bytes().contains(&b'\\') {
            let why = "a folder is separated by / here, and \\ would become a part of the name";
            return Err(vec![format!("{}: {why}", path.display()).into()]);
        }
        let said = path.display();
        let taken = match self.files.get(&place.name) {
            Some(Some(_)) => Some("is there already by an operation before this one"),
            Some(None) => None,
            None => (place.is_link() || self.cx.environment.stat(path).await.is_ok()).then_some("exists already"),
        };
        if let Some(taken) = taken {
            return Err(vec![format!("{said} {taken}, and nothing is overwritten by adding or moving").into()]);
        }
        for folder in place.name.ancestors().skip(1) {
            match self.cx.environment.stat(folder).await {
                Ok(stat) if stat.kind == FileKind::Directory => break,
                Ok(_) => return Err(vec![format!("{said} cannot be there: {} is no folder", folder.display()).into()]),
                Err(error) if error.kind == FileErrorKind::NotFound => {}
                Err(error) => return Err(vec![file_error(TOOL, &error).into()]),
            }
        }
        Ok(())
    }

    /// The path that is meant.
    fn stated(&self, path: &str) -> Result<PathBuf, Vec<Problem>> {
        match stated_path::refusal(path) {
            Some(why) => Err(vec![why.into()]),
            None if stated_path::is_of_a_folder(path) => Err(vec![format!("{path} is a directory by its name").into()]),
            None => Ok(self.cx.resolve(path)),
        }
    }

    async fn add(&mut self, path: &str, content: &str) -> Result<(), Vec<Problem>> {
        let path = self.stated(path)?;
        let place = self.place(&path).await?;
        self.must_be_free(&path, &place).await?;
        if let Some(why) = echo(content) {
            return Err(vec![format!("{}: {why}", path.display()).into()]);
        }
        let bytes = Arc::new(content.as_bytes().to_vec());
        let quiet = keeps_quiet(self.cx, &path, &place.name, content.as_bytes());
        let names = ["/dev/null".to_owned(), format!("b/{}", self.name(&path))];
        let diff = quietly(&names, quiet, || diff::whole([&names[0], &names[1]], content, true));
        self.plan.steps.push(Step::Create { path: place.name.clone(), bytes: Arc::clone(&bytes) });
        self.files.insert(
            place.name.clone(),
            Some(Held { bytes: Some(Arc::clone(&bytes)), on_disk: place.name, quiet, is_link: false }),
        );
        self.plan.outcomes.push(Outcome {
            path,
            from: None,
            before: Content::Nothing,
            after: Content::Bytes(bytes),
            diff,
            hunks: Vec::new(),
            quiet,
        });
        Ok(())
    }

    async fn delete(&mut self, path: &str) -> Result<(), Vec<Problem>> {
        let path = self.stated(path)?;
        let place = self.place(&path).await?;
        let names = [format!("a/{}", self.name(&path)), "/dev/null".to_owned()];
        let is_untouched = !self.files.contains_key(&place.name);
        let (before, diff) = if place.is_link() && is_untouched {
            // The link goes, and what it leads to stays.
            (None, format!("--- {}\n+++ {}\n[a link to {}]\n", names[0], names[1], place.real.display()))
        } else {
            let mut held = self.file(&path, &place).await?;
            let size = self.cx.environment.stat(&held.on_disk).await.map_or(0, |stat| stat.len);
            if held.bytes.is_none() && size <= LARGEST_SHOWN {
                held.bytes = self.cx.environment.read(&held.on_disk, 0..u64::MAX).await.ok().map(Arc::new);
            }
            let diff = quietly(&names, held.quiet, || match &held.bytes {
                Some(bytes) if is_text(bytes) => diff::whole([&names[0], &names[1]], View::new(bytes).text(), false),
                _ => format!("--- {}\n+++ {}\n[{} bytes]\n", names[0], names[1], grouped(size)),
            });
            (held.bytes, diff)
        };
        self.plan.steps.push(Step::Remove { path: place.name.clone() });
        self.files.insert(place.name, None);
        self.plan.outcomes.push(Outcome {
            path,
            from: None,
            before: before.into(),
            after: Content::Nothing,
            diff,
            hunks: Vec::new(),
            quiet: true,
        });
        Ok(())
    }

    async fn update(&mut self, stated: &str, to: Option<&str>, hunks: &[Hunk]) -> Result<(), Vec<Problem>> {
        let path = self.stated(stated)?;
        let place = self.place(&path).await?;
        let is_link = place.is_link() && !self.files.contains_key(&place.name);
        let mut held = if is_link && hunks.is_empty() {
            // The link itself is moved, wherever it leads.
            Held {
                bytes: None,
                on_disk: place.name.clone(),
                quiet: keeps_quiet(self.cx, &path, &place.real, &[]),
                is_link: true,
            }
        } else {
            self.file(&path, &place).await?
        };
        let target = if is_link { place.real.clone() } else { place.name.clone() };
        let new_place = match to {
            Some(to) => Some(self.destination(&path, &place, to).await?),
            None => None,
        };
        let new_path = new_place.as_ref().map_or(&path, |(path, _)| path).clone();
        let names = [format!("a/{}", self.name(&path)), format!("b/{}", self.name(&new_path))];
        let mut outcome = Outcome {
            from: to.is_some().then(|| path.clone()),
            before: held.bytes.clone().into(),
            after: held.bytes.clone().into(),
            diff: if to.is_some() { format!("--- {}\n+++ {}\n", names[0], names[1]) } else { String::new() },
            path: new_path,
            hunks: Vec::new(),
            quiet: held.quiet,
        };
        if !hunks.is_empty() {
            let before = self.content(&path, &mut held).await?;
            let changed = edited(&path, &before, hunks, held.quiet, &names)?;
            let after = Arc::new(changed.after);
            self.write(&target, &before, &after);
            held.bytes = Some(Arc::clone(&after));
            (outcome.before, outcome.after) = (Content::Bytes(before), Content::Bytes(after));
            (outcome.diff, outcome.hunks) = (changed.diff, changed.hunks);
        }
        if !held.is_link {
            self.files.insert(target, Some(held.clone()));
        }
        if let Some((_, new)) = new_place {
            self.plan.steps.push(Step::Rename { from: place.name.clone(), to: new.name.clone() });
            self.files.insert(place.name, None);
            self.files.insert(new.name, Some(Held { is_link, ..held }));
        }
        self.plan.outcomes.push(outcome);
        Ok(())
    }

    async fn destination(&self, path: &Path, place: &Place, to: &str) -> Result<(PathBuf, Place), Vec<Problem>> {
        let to = self.stated(to)?;
        let new = self.place(&to).await?;
        if new.name == place.name {
            return Err(vec![format!("{} is moved to itself", path.display()).into()]);
        }
        self.must_be_free(&to, &new).await?;
        Ok((to, new))
    }

    async fn content(&self, path: &Path, held: &mut Held) -> Result<Arc<Vec<u8>>, Vec<Problem>> {
        if let Some(bytes) = &held.bytes {
            if !is_text(bytes) || bytes.len() as u64 > LARGEST_EDIT {
                return Err(vec![format!("{} is no text that can be edited", path.display()).into()]);
            }
            return Ok(Arc::clone(bytes));
        }
        let bytes = read_for_editing(self.cx, TOOL, &held.on_disk).await.map_err(|error| vec![error.into()])?;
        let bytes = Arc::new(bytes);
        held.bytes = Some(Arc::clone(&bytes));
        Ok(bytes)
    }

    /// A file that is written twice in a row is written once.
    fn write(&mut self, target: &Path, was: &Arc<Vec<u8>>, becomes: &Arc<Vec<u8>>) {
        match self.plan.steps.last_mut() {
            Some(Step::Write { path, after, .. }) if path == target => *after = Arc::clone(becomes),
            Some(Step::Create { path, bytes }) if path == target => *bytes = Arc::clone(becomes),
            _ => self.plan.steps.push(Step::Write {
                path: target.to_path_buf(),
                before: Arc::clone(was),
                after: Arc::clone(becomes),
            }),
        }
    }
}

struct Edited {
    after: Vec<u8>,
    diff: String,
    hunks: Vec<(Strategy, usize)>,
}

/// The content with its hunks made.
fn edited(
    path: &Path,
    before: &[u8],
    hunks: &[Hunk],
    quiet: bool,
    names: &[String; 2],
) -> Result<Edited, Vec<Problem>> {
    let said = path.display();
    let view = View::new(before);
    let found = placed(view.text(), hunks).map_err(|wrong| {
        let problem = |no: super::hunks::NoPlace| Problem {
            why: format!("{said}: {}", no.why),
            nearest: no.nearest.filter(|_| !quiet),
        };
        wrong.into_iter().map(problem).collect::<Vec<_>>()
    })?;
    let splices: Vec<Splice> = found.iter().map(|found| found.splice.clone()).collect();
    let after = view.spliced(&splices).map_err(|error| vec![Problem::from(format!("{said}: {error}"))])?;
    if after == before {
        return Err(vec![format!("{said} would stay as it is: no hunk changes a line").into()]);
    }
    let diff =
        quietly(names, quiet, || diff::unified([&names[0], &names[1]], &Lines::of(view.text()), view.text(), &splices));
    Ok(Edited { after, diff, hunks: found.iter().map(|found| (found.strategy, found.line)).collect() })
}

/// A diff, or only its head where the file is not quoted.
pub(crate) fn quietly(names: &[String; 2], quiet: bool, diff: impl FnOnce() -> String) -> String {
    if quiet { format!("--- {}\n+++ {}\n{NOT_SHOWN}\n", names[0], names[1]) } else { diff() }
}
