//! What every test of the binary needs: the binary, in a home of its own, with nothing of ours in its environment.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its part of this")]

pub(crate) mod pty;

use std::process::Output;

use assert_cmd::Command;
use hermes_testkit::TempHome;
use serde_json::Value;

pub(crate) struct Hermes {
    pub(crate) home: TempHome,
}

/// What a command printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

pub(crate) fn hermes() -> Hermes {
    let home = TempHome::new();
    // A server that happens to run on the machine must not answer a test.
    home.write_config("model: {probe_local: false}\nagent: {api_retry_base_seconds: 0.01}\n");
    Hermes { home }
}

impl Hermes {
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("hermes").unwrap();
        command
            .args(args)
            .current_dir(self.home.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.home.user_home())
            .env("HERMES_HOME", self.home.home())
            .env("TERM", "xterm");
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().unwrap())
    }

    /// Adds lines to the configuration of a test.
    pub(crate) fn configure(&self, yaml: &str) {
        self.home.write_config(&format!("agent: {{api_retry_base_seconds: 0.01}}\n{yaml}"));
    }

    /// Uses the model server at `base_url`.
    pub(crate) fn use_model(&self, base_url: &str) {
        self.configure(&format!("model: {{base_url: '{base_url}', default: test-model, api_key: sk-test}}\n"));
    }

    /// Writes a script of turns into the working folder and gives the name of the model that plays it.
    pub(crate) fn script(&self, lines: &[&str]) -> String {
        self.home.write("script.jsonl", lines.join("\n"));
        "script:script.jsonl".into()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

impl Ran {
    /// The JSON lines that were printed.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }

    /// Nothing on standard output, one line on standard error that contains all of `parts`, this exit code.
    pub(crate) fn is_refused(&self, code: i32, parts: &[&str]) {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        assert_eq!(self.err.trim_end().lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("hermes: "), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in {:?}", self.err);
        }
    }
}
