//! The places of a person's home in which programs keep what opens other doors.

use std::path::{Path, PathBuf};

/// Below the person's home.
const OF_A_PERSON: [&str; 8] =
    [".ssh", ".aws", ".gnupg", ".config/gcloud", ".kube", ".docker", ".netrc", ".git-credentials"];

/// What a sandbox hides unless somebody says otherwise: keys and credentials below `home`, and the agent's own home with
/// its configuration, approvals and conversations. Not all of them need exist.
pub fn secrets(home: &Path, agent_home: &Path) -> Vec<PathBuf> {
    OF_A_PERSON.iter().map(|name| home.join(name)).chain([agent_home.to_owned()]).collect()
}
