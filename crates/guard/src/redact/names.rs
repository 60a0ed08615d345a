//! Whether a name says that its value is a secret.
//!
//! Names are compared word by word, never as text: `tokenizer`, `max_tokens`, `secretary` and `keyboard` hold words that
//! are not ours, and in `password_field_id` the last word says that it is an id. So the last word decides, after those
//! that only say which one it is (`_PROD`, `_2`, `Value`).

use super::worth::Promise;

/// Names are judged by their end, in bytes.
const LONGEST: usize = 80;

/// Last words that do not change what a name is about.
const WHICH: &[&str] = &[
    "b64",
    "backup",
    "base64",
    "current",
    "dev",
    "development",
    "live",
    "local",
    "main",
    "new",
    "old",
    "plain",
    "plaintext",
    "primary",
    "prod",
    "production",
    "raw",
    "secondary",
    "stage",
    "staging",
    "test",
    "value",
];
const PASSWORDS: &[&str] = &["passcode", "passphrase", "passwd", "password"];
/// Passwords only as a part of a name: alone they are a directory and a verb.
const SHORT_PASSWORDS: &[&str] = &["pass", "pw", "pwd"];
const TOKENS: &[&str] = &["accesstoken", "apitoken", "authtoken", "bottoken", "refreshtoken", "token"];
/// Tokens of parsers, models, pages and loops.
const OTHER_TOKENS: &[&str] = &[
    "bos",
    "cancel",
    "cancellation",
    "cls",
    "continuation",
    "cur",
    "current",
    "cursor",
    "each",
    "end",
    "eos",
    "eot",
    "expected",
    "first",
    "image",
    "last",
    "lookahead",
    "mask",
    "max",
    "min",
    "next",
    "page",
    "pad",
    "peek",
    "per",
    "prev",
    "previous",
    "resume",
    "sep",
    "special",
    "start",
    "stop",
    "sync",
    "unexpected",
    "unk",
];
const KEYS: &[&str] = &["accesskey", "apikey", "appkey", "authkey", "masterkey", "privatekey", "secretkey"];
/// What makes a key a secret one.
const SECRET_KEYS: &[&str] = &[
    "access",
    "account",
    "admin",
    "api",
    "app",
    "auth",
    "client",
    "cookie",
    "crypto",
    "decryption",
    "deploy",
    "encryption",
    "hmac",
    "jwt",
    "license",
    "master",
    "private",
    "root",
    "secret",
    "server",
    "service",
    "shared",
    "signing",
    "ssh",
    "storage",
    "subscription",
    "webhook",
];

/// What `name` promises about its value: how sure that is, and the label of the mask. `None` if nothing.
pub(super) fn promise(name: &str) -> Option<(Promise, &'static str)> {
    let name = &name[name.len().saturating_sub(LONGEST)..];
    let upper = !name.bytes().any(|byte| byte.is_ascii_lowercase());
    let mut words = words(name);
    while words.len() > 1 && words.last().is_some_and(|word| is_which(word)) {
        words.pop();
    }
    let (last, before) = words.split_last()?;
    let (last, previous) = (last.as_str(), before.last().map(String::as_str));
    let one_of = |list: &[&str]| list.contains(&last);
    let ends_in = |list: &[&str]| list.iter().any(|word| last.ends_with(word));

    if ends_in(PASSWORDS) || (previous.is_some() && one_of(SHORT_PASSWORDS)) || last == "pgpass" {
        Some((Promise::Password, "password"))
    } else if last.ends_with("secret") {
        Some((Promise::Machine, "secret"))
    } else if one_of(TOKENS) {
        let other = previous.is_some_and(|word| OTHER_TOKENS.contains(&word));
        (!other).then_some((Promise::Machine, "token"))
    } else if one_of(KEYS) || (last == "key" && previous.is_some_and(|word| SECRET_KEYS.contains(&word))) {
        Some((Promise::Machine, "key"))
    } else if last == "key" && upper && previous.is_some_and(|word| word != "public") {
        Some((Promise::Perhaps, "key"))
    } else if ends_in(&["credential", "credentials"]) || one_of(&["auth", "creds"]) {
        Some((Promise::Perhaps, "credential"))
    } else {
        None
    }
}

fn is_which(word: &str) -> bool {
    WHICH.contains(&word) || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The words of an ASCII name in lower case: `DB_PASSWORD`, `dbPassword`, `db-password` and `db.password` are alike.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let small = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
        let hump = byte.is_ascii_uppercase()
            && (before.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
                || (before.is_some_and(u8::is_ascii_uppercase) && small(bytes.get(at + 1))));
        if hump || !byte.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| byte.is_ascii_alphanumeric()) {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_every_way_to_write_names() {
        for name in ["aws_secret_key", "AWS_SECRET_KEY", "awsSecretKey", "AWSSecretKey", "aws-secret.key"] {
            assert_eq!(words(name), ["aws", "secret", "key"], "{name}");
        }
    }

    #[test]
    fn names_that_say_secret() {
        for name in [
            "password",
            "DB_PASSWORD",
            "PGPASSWORD",
            "rootPassword",
            "MYSQL_PWD",
            "SMTP_PASS",
            "client_secret",
            "token",
            "clientSecret",
            "_authToken",
            "GITHUB_TOKEN",
            "x-api-key",
            "apiKey",
            "API_KEY_2",
            "AWS_SECRET_ACCESS_KEY",
            "private_key",
            "OPENAI_API_KEY_PROD",
            "SECRET",
            "secret_key_base64",
            "AccountKey",
            "GROQ_KEY",
            "auth",
            "spring.datasource.password",
            "credentials",
        ] {
            assert!(promise(name).is_some(), "{name}");
        }
    }

    #[test]
    fn names_that_only_sound_like_it() {
        for name in [
            "tokenizer",
            "max_tokens",
            "secretary",
            "keyboard",
            "password_field_id",
            "token_count",
            "secrets",
            "monkey",
            "PWD",
            "OLDPWD",
            "public_key",
            "primary_key",
            "sort_key",
            "key",
            "pass",
            "next_token",
            "eos_token",
            "author",
            "token_type",
            "password_hash_algorithm",
            "secret_name",
            "api_key_path",
            "KEY",
            "compass",
            "authority",
            "",
            "PUBLIC_KEY",
        ] {
            assert!(promise(name).is_none(), "{name}");
        }
    }
}
