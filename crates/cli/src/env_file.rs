//! `.env` in the home of Hermes: keys for those who do not want them in their shell's environment.
//!
//! The environment of the process comes first. What the file says is read and never written back.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hermes_core::Surroundings;
use secrecy::{ExposeSecret as _, SecretString};

use crate::words::Failure;
use crate::world::World;

/// Keys from the environment and, where it says nothing, from the file.
pub(crate) struct Keys<'a> {
    world: &'a World,
    file: Vec<(String, SecretString)>,
}

impl<'a> Keys<'a> {
    pub(crate) fn read(world: &'a World) -> Result<Self, Failure> {
        Ok(Self { world, file: read(&world.home.join(".env"))? })
    }

    /// A value that is no secret, from the same places.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.secret(name).map(|value| value.expose_secret().to_owned())
    }

    pub(crate) fn secret(&self, name: &str) -> Option<SecretString> {
        let in_file = || self.file.iter().find(|(key, value)| key == name && !value.expose_secret().is_empty());
        self.world.variable(name).map(SecretString::from).or_else(|| in_file().map(|(_, value)| value.clone()))
    }
}

/// What the file at `path` says; an absent file says nothing.
fn read(path: &Path) -> Result<Vec<(String, SecretString)>, Failure> {
    let unreadable = |why: &str| Failure::new(format!("cannot read {}: {why}", path.display()));
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&error.to_string())),
    };
    let text = decoded(&bytes).ok_or_else(|| unreadable("it is no text in UTF-8 or UTF-16"))?;
    // The error's own text repeats the line, and the line may hold a key.
    let bad_line = |_| unreadable("a line in it is not NAME=VALUE");
    let pairs = dotenvy::from_read_iter(text.as_bytes());
    pairs.map(|pair| pair.map(|(name, value)| (name, value.into()))).collect::<Result<_, _>>().map_err(bad_line)
}

/// The text of the file. Editors of another system may have saved it in two bytes a character, with a mark in front.
fn decoded(bytes: &[u8]) -> Option<String> {
    let wide = |rest: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, odd) = rest.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        odd.is_empty().then(|| String::from_utf16(&units).ok()).flatten()
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    }
}

/// What tools may need of this machine. The file is read anew with each question, so a key that is added counts.
pub(crate) struct Machine {
    world: World,
}

impl Machine {
    pub(crate) fn new(world: &World) -> Self {
        Self { world: world.clone() }
    }
}

impl Surroundings for Machine {
    fn has_variable(&self, name: &str) -> bool {
        // A file that cannot be read gives nothing; whoever needs a key of it says why.
        Keys::read(&self.world).map_or_else(|_| self.world.variable(name).is_some(), |keys| keys.secret(name).is_some())
    }

    fn has_program(&self, name: &str) -> bool {
        let is_program = |path: PathBuf| {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        };
        if name.contains('/') {
            return is_program(self.world.path(name));
        }
        let path = self.world.variable("PATH").unwrap_or_default();
        std::env::split_paths(path).any(|folder| is_program(folder.join(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(bytes: &[u8]) -> Result<Vec<(String, String)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        std::fs::write(&path, bytes).unwrap();
        let read = read(&path).map_err(|failure| failure.message)?;
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "the file is never written");
        Ok(read.into_iter().map(|(name, value)| (name, value.expose_secret().to_owned())).collect())
    }

    #[test]
    fn a_file_in_two_bytes_a_character_is_read_or_refused_and_never_half_understood() {
        let one = Ok(vec![("A".to_owned(), "1".to_owned())]);
        assert_eq!(said(b"\xff\xfeA\0=\x001\0\r\0\n\0"), one);
        assert_eq!(said(b"\xfe\xff\0A\0=\x001"), one);
        assert_eq!(said(b"\xef\xbb\xbfA=1\n"), one);
        for broken in [&b"\xff\xfeA\0=\x001"[..], b"\xff\xfe\x00\xd8", b"A=\xff1\n"] {
            assert!(said(broken).unwrap_err().contains("no text in UTF-8 or UTF-16"), "{broken:?}");
        }
        assert!(said(b"not a pair\n").unwrap_err().ends_with("a line in it is not NAME=VALUE"));
    }
}
