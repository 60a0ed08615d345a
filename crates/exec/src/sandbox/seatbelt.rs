//! macOS: the profile for `sandbox-exec -p`.
//!
//! The text is made and tested everywhere; **it has not been run on a Mac yet**. In a profile the last rule that fits
//! decides, so the rules go from the general to the special: all may be read, nothing written; then our lists, each
//! deeper path after its parents.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use super::{Backing, Confinement, Network, View, failed};

/// What programs need for running at all in the view `System`.
const SYSTEM: [&str; 8] = ["/usr", "/bin", "/sbin", "/System", "/Library", "/opt/homebrew", "/private/etc", "/dev"];

/// The profile of `confinement`.
///
/// Fails if it asks for what a profile cannot do (overlays, other sources, a proxy as the only way out), or names a path
/// that is not text.
pub fn profile(confinement: &Confinement) -> io::Result<String> {
    if let Some(root) = confinement.writable.iter().find(|root| root.backing != Backing::Direct) {
        let step = format!("keep changes apart of {}", root.path.display());
        return Err(failed(step, "macOS cannot show another folder in its place"));
    }
    let mut text = String::from("(version 1)\n(deny default)\n(allow process-fork process-exec)\n");
    text.push_str("(allow signal (target same-sandbox))\n(allow process-info* (target same-sandbox))\n");
    text.push_str("(allow sysctl-read)\n(allow file-ioctl (regex #\"^/dev/tty\"))\n");
    text.push_str("(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (regex #\"^/dev/tty\"))\n");
    match &confinement.view {
        View::Everything => text.push_str("(allow file-read*)\n"),
        View::System { .. } => {
            text.push_str("(allow file-read-metadata)\n");
            for path in SYSTEM {
                rule(&mut text, "allow file-read*", path.as_ref())?;
            }
        }
    }
    if confinement.private_tmp {
        rule(&mut text, "deny file-read* file-write*", "/private/tmp".as_ref())?;
    }
    // For one path the order of kinds decides, for nested ones the depth: the sort is stable.
    let mut rules: Vec<(&Path, &str)> = Vec::new();
    rules.extend(confinement.readable.iter().map(|path| (path.as_path(), READABLE)));
    rules.extend(confinement.writable.iter().map(|root| (root.path.as_path(), "allow file-read* file-write*")));
    rules.extend(confinement.hidden.iter().map(|path| (path.as_path(), "deny file-read* file-write*")));
    rules.sort_by_key(|(path, _)| path.components().count());
    for (path, kind) in rules {
        if kind == READABLE {
            rule(&mut text, "deny file-write*", path)?;
        }
        rule(&mut text, kind, path)?;
    }
    match confinement.network {
        Network::Open => text.push_str("(allow network*)\n(allow mach-lookup)\n"),
        Network::Off => {}
        Network::Proxied => return Err(failed("let only the proxy through", "macOS has no network namespaces")),
    }
    Ok(text)
}

const READABLE: &str = "allow file-read*";

fn rule(text: &mut String, kind: &str, path: &Path) -> io::Result<()> {
    let Some(plain) = path.to_str() else {
        return Err(failed(format_args!("name {} in a profile", path.display()), "the path is not UTF-8"));
    };
    let quoted = plain.replace('\\', "\\\\").replace('"', "\\\"");
    writeln!(text, "({kind} (subpath \"{quoted}\"))").map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::super::{Mechanism, WritableRoot};
    use super::*;

    fn confinement() -> Confinement {
        let mut confinement = Confinement::new(Mechanism::Seatbelt);
        confinement.writable = vec![WritableRoot::direct("/Users/u/p"), WritableRoot::direct("/Users/u/\"q\"\\")];
        confinement.readable = vec!["/Users/u/p/.git".into()];
        confinement.hidden = vec!["/Users/u/.ssh".into(), "/Users".into()];
        confinement
    }

    #[test]
    fn deeper_rules_come_later_and_names_cannot_end_a_string() {
        let text = profile(&confinement()).unwrap();
        let place = |rule: &str| text.find(rule).unwrap_or_else(|| panic!("{rule} is not in\n{text}"));
        let order = [
            "(deny default)",
            "(allow file-read*)\n",
            "(deny file-read* file-write* (subpath \"/Users\"))",
            "(allow file-read* file-write* (subpath \"/Users/u/p\"))",
            "(deny file-write* (subpath \"/Users/u/p/.git\"))",
        ];
        assert!(order.map(place).is_sorted(), "{text}");
        place("(subpath \"/Users/u/\\\"q\\\"\\\\\")");
        assert!(!text.contains("network"), "{text}");
    }

    #[test]
    fn what_a_profile_cannot_do_is_refused() {
        let mut proxied = confinement();
        proxied.network = Network::Proxied;
        assert!(profile(&proxied).unwrap_err().to_string().contains("proxy"));
        let mut apart = confinement();
        apart.writable[0].backing = Backing::Source("/elsewhere".into());
        assert!(profile(&apart).unwrap_err().to_string().contains("keep changes apart of /Users/u/p"));
    }
}
