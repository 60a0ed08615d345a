//! The policy as it stands in `config.yaml` under `security`.
//!
//! A restriction that cannot be read closes everything ([`UrlPolicy::closed`]): a list with a typing error in it must not
//! become a list of nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::pattern::HostPattern;
use super::{BlockRule, Rules, UrlPolicy};

/// The keys of `security` that say what may be fetched; other keys there are ignored. A key without a value is not set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct UrlSettings {
    /// Whether all private addresses may be reached. Metadata services never are.
    #[serde(deserialize_with = "or_default")]
    pub allow_private_urls: bool,
    /// Hosts that may be reached although they are private: `[*.]host[:port]`.
    #[serde(deserialize_with = "or_default")]
    pub url_allowlist: Vec<String>,
    /// Sites that may not be reached.
    #[serde(deserialize_with = "or_default")]
    pub website_blocklist: BlocklistSettings,
}

/// `security.website_blocklist`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct BlocklistSettings {
    /// Whether the two lists hold.
    #[serde(deserialize_with = "or_default")]
    pub enabled: bool,
    /// `host` means it and all names below it, `*.host` only those below it; `#` begins a comment.
    #[serde(deserialize_with = "or_default")]
    pub domains: Vec<String>,
    /// Files with one such rule a line.
    #[serde(deserialize_with = "or_default")]
    pub shared_files: Vec<PathBuf>,
}

/// A setting that cannot be understood: where, what, why.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct UnreadablePolicy(String);

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(value: D) -> Result<T, D::Error> {
    Option::deserialize(value).map(Option::unwrap_or_default)
}

impl UrlPolicy {
    /// Makes the policy of some settings. `read` gets the text of a shared file, which is the only I/O there may be.
    pub fn new(
        settings: &UrlSettings,
        mut read: impl FnMut(&Path) -> std::io::Result<String>,
    ) -> Result<Self, UnreadablePolicy> {
        let allowed = settings.url_allowlist.iter().map(|written| {
            let parsed = HostPattern::parse(written.trim());
            parsed.map_err(|why| UnreadablePolicy(format!("`{written}` in security.url_allowlist: {why}")))
        });
        let mut rules = Rules {
            allow_private: settings.allow_private_urls,
            allowed: allowed.collect::<Result<_, _>>()?,
            ..Rules::default()
        };
        let list = &settings.website_blocklist;
        if list.enabled {
            for written in &list.domains {
                rules.blocked.extend(block_rule(written, "security.website_blocklist.domains")?);
            }
            for file in &list.shared_files {
                let source = file.display().to_string();
                let text = read(file).map_err(|error| {
                    UnreadablePolicy(format!("{source}, named in security.website_blocklist.shared_files: {error}"))
                })?;
                for line in text.trim_start_matches('\u{feff}').lines() {
                    rules.blocked.extend(block_rule(line, &source)?);
                }
            }
        }
        Ok(Self(Arc::new(rules)))
    }

    /// Reads the section `security` of the configuration; whatever cannot be read closes the policy.
    pub fn from_section(section: Option<&Value>, read: impl FnMut(&Path) -> std::io::Result<String>) -> Self {
        // Serde also fills a struct from a list, by position; here that would read a mistake as a policy.
        let is_map = |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_null());
        let settings = match section {
            None | Some(Value::Null) => Ok(UrlSettings::default()),
            Some(section) if !is_map(Some(section)) => Err("security has no keys".to_owned()),
            Some(section) if !is_map(section.get("website_blocklist")) => {
                Err("security.website_blocklist has no keys".to_owned())
            }
            Some(section) => UrlSettings::deserialize(section).map_err(|error| format!("security: {error}")),
        };
        settings
            .and_then(|settings| Self::new(&settings, read).map_err(|error| error.to_string()))
            .unwrap_or_else(Self::closed)
    }
}

fn block_rule(line: &str, source: &str) -> Result<Option<BlockRule>, UnreadablePolicy> {
    let written = line.split('#').next().unwrap_or_default().trim();
    if written.is_empty() {
        return Ok(None);
    }
    let pattern =
        HostPattern::parse(written).map_err(|why| UnreadablePolicy(format!("`{written}` in {source}: {why}")))?;
    Ok(Some(BlockRule { pattern: pattern.without_www(), written: written.to_owned(), source: source.to_owned() }))
}
