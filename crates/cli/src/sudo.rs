//! The password for sudo: from the environment, else from the person at the terminal.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use hermes_core::{Asker, CancellationToken, PasswordWish};
use hermes_exec::sudo::{PasswordSource, SudoSetup};
use hermes_guard::redact::Secrets;
use secrecy::SecretString;

use crate::words::{Exit, Failure};
use crate::world::World;

/// The hidden command that sudo starts to get a password.
pub(crate) const ASK: &str = "sudo-ask";
/// A password for those who start Hermes where nobody can type one (spec exec §7).
const VARIABLE: &str = "SUDO_PASSWORD";

/// How the sudo of a task's commands gets its password; `None` if this program cannot be found to ask for it.
pub(crate) fn setup(world: &World, asker: Option<Arc<dyn Asker>>, secrets: &Arc<Secrets>) -> Option<SudoSetup> {
    let known = world.variable(VARIABLE).map(|password| SecretString::from(password.to_owned()));
    let source = Arc::new(Passwords { known, asker, secrets: Arc::clone(secrets) });
    let helper = vec![std::env::current_exe().ok()?.into_os_string(), ASK.into()];
    Some(SudoSetup { helper, source })
}

/// What the program does when sudo starts it.
pub(crate) fn ask(socket: &Path, prompt: &str) -> Result<Exit, Failure> {
    hermes_exec::sudo::ask(socket, prompt).map(|()| Exit::Done).map_err(Failure::new)
}

struct Passwords {
    known: Option<SecretString>,
    asker: Option<Arc<dyn Asker>>,
    secrets: Arc<Secrets>,
}

#[async_trait]
impl PasswordSource for Passwords {
    async fn password(&self, wish: &PasswordWish, cancel: &CancellationToken) -> Result<SecretString, String> {
        if let Some(known) = self.known.as_ref().filter(|_| !wish.refused) {
            return Ok(known.clone());
        }
        if cancel.is_cancelled() {
            return Err(format!(
                "sudo wants a password, and a command in the background can ask nobody; run it in the foreground, or set \
                 {VARIABLE} for Hermes"
            ));
        }
        let Some(asker) = &self.asker else {
            return Err(match &self.known {
                Some(_) => format!("the password in {VARIABLE} is not the right one"),
                None => format!("nobody is here to type the password of sudo, and {VARIABLE} is not set for Hermes"),
            });
        };
        let password = asker.password(wish, cancel).await.ok_or("no password was typed for sudo")?;
        // One that is too short or too common to be told from ordinary text cannot be hidden.
        let _ = self.secrets.register("sudo password", password.clone());
        Ok(password)
    }
}
