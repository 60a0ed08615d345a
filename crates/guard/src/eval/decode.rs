//! Filters whose result can be computed when their input is known: what a decoder would print.

use super::call::{Call, blurred};
use crate::escapes;
use crate::programs::options::gnu;
use crate::text;

/// The output of a filter for a known input; `None` if it cannot be followed.
type Filter = fn(&[String], &str) -> Option<String>;

/// The filter of a program, if it is followed.
pub(crate) fn decoder(name: &str) -> Option<Filter> {
    Some(match name {
        "base64" | "gbase64" | "openssl" => base64,
        "base32" => base32,
        "basenc" => basenc,
        "xxd" => xxd,
        "od" => od,
        "rev" => rev,
        "tac" => tac,
        "tr" | "gtr" => tr,
        "cut" | "gcut" => cut,
        "head" | "ghead" => head,
        "tail" | "gtail" => tail,
        "sort" | "gsort" | "uniq" | "fold" | "expand" | "unexpand" | "fmt" | "column" | "nl" => keep,
        "paste" => paste,
        "grep" | "egrep" | "fgrep" | "ggrep" => grep,
        "sed" | "gsed" => sed,
        "awk" | "gawk" | "mawk" | "nawk" => awk,
        "wc" | "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" | "cksum" => plain,
        "strings" | "cat" | "pv" | "less" | "more" | "buffer" | "mbuffer" | "iconv" | "dos2unix" | "ts" => keep,
        _ => return None,
    })
}

/// What a filter prints for `input`, which may have holes.
pub(crate) fn filtered(call: &Call<'_, '_>, input: &str) -> String {
    if matches!(call.name.as_str(), "wc" | "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" | "cksum") {
        return text::PLAIN.into();
    }
    // What stands before `=` in a list of variables are their names.
    if matches!(call.name.as_str(), "cut" | "gcut") && input.contains(text::SECRET) && is_names_only(call.arguments()) {
        return text::PLAIN.into();
    }
    let Some(filter) = decoder(&call.name) else { return blurred(input) };
    if text::is_unknown(input)
        && !matches!(
            call.name.as_str(),
            "cat" | "pv" | "less" | "more" | "head" | "tail" | "sort" | "uniq" | "grep" | "sed" | "ts"
        )
    {
        return blurred(input);
    }
    filter(call.arguments(), input).unwrap_or_else(|| blurred(input))
}

fn is_names_only(cut: &[String]) -> bool {
    let options = gnu("bcdf", "delimiter= fields= bytes= characters=").read(cut);
    options.value("d delimiter") == Some("=") && options.value("f fields") == Some("1") && !options.has("complement")
}

fn keep(_: &[String], input: &str) -> Option<String> {
    Some(input.to_owned())
}

fn plain(_: &[String], _: &str) -> Option<String> {
    Some(text::PLAIN.into())
}

/// What base64 spells.
pub(crate) fn unbase64(input: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let (mut value, mut bits) = (0_u32, 0_u32);
    for byte in input.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => continue,
            _ => return None,
        };
        value = (value << 6 | u32::from(digit)) & 0xff_ffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((value >> bits & 0xff) as u8);
        }
    }
    Some(text::clean(&String::from_utf8_lossy(&bytes)).into_owned())
}

fn base64(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("wiobI", "decode ignore-garbage wrap= input= output=").read(arguments);
    options.has("d D decode a base64").then(|| unbase64(input)).flatten()
}

fn base32(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("w", "decode ignore-garbage wrap=").read(arguments);
    if !options.has("d D decode") {
        return None;
    }
    let mut bytes = Vec::new();
    let (mut value, mut bits) = (0_u64, 0_u32);
    for byte in input.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let digit = match byte.to_ascii_uppercase() {
            byte @ b'A'..=b'Z' => byte - b'A',
            byte @ b'2'..=b'7' => byte - b'2' + 26,
            _ => return None,
        };
        value = (value << 5 | u64::from(digit)) & 0xffff_ffff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((value >> bits & 0xff) as u8);
        }
    }
    Some(text::clean(&String::from_utf8_lossy(&bytes)).into_owned())
}

fn basenc(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("w", "decode base64 base64url base32 base16").read(arguments);
    if !options.has("d D decode") {
        return None;
    }
    let decode = ["-d".to_owned()];
    if options.has("base16") {
        unhex(input)
    } else if options.has("base32") {
        base32(&decode, input)
    } else {
        unbase64(input)
    }
}

fn unhex(input: &str) -> Option<String> {
    let digits: Vec<u32> =
        input.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks(2)
        .filter_map(|pair| u8::try_from(pair[0] << 4 | pair.get(1).copied().unwrap_or(0)).ok())
        .collect();
    Some(text::clean(&String::from_utf8_lossy(&bytes)).into_owned())
}

fn xxd(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("cglnos", "revert plain postscript ps").read(arguments);
    if !options.has("r revert") {
        return None;
    }
    if options.has("p ps plain postscript") {
        return unhex(input);
    }
    // Lines with an offset in front and the text behind two blanks.
    let hex: String = input
        .lines()
        .map(|line| line.split_once(':').map_or(line, |(_, rest)| rest))
        .map(|line| line.trim_start().split("  ").next().unwrap_or_default())
        .collect();
    unhex(&hex)
}

/// `od -An -tx1`, `od -An -to1`: each byte as a number.
fn od(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("AjNStw", "address-radix= skip-bytes= read-bytes= format= width=").read(arguments);
    if options.value("A address-radix") != Some("n") {
        return None;
    }
    let kind = options.value("t format").unwrap_or("o2");
    let mut out = String::new();
    for byte in input.bytes() {
        match kind {
            "x1" => out.push_str(&format!(" {byte:02x}")),
            "o1" => out.push_str(&format!(" {byte:03o}")),
            "u1" | "d1" => out.push_str(&format!(" {byte:3}")),
            _ => return None,
        }
    }
    out.push('\n');
    Some(out)
}

fn rev(_: &[String], input: &str) -> Option<String> {
    Some(input.split('\n').map(|line| line.chars().rev().collect::<String>()).collect::<Vec<_>>().join("\n"))
}

fn tac(_: &[String], input: &str) -> Option<String> {
    Some(input.lines().rev().map(|line| format!("{line}\n")).collect())
}

/// The characters of a set of `tr`, in order.
fn set(spec: &str) -> Option<Vec<char>> {
    // A dash with a backslash is no range; `\\-` is one, from the backslash on.
    const DASH: char = '\u{F8FF}';
    let mut marked = String::with_capacity(spec.len());
    let mut letters = spec.chars();
    while let Some(c) = letters.next() {
        if c != '\\' {
            marked.push(c);
            continue;
        }
        match letters.next() {
            Some('-') => marked.push(DASH),
            other => marked.extend(std::iter::once(c).chain(other)),
        }
    }
    let spec = escapes::ansi_c(&marked);
    let mut chars: Vec<char> = Vec::new();
    let source: Vec<char> = spec.chars().collect();
    let mut at = 0;
    while at < source.len() {
        let rest: String = source[at..].iter().take(12).collect();
        let class = [("[:upper:]", 'A', 'Z'), ("[:lower:]", 'a', 'z'), ("[:digit:]", '0', '9')];
        if let Some((name, from, to)) = class.iter().find(|(name, ..)| rest.starts_with(name)) {
            chars.extend(*from..=*to);
            at += name.len();
        } else if rest.starts_with("[:space:]") {
            chars.extend([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
            at += 9;
        } else if rest.starts_with("[:blank:]") {
            chars.extend([' ', '\t']);
            at += 9;
        } else if rest.starts_with("[:alpha:]") {
            chars.extend(('A'..='Z').chain('a'..='z'));
            at += 9;
        } else if rest.starts_with("[:alnum:]") {
            chars.extend(('0'..='9').chain('A'..='Z').chain('a'..='z'));
            at += 9;
        } else if rest.starts_with("[:punct:]") {
            chars.extend((33..127_u8).map(char::from).filter(char::is_ascii_punctuation));
            at += 9;
        } else if rest.starts_with("[:") || rest.starts_with("[=") {
            return None;
        } else if source.get(at + 1) == Some(&'-') && at + 2 < source.len() {
            let (from, to) = (source[at], source[at + 2]);
            if u32::from(to).saturating_sub(u32::from(from)) > 1_000 {
                return None;
            }
            chars.extend(from..=to);
            at += 3;
        } else {
            chars.push(if source[at] == DASH { '-' } else { source[at] });
            at += 1;
        }
    }
    Some(chars)
}

fn tr(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("", "complement delete squeeze-repeats truncate-set1").read(arguments);
    let arguments: Vec<String> = options.operands.iter().map(|operand| text::unglob(operand)).collect();
    let first = set(arguments.first()?)?;
    let complement = options.has("c C complement");
    let inside = |c: char| first.contains(&c) != complement;
    if options.has("d delete") {
        return Some(input.chars().filter(|c| !inside(*c)).collect());
    }
    let squeeze = options.has("s squeeze-repeats");
    let second = match arguments.get(1) {
        Some(spec) => set(spec)?,
        None if squeeze => Vec::new(),
        None => return None,
    };
    let mut out = String::with_capacity(input.len());
    for c in input.chars() {
        let mapped = if second.is_empty() || !inside(c) {
            c
        } else if complement {
            *second.last()?
        } else {
            let at = first.iter().rposition(|other| *other == c)?;
            *second.get(at).or(second.last())?
        };
        let squeezed = squeeze && inside(c) && out.ends_with(mapped);
        if !squeezed {
            out.push(mapped);
        }
    }
    Some(out)
}

/// Whether a one-based position is in a list such as `1,3-5,7-`.
fn listed(list: &str, position: usize) -> Option<bool> {
    for part in list.split(',') {
        let (from, to) = match part.split_once('-') {
            Some((from, to)) => (
                if from.is_empty() { 1 } else { from.parse().ok()? },
                if to.is_empty() { usize::MAX } else { to.parse().ok()? },
            ),
            None => {
                let one: usize = part.parse().ok()?;
                (one, one)
            }
        };
        if (from..=to).contains(&position) {
            return Some(true);
        }
    }
    Some(false)
}

fn cut(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("bcdf", "bytes= characters= delimiter= fields= complement only-delimited output-delimiter=")
        .read(arguments);
    let delimiter = options.value("d delimiter").map_or('\t', |text| text.chars().next().unwrap_or('\t'));
    let complement = options.has("complement");
    let mut out = String::new();
    for line in input.lines() {
        if let Some(list) = options.value("b c bytes characters") {
            for (at, c) in line.chars().enumerate() {
                if listed(list, at + 1)? != complement {
                    out.push(c);
                }
            }
        } else {
            let list = options.value("f fields")?;
            if line.contains(delimiter) {
                let mut kept = Vec::new();
                for (at, field) in line.split(delimiter).enumerate() {
                    if listed(list, at + 1)? != complement {
                        kept.push(field);
                    }
                }
                let joint = options.value("output-delimiter").map_or_else(|| delimiter.to_string(), str::to_owned);
                out.push_str(&kept.join(&joint));
            } else {
                out.push_str(line);
            }
        }
        out.push('\n');
    }
    Some(out)
}

/// How many lines or bytes `head` and `tail` keep.
fn count(arguments: &[String]) -> Option<(bool, i64)> {
    let mut words = Vec::new();
    for word in arguments {
        match word.strip_prefix('-').filter(|rest| rest.parse::<u32>().is_ok()) {
            Some(number) => words.extend(["-n".to_owned(), number.to_owned()]),
            None => words.push(word.clone()),
        }
    }
    let options = gnu("nc", "lines= bytes= quiet silent verbose follow=? zero-terminated").read(&words);
    if let Some(bytes) = options.value("c bytes") {
        return Some((true, bytes.parse().ok()?));
    }
    Some((false, options.value("n lines").map_or(Some(10), |lines| lines.parse().ok())?))
}

fn head(arguments: &[String], input: &str) -> Option<String> {
    if !text::is_literal(input) {
        return Some(input.to_owned());
    }
    let (bytes, number) = count(arguments)?;
    let wanted = usize::try_from(number.max(0)).ok()?;
    if bytes {
        return Some(input.chars().take(wanted).collect());
    }
    if number < 0 {
        let lines = input.lines().count();
        return Some(
            input
                .lines()
                .take(lines.saturating_sub(usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX)))
                .map(|line| format!("{line}\n"))
                .collect(),
        );
    }
    Some(input.lines().take(wanted).map(|line| format!("{line}\n")).collect())
}

fn tail(arguments: &[String], input: &str) -> Option<String> {
    if !text::is_literal(input) {
        return Some(input.to_owned());
    }
    let plus =
        arguments.iter().find_map(|word| word.trim_start_matches("-n").trim_start_matches("-c").strip_prefix('+'));
    if let Some(from) = plus.and_then(|from| from.parse::<usize>().ok()) {
        if arguments.iter().any(|word| word.starts_with("-c")) {
            return Some(input.chars().skip(from.saturating_sub(1)).collect());
        }
        return Some(input.lines().skip(from.saturating_sub(1)).map(|line| format!("{line}\n")).collect());
    }
    let (bytes, number) = count(arguments)?;
    let wanted = usize::try_from(number.abs()).ok()?;
    let total = if bytes { input.chars().count() } else { input.lines().count() };
    let skip = total.saturating_sub(wanted);
    if bytes {
        return Some(input.chars().skip(skip).collect());
    }
    Some(input.lines().skip(skip).map(|line| format!("{line}\n")).collect())
}

fn paste(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("d", "delimiters= serial").read(arguments);
    let joint = options.value("d delimiters").map_or_else(|| "\t".into(), escapes::ansi_c);
    if !options.has("s serial") {
        return None;
    }
    let joint: String = joint.chars().take(1).filter(|c| *c != '\0').collect();
    Some(format!("{}\n", input.lines().collect::<Vec<_>>().join(&joint)))
}

/// Lines of a known text that a pattern keeps; patterns that cannot be read keep everything.
fn grep(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("ABCDdefm", "regexp= file= max-count= after-context= before-context= context= color=? include= exclude= only-matching null-data invert-match ignore-case fixed-strings extended-regexp perl-regexp word-regexp quiet count line-number").read(arguments);
    if options.has("q quiet") {
        return Some(String::new());
    }
    if options.has("c count") {
        return Some(text::PLAIN.into());
    }
    let pattern = options.value("e regexp").map(str::to_owned).or_else(|| options.operands.first().cloned())?;
    let pattern = text::unglob(&pattern);
    if text::is_unknown(input) {
        // A search for one certain word, perhaps as the name in `name=value`, does not show everything there is.
        let whole = pattern.starts_with('^') && pattern.ends_with('=');
        let word = pattern.trim_start_matches('^');
        let word = word.strip_suffix('=').unwrap_or(word);
        let certain = input.contains(text::SECRET)
            && !super::expand::finds_secrets(word)
            && (whole || super::expand::says_no_secret(word))
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !options.has("v invert-match A B C after-context before-context context z null-data f file");
        return Some(if certain { text::PLAIN.into() } else { input.to_owned() });
    }
    let pattern = if options.has("F fixed-strings") {
        regex::escape(&pattern)
    } else if options.has("E extended-regexp P perl-regexp") {
        pattern
    } else {
        basic(&pattern)
    };
    let pattern = if options.has("w word-regexp") { format!(r"\b(?:{pattern})\b") } else { pattern };
    let regex = regex::RegexBuilder::new(&pattern)
        .case_insensitive(options.has("i y ignore-case"))
        .size_limit(1 << 18)
        .build()
        .ok()?;
    let mut out = String::new();
    for line in input.lines() {
        if regex.is_match(line) == options.has("v invert-match") {
            continue;
        }
        if options.has("o only-matching") {
            for found in regex.find_iter(line) {
                out.push_str(found.as_str());
                out.push('\n');
            }
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    Some(out)
}

/// A basic regular expression in the syntax of the extended ones.
fn basic(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => out.push(c),
                Some(c) => {
                    out.push('\\');
                    out.push(c);
                }
                None => out.push_str("\\\\"),
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// Substitutions of `sed` on a known text: `s/a/b/flags`, several of them, `y/a/b/`.
fn sed(arguments: &[String], input: &str) -> Option<String> {
    let options = gnu("efl", "expression= file= quiet silent regexp-extended in-place=? separate unbuffered null-data")
        .read(arguments);
    if text::is_unknown(input) {
        return Some(input.to_owned());
    }
    let scripts: Vec<String> = if options.has("e expression") {
        options.values("e expression").map(str::to_owned).collect()
    } else {
        vec![options.operands.first()?.clone()]
    };
    let extended =
        arguments.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(['E', 'r']))
            || options.has("regexp-extended");
    if options.has("n quiet silent") {
        return None;
    }
    let mut text = input.to_owned();
    for script in scripts {
        let script = text::unglob(&script);
        let mut rest = script.trim();
        while !rest.is_empty() {
            let kind = rest.chars().next()?;
            if !matches!(kind, 's' | 'y') {
                return None;
            }
            let delimiter = rest[1..].chars().next()?;
            let body = &rest[1 + delimiter.len_utf8()..];
            let (pattern, body) = delimited(body, delimiter)?;
            let (with, body) = delimited(body, delimiter)?;
            let end = body.find([';', '\n']).unwrap_or(body.len());
            let flags = body[..end].trim();
            if flags.contains(['e', 'w']) {
                return None;
            }
            text = if kind == 'y' {
                let (from, to): (Vec<char>, Vec<char>) = (pattern.chars().collect(), with.chars().collect());
                text.chars()
                    .map(|c| from.iter().position(|other| *other == c).and_then(|at| to.get(at)).copied().unwrap_or(c))
                    .collect()
            } else {
                let pattern = if extended { pattern } else { basic(&pattern) };
                let regex = regex::RegexBuilder::new(&pattern)
                    .case_insensitive(flags.contains(['i', 'I']))
                    .size_limit(1 << 18)
                    .build()
                    .ok()?;
                let with = replacement(&with);
                text.split_inclusive('\n')
                    .map(|line| {
                        let (line, newline) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
                        let changed = if flags.contains('g') {
                            regex.replace_all(line, with.as_str())
                        } else {
                            regex.replace(line, with.as_str())
                        };
                        format!("{changed}{newline}")
                    })
                    .collect()
            };
            rest = body[end..].trim_start_matches([';', '\n', ' ']);
        }
    }
    Some(text)
}

/// Text up to an unescaped delimiter, and what follows it.
fn delimited(text: &str, delimiter: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == delimiter {
            return Some((out, &text[at + c.len_utf8()..]));
        }
        if c == '\\' {
            match chars.next() {
                Some((_, escaped)) if escaped == delimiter => out.push(escaped),
                Some((_, 'n')) => out.push('\n'),
                Some((_, escaped)) => {
                    out.push('\\');
                    out.push(escaped);
                }
                None => return None,
            }
        } else {
            out.push(c);
        }
    }
    None
}

/// The replacement of `sed` in the syntax of the regex crate.
fn replacement(with: &str) -> String {
    let mut out = String::new();
    let mut chars = with.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(digit) if digit.is_ascii_digit() => out.push_str(&format!("${{{digit}}}")),
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => {}
            },
            '&' => out.push_str("${0}"),
            '$' => out.push_str("$$"),
            other => out.push(other),
        }
    }
    out
}

/// `awk '{print $2 $1}'` and `awk 'BEGIN{print "…"}'` on known texts.
fn awk(arguments: &[String], input: &str) -> Option<String> {
    let options = crate::programs::options::leading("Fvf", "field-separator= assign= file=").read(arguments);
    let program = text::unglob(options.operands.first()?);
    let program = program.trim();
    let (at_begin, body) = match program.strip_prefix("BEGIN") {
        Some(rest) => (true, rest.trim()),
        None => (false, program),
    };
    let body = body.strip_prefix('{')?.strip_suffix('}')?.trim().trim_end_matches(';');
    if body.contains(['{', '}', ';', '(']) {
        return None;
    }
    let (list, newline) = match (body.strip_prefix("printf "), body.strip_prefix("print")) {
        (Some(list), _) => (list, ""),
        (None, Some(list)) => (list.trim(), "\n"),
        (None, None) => return None,
    };
    let separator = options.value("F field-separator").map(escapes::ansi_c);
    let lines: Vec<&str> = if at_begin { vec![""] } else { input.lines().collect() };
    let mut out = String::new();
    for line in lines {
        let fields: Vec<&str> = match &separator {
            Some(separator) if separator != " " => line.split(separator.as_str()).collect(),
            _ => line.split_whitespace().collect(),
        };
        if list.is_empty() {
            out.push_str(line);
        }
        let mut rest = list;
        while !rest.is_empty() {
            rest = rest.trim_start();
            if let Some(tail) = rest.strip_prefix('$') {
                let length = tail.bytes().take_while(u8::is_ascii_digit).count();
                if let Some(after) = tail.strip_prefix("NF") {
                    out.push_str(fields.last()?);
                    rest = after;
                    continue;
                }
                let number: usize = tail[..length].parse().ok()?;
                out.push_str(if number == 0 { line } else { fields.get(number - 1).copied().unwrap_or_default() });
                rest = &tail[length..];
            } else if let Some(tail) = rest.strip_prefix('"') {
                let (text, tail) = delimited(tail, '"')?;
                out.push_str(&escapes::ansi_c(&text));
                rest = tail;
            } else if let Some(tail) = rest.strip_prefix(',') {
                out.push(' ');
                rest = tail;
            } else if rest.is_empty() {
                break;
            } else {
                return None;
            }
        }
        out.push_str(newline);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, input: &str) -> Option<String> {
        let words = crate::shell::split(command);
        decoder(&words[0]).and_then(|filter| filter(&words[1..], input))
    }

    #[test]
    fn decoders_print_what_the_programs_print() {
        for (command, input, expected) in [
            ("base64 -d", "cm0gLXJmIC8=", "rm -rf /"),
            ("base32 --decode", "OJWQ====", "rm"),
            ("xxd -r -p", "726d202f", "rm /"),
            ("rev", "/ mr", "rm /"),
            ("tr a-y b-z", "ql", "rm"),
            ("tr -d x", "rxmx", "rm"),
            ("tr '[:upper:]' '[:lower:]'", "RM", "rm"),
            ("cut -c1-2", "rmx\n", "rm\n"),
            ("cut -d, -f2", "a,rm,b\n", "rm\n"),
            ("head -n1", "rm\nx\n", "rm\n"),
            ("tail -1", "x\nrm\n", "rm\n"),
            ("sed s/x/r/;s/y/m/", "xy", "rm"),
            ("sed -E 's/(m)(r)/\\2\\1/'", "mr", "rm"),
            ("grep -v x", "x\nrm\n", "rm\n"),
            ("awk '{print $2 $1}'", "m r\n", "rm\n"),
            ("paste -sd ''", "r\nm\n", "rm\n"),
        ] {
            assert_eq!(run(command, input).as_deref(), Some(expected), "{command}");
        }
    }
}
