//! Secrets for commands by reference (`terminal.secrets`): the configuration says where each is kept, and neither the
//! configuration nor a model ever holds the value.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use hermes_guard::redact::Secrets;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::config::Config;
use crate::words::Failure;
use crate::world::World;

/// How long a program that knows a secret may take: somebody may have to unlock it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A variable of commands, and where its value is kept.
#[derive(Debug, PartialEq, Eq)]
struct Grant {
    name: String,
    kept: Kept,
}

#[derive(Debug, PartialEq, Eq)]
enum Kept {
    /// In a variable of our own.
    Env(String),
    File(String),
    /// A shell command prints it.
    Command(String),
}

impl Grant {
    /// Reads `NAME=env:OTHER`, `NAME=file:PATH` or `NAME=command:WORDS`.
    fn read(text: &str) -> Result<Self, String> {
        // What stands there may be the secret itself.
        let shown = text.split('=').next().unwrap_or_default();
        let wrong = || {
            format!(
                "terminal.secrets: {shown:?} needs NAME=env:OTHER, NAME=file:PATH or NAME=command:WORDS; the value itself does not belong here"
            )
        };
        let (name, reference) = text.split_once('=').ok_or_else(wrong)?;
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
        let (kind, place) =
            reference.split_once(':').filter(|(_, place)| is_name && !place.trim().is_empty()).ok_or_else(wrong)?;
        let place = place.trim().to_owned();
        let kept = match kind.trim() {
            "env" => Kept::Env(place),
            "file" => Kept::File(place),
            "command" => Kept::Command(place),
            _ => return Err(wrong()),
        };
        Ok(Self { name: name.to_owned(), kept })
    }

    async fn value(&self, world: &World) -> Result<SecretString, String> {
        let bytes = match &self.kept {
            Kept::Env(name) => return world.variable(name).map(SecretString::from).ok_or(format!("{name} is not set")),
            Kept::File(path) => {
                let path = world.path(path);
                tokio::fs::read(&path).await.map_err(|error| format!("{}: {error}", world.shown(&path)))?
            }
            Kept::Command(words) => printed(words).await.map_err(|why| format!("{words}: {why}"))?,
        };
        let text = String::from_utf8(bytes).map_err(|_| "it is no text")?;
        let text = text.trim_end_matches(['\n', '\r']);
        if text.is_empty() || text.contains('\0') {
            Err("there is nothing to use in it".into())
        } else {
            Ok(text.into())
        }
    }
}

async fn printed(words: &str) -> Result<Vec<u8>, String> {
    let mut shell = Command::new("sh");
    // Our own input is not for it. Whoever has to unlock something is asked on the terminal itself.
    shell.args(["-c", words]).stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0).kill_on_drop(true);
    let child = shell.spawn().map_err(|error| error.to_string())?;
    let group = child.id().and_then(|pid| i32::try_from(pid).ok());
    let ended = timeout(PATIENCE, child.wait_with_output()).await;
    if let (Err(_), Some(group)) = (&ended, group) {
        let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), nix::sys::signal::Signal::SIGKILL);
    }
    let output = ended.map_err(|_| format!("it did not end within {} s", PATIENCE.as_secs()))?;
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() { Ok(output.stdout) } else { Err(output.status.to_string()) }
}

/// What is granted to the commands of one Hermes: read once, however many tasks there are, because somebody may have to
/// unlock it.
#[derive(Default)]
pub(crate) struct Granted(OnceCell<Vec<(OsString, OsString)>>);

impl Granted {
    /// The variables that the configuration grants, and the first time a sentence for each that cannot be had. `secrets`
    /// hides their values from now on. Fails if the configuration makes no sense.
    pub(crate) async fn variables(
        &self,
        world: &World,
        config: &Config,
        secrets: &Secrets,
    ) -> Result<(Vec<(OsString, OsString)>, Vec<String>), Failure> {
        let mut said = Vec::new();
        let variables = self.0.get_or_try_init(async || {
            let (variables, trouble) = read(world, config, secrets).await?;
            said = trouble;
            Ok::<_, Failure>(variables)
        });
        let variables = variables.await?.clone();
        Ok((variables, said))
    }
}

async fn read(
    world: &World,
    config: &Config,
    secrets: &Secrets,
) -> Result<(Vec<(OsString, OsString)>, Vec<String>), Failure> {
    let (mut variables, mut said) = (Vec::new(), Vec::new());
    for text in config.list("terminal.secrets") {
        let grant = Grant::read(&text).map_err(Failure::usage)?;
        match grant.value(world).await {
            Ok(value) => match secrets.register(&grant.name, value.clone()) {
                Ok(()) => variables.push((grant.name.into(), value.expose_secret().into())),
                Err(why) => said.push(format!(
                    "terminal.secrets: commands get no {}: it could not be hidden from the model, {why} \
                         (terminal.env_passthrough passes what is no secret)",
                    grant.name
                )),
            },
            Err(why) => said.push(format!("terminal.secrets: commands get no {}: {why}", grant.name)),
        }
    }
    Ok((variables, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_says_where_and_nothing_else_is_one() {
        let read = |text: &str| Grant::read(text).map(|grant| (grant.name, grant.kept));
        assert_eq!(read("A=env:B"), Ok(("A".into(), Kept::Env("B".into()))));
        assert_eq!(read("A_1=file: ~/x=y"), Ok(("A_1".into(), Kept::File("~/x=y".into()))));
        assert_eq!(read("A=command:pass show a:b"), Ok(("A".into(), Kept::Command("pass show a:b".into()))));
        for wrong in ["A", "A=", "A=ghp_123", "A=env:", "=env:B", "1A=env:B", "A B=env:B", "A=keyring:x", "A=file:  "] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
