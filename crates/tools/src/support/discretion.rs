//! Whose contents are not quoted: in a diff, in the nearest text, in an error.
//!
//! Who may touch a file is decided elsewhere (`guard`). This is about what a permitted change shows beside itself: a
//! token in `.env` that has nothing to do with the change must not be in the answer because it stands on the next line.

use std::path::Path;

/// Names of files that hold secrets and little else.
const NAMES: &[&str] = &[
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    "credentials",
    "auth.json",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "shadow",
    "kubeconfig",
];

/// Ends of such names.
const ENDS: &[&str] = &[".env", ".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".ppk"];

/// Folders of such files.
const FOLDERS: &[&str] = &[".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure", "gcloud"];

/// What a template of such a file ends with; it is there to be shown.
const TEMPLATES: &[&str] = &["example", "sample", "template", "tmpl", "tpl", "dist", "default", "defaults", "schema"];

/// Whether a file is one of those, by its name, the name it leads to, or its content.
pub(crate) fn keeps_quiet(stated: &Path, real: &Path, content: &[u8]) -> bool {
    let head = &content[..content.len().min(4 * 1024)];
    by_name(stated) || by_name(real) || memchr::memmem::find(head, b"PRIVATE KEY-----").is_some()
}

fn by_name(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let name = name.to_string_lossy().to_lowercase();
    let is_template = name.rsplit(['.', '-', '_']).next().is_some_and(|end| TEMPLATES.contains(&end));
    let is_secret = NAMES.contains(&name.as_str())
        || ENDS.iter().any(|end| name.ends_with(end))
        || name.strip_prefix(".env").is_some_and(|rest| rest.starts_with(['.', '-']));
    let within = |folder: &std::ffi::OsStr| FOLDERS.iter().any(|name| folder.eq_ignore_ascii_case(name));
    (is_secret && !is_template) || path.parent().is_some_and(|above| above.iter().any(within))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_links_and_contents_count_and_templates_do_not() {
        let quiet = |path: &str| keeps_quiet(Path::new(path), Path::new("/w/x"), b"");
        for path in
            ["/w/.env", "/w/.ENV", "/w/.env.local", "/w/prod.env", "/w/key.pem", "/home/u/.ssh/config", "/w/.npmrc"]
        {
            assert!(quiet(path), "{path}");
        }
        for path in ["/w/.env.example", "/w/.env-sample", "/w/environment", "/w/main.rs", "/w/.envoy", "/"] {
            assert!(!quiet(path), "{path}");
        }
        assert!(keeps_quiet(Path::new("/w/notes"), Path::new("/w/.env"), b""));
        assert!(keeps_quiet(Path::new("/w/a"), Path::new("/w/a"), b"-----BEGIN RSA PRIVATE KEY-----\nx"));
    }
}
