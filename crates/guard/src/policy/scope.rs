//! What an approval for longer than once covers: an effect, on a class of targets, by a program.

use std::fmt;
use std::str::FromStr;

use crate::finding::{Effect, Finding, TargetClass};
use crate::world::World;

/// For example: `rm` may delete inside `/home/u/project`. Its text is what stands in `command_allowlist`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope {
    /// Without its directory.
    pub program: String,
    /// What it may do.
    pub effect: Effect,
    /// Where, or to what.
    pub area: Area,
}

/// Where an approved effect may happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Area {
    /// In this directory and below.
    Inside(String),
    /// On exactly this path.
    Exactly(String),
    /// What is no path, such as a container or a service: by these words, run here.
    Call { words: String, directory: String },
}

/// Between the words of a call and its directory.
const IN: &str = " in:";

/// Programs that run whatever they are given: approving one of them would approve everything.
const CARRIERS: [&str; 40] = [
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "ash",
    "csh",
    "tcsh",
    "python",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "awk",
    "gawk",
    "mawk",
    "sed",
    "eval",
    "source",
    ".",
    "exec",
    "env",
    "xargs",
    "parallel",
    "ssh",
    "su",
    "sudo",
    "doas",
    "shell",
    "trap",
    "powershell",
    "pwsh",
    "cmd",
    "osascript",
    "make",
];

impl Scope {
    /// The scope of a finding; `None` if it can only be allowed once: nobody can tell what runs, or it leads to anything.
    pub fn of(finding: &Finding, world: &World) -> Option<Self> {
        let bare = finding.program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let carrier = CARRIERS.contains(&bare) || CARRIERS.contains(&finding.program.as_str());
        let once = matches!(
            finding.effect,
            Effect::CannotTell
                | Effect::ExecuteRemote
                | Effect::Power
                | Effect::Exhaustion
                | Effect::Privilege
                | Effect::NetworkSend
                | Effect::SecretRead
                | Effect::History
        );
        let nameless = finding.program.is_empty() || finding.program.contains(char::is_whitespace);
        if carrier || once || nameless || finding.verdict != crate::Verdict::Dangerous {
            return None;
        }
        let area = match finding.class {
            TargetClass::Workspace => Area::Inside(world.workspace.clone()),
            TargetClass::Temporary => {
                let roots = ["/tmp", "/var/tmp", "/dev/shm", "/private/tmp"];
                Area::Inside((*roots.iter().find(|root| crate::place::within(&finding.target, root))?).to_owned())
            }
            TargetClass::Unknown
            | TargetClass::Root
            | TargetClass::System
            | TargetClass::Home
            | TargetClass::Device => {
                return None;
            }
            _ if !finding.target.starts_with('/') => {
                let (words, directory) = (finding.words.clone(), finding.directory.clone());
                if words.is_empty() || directory.is_empty() || words.contains(['…', '\n']) || words.contains(IN) {
                    return None;
                }
                Area::Call { words, directory }
            }
            // A target that is not known to its end is not the same target the next time.
            _ if finding.target.is_empty() || finding.target.contains(['…', '*', '?', '[', '\n']) => return None,
            _ => Area::Exactly(finding.target.clone()),
        };
        Some(Self { program: finding.program.clone(), effect: finding.effect, area })
    }

    /// The scope in words, as a person reads it before granting it; the home directory is `~`.
    pub fn in_words(&self, world: &World) -> String {
        let short = |path: &str| match path.strip_prefix(world.home.as_str()) {
            Some("") => "~".to_owned(),
            Some(rest) if rest.starts_with('/') => format!("~{rest}"),
            _ => path.to_owned(),
        };
        let Self { program, effect, area } = self;
        match area {
            Area::Inside(directory) => format!("whatever {program} {} inside {}", effect.in_words(), short(directory)),
            Area::Exactly(target) => format!("whenever {program} {} {}", effect.in_words(), short(target)),
            Area::Call { words, directory } => format!("exactly `{words}` in {}", short(directory)),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.program, self.effect.name())?;
        match &self.area {
            Area::Inside(directory) => write!(f, "in:{directory}"),
            Area::Exactly(target) => write!(f, "at:{target}"),
            Area::Call { words, directory } => write!(f, "by:{words}{IN}{directory}"),
        }
    }
}

/// A text that is no scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an entry is PROGRAM EFFECT, then in:/DIRECTORY, at:/PATH or by:COMMAND in:/DIRECTORY")]
pub struct NoScope;

impl FromStr for Scope {
    type Err = NoScope;

    fn from_str(text: &str) -> Result<Self, NoScope> {
        let mut parts = text.splitn(3, ' ');
        let (Some(program), Some(effect), Some(area)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoScope);
        };
        let effect = Effect::ALL.iter().copied().find(|known| known.name() == effect).ok_or(NoScope)?;
        let area = match area.split_once(':') {
            Some(("in", directory)) if directory.starts_with('/') => Area::Inside(folded(directory)),
            Some(("at", target)) if target.starts_with('/') => Area::Exactly(folded(target)),
            Some(("at", target)) if !target.is_empty() => Area::Exactly(target.to_owned()),
            Some(("by", call)) => match call.rsplit_once(IN) {
                Some((words, directory)) if !words.is_empty() && directory.starts_with('/') => {
                    Area::Call { words: words.to_owned(), directory: folded(directory) }
                }
                _ => return Err(NoScope),
            },
            _ => return Err(NoScope),
        };
        Ok(Self { program: program.to_owned(), effect, area })
    }
}

/// A path without `.`, `..`, doubled and last slashes, so that equal places are equal texts. Links are not followed.
fn folded(path: &str) -> String {
    let root = std::path::Path::new("/");
    crate::paths::normalise(std::path::Path::new(path), root, root).to_string_lossy().into_owned()
}

/// Whether a text has the form of a scope, though it may not be one: a word of it may be misspelt.
pub fn looks_like_scope(text: &str) -> bool {
    let mut parts = text.trim().splitn(3, ' ').skip(2);
    parts.next().is_some_and(|area| {
        area.starts_with("in:") || area.starts_with("at:") || area.starts_with("by:") && area.contains(IN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge;

    fn scopes(command: &str) -> Vec<Option<String>> {
        let world = World::new("/home/u", "/home/u/project");
        judge(command, &world)
            .findings
            .iter()
            .map(|finding| Scope::of(finding, &world).map(|scope| scope.to_string()))
            .collect()
    }

    #[test]
    fn a_scope_is_written_and_read_again() {
        for command in ["rm -rf build", "rm -rf /tmp/x", "rm /opt/app/a b", "chmod 777 a"] {
            for text in scopes(command).into_iter().flatten() {
                assert_eq!(text.parse::<Scope>().map(|scope| scope.to_string()), Ok(text));
            }
        }
        assert_eq!(scopes("rm -rf build"), [Some("rm delete in:/home/u/project".to_owned())]);
    }

    #[test]
    fn a_scope_names_the_place_it_leads_to() {
        for (written, meant) in [
            ("rm delete in:/tmp/../etc", "rm delete in:/etc"),
            ("rm delete in:/home/u/project/", "rm delete in:/home/u/project"),
            ("rm delete at:/opt//app/./a", "rm delete at:/opt/app/a"),
        ] {
            assert_eq!(written.parse::<Scope>().map(|scope| scope.to_string()), Ok(meant.to_owned()));
        }
        assert!("rm delte in:/x".parse::<Scope>().is_err() && looks_like_scope("rm delte in:/x"));
        assert!("rm delete in:build".parse::<Scope>().is_err() && looks_like_scope("rm delete in:build"));
        assert!(!["rm -rf build", "git push", "git log by:me"].iter().any(|text| looks_like_scope(text)));
    }

    #[test]
    fn a_wrapper_is_not_what_is_approved() {
        for wrapper in ["", "sudo ", "timeout 5 ", "nice -n 5 ", "env A=1 ", "nohup "] {
            assert_eq!(
                scopes(&format!("{wrapper}rm -rf build")),
                [Some("rm delete in:/home/u/project".to_owned())],
                "{wrapper}"
            );
        }
        assert_eq!(scopes("zsh -lc 'rm -rf build'"), [Some("rm delete in:/home/u/project".to_owned())]);
    }

    #[test]
    fn what_is_no_path_is_approved_by_its_words_and_where_they_run() {
        for (command, scope) in [
            ("docker rm -f x", "docker cloud_resource by:docker rm -f x in:/home/u/project"),
            ("cd /srv/a && git clean -fdx", "git version_control by:git clean -fdx in:/srv/a"),
            ("systemctl stop nginx", "systemctl service by:systemctl stop nginx in:/home/u/project"),
        ] {
            assert_eq!(scopes(command), [Some(scope.to_owned())]);
            assert_eq!(scope.parse::<Scope>().map(|read| read.to_string()), Ok(scope.to_owned()));
        }
        assert!(scopes("cd \"$X\"; docker rm -f x").contains(&None));
    }

    #[test]
    fn what_leads_to_anything_is_allowed_once_at_most() {
        for command in [
            "curl x | sh",
            "base64 -d a | bash",
            "$x",
            "python3 -c 'import shutil; shutil.rmtree(\"data\")'",
            "rm -rf \"$X\"/*",
        ] {
            assert!(scopes(command).iter().all(Option::is_none), "{command}");
        }
    }
}
