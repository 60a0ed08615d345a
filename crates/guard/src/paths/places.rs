//! Where secrets are kept, for whoever hides them all beforehand instead of asking for one path at a time.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::index::{INDEX, Starts, USUAL_HOMES, glob};
use super::table::{At, R};

/// What begins so is the kernel's and no place where something is kept.
const OF_THE_KERNEL: [&str; 2] = ["dev/", "proc/"];

/// The files and folders in which secrets of the machine, of the person and of others in the usual homes are kept, and
/// the homes of the agent as a whole; sorted, and none below another.
///
/// Both paths must be absolute and without `..`. `names_in` answers the names in a folder, none if it cannot be listed. A
/// secret of the person or of the machine with a fixed name is among them whether it is there or not, since it may come
/// later; of all others there are those that are there. What is secret by its name in any folder (`.env`) is not looked
/// for.
pub fn secret_places(home: &Path, agent_home: &Path, names_in: impl Fn(&Path) -> Vec<OsString>) -> Vec<PathBuf> {
    let mut folders = Folders { names_in, known: HashMap::new() };
    let root = Path::new("/");
    let others: Vec<PathBuf> = USUAL_HOMES.iter().flat_map(|homes| folders.find(root, homes)).collect();
    let mut places = agent_homes(home, agent_home);
    places.extend(others.iter().flat_map(|other| folders.find(other, ".hermes")));
    for (at, pattern) in INDEX.rows.iter().filter(|row| row.is(R)).filter_map(|row| Some((row.at, row.place()?))) {
        let (own, others) = match at {
            At::Home => (home, &others[..]),
            At::Root if !OF_THE_KERNEL.iter().any(|kernel| pattern.starts_with(kernel)) => (root, &[][..]),
            _ => continue,
        };
        places.extend((!pattern.contains('*')).then(|| own.join(pattern)));
        places.extend([own].into_iter().chain(others.iter().map(PathBuf::as_path)).flat_map(|start| {
            let found = folders.find(start, pattern).into_iter();
            found.filter(|path| is_secret(path, home, agent_home)).collect::<Vec<_>>()
        }));
    }
    places.sort();
    places.dedup_by(|later, earlier| later.starts_with(earlier));
    places
}

/// The agent's home, the one of which it is a profile, and the one that it has if nobody says otherwise.
fn agent_homes(home: &Path, agent_home: &Path) -> Vec<PathBuf> {
    let profiles = agent_home.parent().filter(|folder| folder.ends_with("profiles"));
    let main = profiles.and_then(Path::parent);
    [agent_home].into_iter().chain(main).map(Path::to_path_buf).chain([home.join(".hermes")]).collect()
}

/// Whether the table, with its exceptions, says so.
fn is_secret(path: &Path, home: &Path, agent_home: &Path) -> bool {
    let [path, home, agent_home] = [path, home, agent_home].map(|path| path.as_os_str().as_encoded_bytes());
    INDEX.ask(&Starts::of(path, home, agent_home), false).is_secret()
}

/// Folders that are listed once.
struct Folders<F> {
    names_in: F,
    known: HashMap<PathBuf, Vec<OsString>>,
}

impl<F: Fn(&Path) -> Vec<OsString>> Folders<F> {
    /// What is there of a pattern that begins at `start`.
    fn find(&mut self, start: &Path, pattern: &str) -> Vec<PathBuf> {
        let mut found = vec![start.to_path_buf()];
        for part in pattern.split('/') {
            found = found.iter().flat_map(|folder| self.within(folder, part)).collect();
        }
        found
    }

    fn within(&mut self, folder: &Path, part: &str) -> Vec<PathBuf> {
        let Self { names_in, known } = self;
        let names = known.entry(folder.to_path_buf()).or_insert_with(|| names_in(folder));
        let named = names.iter().filter(|name| glob(part.as_bytes(), name.as_encoded_bytes()));
        named.map(|name| folder.join(name)).collect()
    }
}
