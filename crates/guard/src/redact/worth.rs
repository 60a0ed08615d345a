//! Whether a value is worth hiding: a secret, or one of the many things that stand where secrets could stand.
//!
//! Code and documents are full of `token = parse()`, `password: String` and `API_KEY=your-key-here`; hiding those makes
//! them unreadable and protects nobody. The question is never asked of a value alone but together with where it stands,
//! because `hunter2` in quotes is a password and without them may be a variable.

/// Only so much of a value is looked at, in bytes: more says nothing new.
const SAMPLE: usize = 128;

/// What the name of a value promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// A password: may be short, may be a word.
    Password,
    /// A token, a key, a secret: made by a machine.
    Machine,
    /// Perhaps a secret: only what looks random.
    Perhaps,
}

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Between quotes.
    Quoted,
    /// Behind `NAME=`.
    Environment,
    /// At the end of a line of the form `name: value` or `name=value`.
    Config,
    /// Anywhere else: it may be code.
    Bare,
}

/// Shorter numbers are counts, dates and sizes.
const LONGEST_NUMBER: usize = 12;

/// Words that stand for a value, or say what kind of value belongs there.
const FILLER: &[&str] = &[
    "a",
    "abc",
    "abcd",
    "abcdef",
    "access",
    "actual",
    "add",
    "admin",
    "an",
    "any",
    "api",
    "apikey",
    "auth",
    "bar",
    "bearer",
    "baz",
    "boolean",
    "change",
    "changeit",
    "changeme",
    "client",
    "config",
    "db",
    "default",
    "disabled",
    "dummy",
    "edit",
    "empty",
    "enabled",
    "enter",
    "env",
    "environment",
    "example",
    "examplekey",
    "fake",
    "false",
    "foo",
    "from",
    "guest",
    "here",
    "hidden",
    "in",
    "insert",
    "is",
    "it",
    "key",
    "letmein",
    "localhost",
    "masked",
    "me",
    "mock",
    "my",
    "mypassword",
    "mysecret",
    "mytoken",
    "name",
    "nil",
    "no",
    "none",
    "not",
    "null",
    "number",
    "object",
    "optional",
    "or",
    "paste",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "placeholder",
    "private",
    "put",
    "pwd",
    "qwerty",
    "real",
    "redacted",
    "removed",
    "replace",
    "replaceme",
    "required",
    "root",
    "sample",
    "sample",
    "secret",
    "secretkey",
    "secrets",
    "see",
    "set",
    "some",
    "str",
    "string",
    "test",
    "tbd",
    "testing",
    "text",
    "the",
    "this",
    "to",
    "todo",
    "token",
    "true",
    "type",
    "undefined",
    "unknown",
    "unset",
    "use",
    "user",
    "username",
    "value",
    "with",
    "xxx",
    "yes",
    "you",
    "your",
    "yourkey",
    "yourpassword",
    "yoursecret",
    "yourtoken",
];

/// Beginnings after which only a stand-in follows.
const STAND_INS: &[&str] = &[
    "your-",
    "your_",
    "your ",
    "<",
    "${",
    "$(",
    "{{",
    "{%",
    "%(",
    "[redacted",
    "insert-",
    "insert_",
    "replace-",
    "replace_",
    "-----",
];

/// Whether `value` stands where a secret belongs and is none: filler words, dots and stars, a reference to a variable.
pub(super) fn is_placeholder(value: &str) -> bool {
    let value = sample(value);
    if ["...", "…", "***", "••"].iter().any(|filler| value.contains(filler)) {
        return true;
    }
    let value = value.trim_matches(|c: char| "\"'`.,;:!?".contains(c)).to_ascii_lowercase();
    if STAND_INS.iter().any(|start| value.starts_with(start)) || value.contains("xxxx") || is_variable(&value) {
        return true;
    }
    is_monotonous(&value) || is_counting(&value) || words(&value).all(is_filler)
}

/// Whether `value` stands in ordinary text so often that it must not be masked everywhere: a word, a small number.
pub(super) fn is_trivial(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let digits = count(value).1;
    is_monotonous(value)
        || (is_number(value) && digits < LONGEST_NUMBER)
        || is_counting(&lower)
        || is_variable(&lower)
        || is_filler(&lower)
        || ["<", "${", "$(", "{{"].iter().any(|start| lower.starts_with(start))
}

/// `0000`, `xx-xx-xx`, `----`.
fn is_monotonous(value: &str) -> bool {
    let mut characters = value.chars().filter(|c| c.is_alphanumeric());
    let first = characters.next();
    characters.all(|c| Some(c) == first)
}

fn is_filler(word: &str) -> bool {
    let name = without_number(word);
    name.is_empty() || FILLER.contains(&name)
}

/// `$NAME`, `%NAME%`, `{name}`: something that is replaced by the secret later.
fn is_variable(value: &str) -> bool {
    let between = |open, close| value.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    let name = value.strip_prefix('$').or_else(|| between('%', '%')).or_else(|| between('{', '}'));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.')
    })
}

/// `123456789`, `abcdefgh`, `0123456789abcdef`.
fn is_counting(value: &str) -> bool {
    [
        "01234567890123456789",
        "0123456789abcdefghijklmnopqrstuvwxyz",
        "abcdefghijklmnopqrstuvwxyz0123456789",
        "1234567890abcdef",
        "qwertyuiop",
        "9876543210",
    ]
    .iter()
    .any(|row| row.contains(value))
}

/// `load("name")`, `Secret::new(x)`: code that fetches the secret.
pub(super) fn is_call(value: &str) -> bool {
    value.ends_with(')') && sample(value).contains('(')
}

/// Digits with what stands between digits: numbers, dates, versions, addresses.
pub(super) fn is_number(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_digit() || b"+-.,:/_ eT".contains(&byte))
}

/// Whether `value` looks like something a machine drew: letters and digits, and hardly a character twice.
pub(super) fn is_random(value: &str) -> bool {
    let value = sample(value);
    let (letters, digits) = count(value);
    letters > 0 && digits > 0 && bits(value) >= 3.0 && !is_placeholder(value) && !is_identifier(value)
}

/// Whether `value`, found behind a name that makes this promise, is a secret.
pub(super) fn is_secret(value: &str, promise: Promise, place: Place) -> bool {
    let value = sample(value);
    let (letters, digits) = count(value);
    let length = value.chars().count();
    let least = match promise {
        Promise::Password => 6,
        Promise::Machine => 8,
        Promise::Perhaps => 20,
    };
    if length < least || is_placeholder(value) || is_path(value) || value.contains("://") || is_digest(value) {
        return false;
    }
    if value.contains(char::is_whitespace) && (place != Place::Environment || digits == 0) {
        return false;
    }
    if promise == Promise::Perhaps {
        return is_random(value) && (matches!(place, Place::Quoted | Place::Environment) || !is_code(value));
    }
    let password = promise == Promise::Password;
    if is_number(value) {
        return password && matches!(place, Place::Quoted | Place::Environment);
    }
    if digits == 0 {
        let marks = value.chars().any(|c| c.is_ascii_punctuation() && !"_-.:/,;".contains(c));
        return match place {
            Place::Environment => length >= 8 && (password || marks || is_restless(value)),
            Place::Quoted => (password && marks) || is_restless(value),
            Place::Config | Place::Bare => is_restless(value),
        };
    }
    if letters == 0 {
        return password && place != Place::Bare;
    }
    match place {
        Place::Environment => true,
        Place::Quoted | Place::Config => password || !is_identifier(value),
        Place::Bare => length >= 8 && bits(value) >= 2.5 && !is_identifier(value) && !is_code(value),
    }
}

/// Words with at most a small number behind each: `next_token2`, `self.keys.v1`, `utf-8`.
fn is_identifier(value: &str) -> bool {
    words(value).all(|word| {
        let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
        word.len() - name.len() <= 2 && !name.bytes().any(|byte| byte.is_ascii_digit())
    }) && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte))
        && !is_restless(value)
}

/// Names that are too odd for [`is_identifier`] and still are for people: constants, and what consists of words mostly.
fn is_code(value: &str) -> bool {
    let constant = value.contains('_')
        && value.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let words = value.split(|c: char| !c.is_alphabetic()).filter(|word| word.len() >= 3 && !is_restless(word));
    let mostly_words =
        value.contains(['_', '-', '.', '/', ':']) && words.map(str::len).sum::<usize>() * 5 >= value.len() * 3;
    constant || value.contains("::") || mostly_words
}

/// Upper and lower case in no order that words have.
fn is_restless(value: &str) -> bool {
    let case = |byte: &u8| (byte.is_ascii_uppercase(), byte.is_ascii_lowercase());
    let changes = value.as_bytes().windows(2).filter(|pair| case(&pair[0]) != case(&pair[1])).count();
    value.len() >= 16 && !value.contains(['_', '-', '.', ' ', ':']) && changes * 5 >= value.len() * 2
}

fn is_path(value: &str) -> bool {
    let relative = ["./", "../", "~/"].iter().any(|start| value.starts_with(start));
    relative || (value.starts_with('/') && value.split('/').all(is_identifier))
}

/// `sha256-…`, `sha512:…`: a checksum, which says its algorithm.
fn is_digest(value: &str) -> bool {
    let lower = value.get(..8).unwrap_or(value).to_ascii_lowercase();
    ["sha1-", "sha1:", "sha256", "sha384", "sha512", "md5-", "md5:"].iter().any(|start| lower.starts_with(start))
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn without_number(word: &str) -> &str {
    let name = word.trim_end_matches(|c: char| c.is_ascii_digit());
    if word.len() - name.len() <= 4 { name } else { word }
}

fn count(value: &str) -> (usize, usize) {
    let letters = value.chars().filter(|c| c.is_alphabetic()).count();
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    (letters, digits)
}

/// Shannon's entropy, in bits a byte.
#[expect(clippy::cast_precision_loss, reason = "at most SAMPLE bytes")]
fn bits(value: &str) -> f64 {
    let mut counts = [0_usize; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let all = value.len() as f64;
    counts.iter().filter(|count| **count > 0).map(|count| *count as f64 / all).map(|share| -share * share.log2()).sum()
}

fn sample(value: &str) -> &str {
    &value[..value.floor_char_boundary(SAMPLE)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_are_no_secrets() {
        for value in [
            "your-api-key",
            "your_token_here_123",
            "xxxxxxxx",
            "XXXX-1234",
            "<token>",
            "${TOKEN}",
            "$TOKEN",
            "%TOKEN%",
            "********",
            "changeme",
            "example",
            "null",
            "test-key",
            "sk-...",
            "my-secret-token",
            "1234567890",
            "0123456789abcdef",
            "password123",
            "{{ token }}",
            "------",
            "0000000000",
            "",
            "my_key_2024",
        ] {
            assert!(is_placeholder(value), "{value}");
        }
        for value in ["abcd1234EXAMPLEabcd", "hunter2", "EXAMPLE00000000000", "correct-horse-battery", "$2b$12$EXAMPLE"]
        {
            assert!(!is_placeholder(value), "{value}");
        }
    }

    #[test]
    fn the_place_decides_about_what_could_be_code() {
        assert!(is_secret("hunter2", Promise::Password, Place::Quoted));
        assert!(is_secret("hunter2", Promise::Password, Place::Config));
        assert!(!is_secret("hunter2", Promise::Password, Place::Bare));
        assert!(!is_secret("next_token2", Promise::Machine, Place::Quoted));
        assert!(is_secret("correcthorse", Promise::Password, Place::Environment));
        assert!(!is_secret("correcthorse", Promise::Password, Place::Quoted));
        assert!(!is_secret("expected", Promise::Machine, Place::Config));
        assert!(is_secret("3f9a8b7c6d5e4f3a", Promise::Machine, Place::Bare));
    }

    #[test]
    fn random_is_neither_a_word_nor_a_number() {
        assert!(is_random("a8F3kE0examPLE9x"));
        for value in ["getElementById", "utf8", "2024-01-02T03:04:05", "11111111111a", "SomeLongIdentifierName2"] {
            assert!(!is_random(value), "{value}");
        }
    }
}
