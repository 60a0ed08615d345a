//! The bash of this machine, asked for the truth.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "shared by test programs, each of which uses a part of it"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Whether there is one; if not, the reason for skipping is printed.
pub fn is_here() -> bool {
    let here = Command::new("bash").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !here {
        println!("skipped: there is no bash on this machine");
    }
    here
}

/// What bash made of a script.
#[derive(Debug)]
pub struct Answer {
    /// The arguments of each call of `show`.
    pub calls: Vec<Vec<String>>,
    /// It ran to its end.
    pub ended: bool,
}

/// Runs before the scripts: nothing but builtins can be found, `show` writes down what it is given, and nothing runs long.
const FRAME: &str = r#"
export PATH=
ulimit -t 20
show() { printf '%s\0' "$#" "$@" >&9; }
exec 2>/dev/null </dev/null
for file in "$1"/*.sh; do
    ( cd "$2" && set -- && . "$file"; printf 'end\0' >&9 ) 9>"$file.out" >/dev/null
done
"#;

/// Runs each script in a shell of its own, in an empty directory; `None` where what came out is no text.
pub fn run(scripts: &[String], home: &str, cwd: &Path) -> Vec<Option<Answer>> {
    let folder = tempfile::tempdir().unwrap();
    for (at, script) in scripts.iter().enumerate() {
        fs::write(folder.path().join(format!("{at:06}.sh")), script).unwrap();
    }
    let status = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", FRAME, "bash"])
        .arg(folder.path())
        .arg(cwd)
        .env_clear()
        .env("HOME", home)
        .env("LC_ALL", "C.UTF-8")
        .env("USER", "u")
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    (0..scripts.len()).map(|at| answer(&folder.path().join(format!("{at:06}.sh.out")))).collect()
}

fn answer(path: &Path) -> Option<Answer> {
    let text = String::from_utf8(fs::read(path).unwrap_or_default()).ok()?;
    let mut fields = text.split_terminator('\0');
    let mut answer = Answer { calls: Vec::new(), ended: false };
    while let Some(count) = fields.next() {
        if count == "end" {
            answer.ended = true;
            break;
        }
        let count: usize = count.parse().ok()?;
        answer.calls.push(fields.by_ref().take(count).map(str::to_owned).collect());
    }
    Some(answer)
}

/// Whether bash would begin to run the text. In `[[ … ]]` it complains and says yes all the same.
pub fn accepts(script: &str) -> bool {
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-n", "-c", "--", script])
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    output.status.success() && !["error", "expected", "conditional"].iter().any(|word| complaint.contains(word))
}
