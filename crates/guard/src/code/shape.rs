//! What the order of the words of a program tells without reading it: loops without an end, functions that call
//! themselves, and what functions call their arguments.

use std::collections::HashSet;

use super::Language;
use super::lexer::Token;

fn name(tokens: &[Token], at: usize) -> &str {
    match tokens.get(at) {
        Some(Token::Name(name)) => name.as_str(),
        Some(Token::Number(number)) => number.as_str(),
        Some(Token::Sign(sign)) => sign,
        _ => "",
    }
}

/// Whether a loop in it has no end.
pub(super) fn never_ends(tokens: &[Token]) -> bool {
    let name = |at: usize| name(tokens, at);
    (0..tokens.len()).any(|at| match name(at) {
        "while" => {
            let next = if name(at + 1) == "(" { name(at + 2) } else { name(at + 1) };
            matches!(next, "True" | "true" | "1" | "fork" | "os" | "pcntl_fork")
        }
        "until" => matches!(name(at + 1), "false" | "0"),
        "loop" | "forever" => matches!(name(at + 1), "{" | "do" | ""),
        "for" => {
            let next = if name(at + 1) == "(" { at + 2 } else { at + 1 };
            name(next) == ";" && name(next + 1) == ";" || name(at + 1) == "{"
        }
        "iter" => name(at + 1) == "(" && name(at + 2) == "int",
        "count" | "cycle" | "repeat" => name(at + 1) == "(",
        "setInterval" => true,
        _ => false,
    })
}

/// Whether a function that starts processes calls itself, or a program starts itself.
pub(super) fn forks_again(language: Language, source: &str, tokens: &[Token]) -> bool {
    if tokens.iter().any(|token| matches!(token, Token::Name(name) if name == "__filename")) {
        return true;
    }
    if language == Language::Python {
        return python_functions(source)
            .any(|(name, body)| body.contains("fork") && body.contains(&format!("{name}(")));
    }
    (0..tokens.len()).any(|at| {
        // `function f() {…}`, `sub f {…}`, `f = () => {…}`
        let defined = match name(tokens, at) {
            "function" | "sub" | "def" => name(tokens, at + 1),
            "=" if at > 0 && matches!(name(tokens, at + 1), "(" | "function" | "async") => name(tokens, at - 1),
            _ => return false,
        };
        let begin = (at..tokens.len().min(at + 16)).find(|at| name(tokens, *at) == "{");
        let Some(begin) = begin.filter(|_| !defined.is_empty()) else { return false };
        let mut depth = 0_usize;
        let body = (begin..tokens.len()).take_while(|at| {
            match name(tokens, *at) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth > 0
        });
        let (mut forks, mut again) = (false, false);
        for at in body {
            forks |= name(tokens, at).contains("fork");
            again |= name(tokens, at) == defined;
        }
        forks && again
    })
}

/// The functions of a Python program by their indentation: each with its name and its body.
fn python_functions(source: &str) -> impl Iterator<Item = (&str, &str)> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut at = 0;
    source.split_inclusive('\n').filter_map(move |line| {
        let begin = at;
        at += line.len();
        let (name, rest) = line.trim_start().strip_prefix("def ")?.split_once('(')?;
        let body = source[at..].split_inclusive('\n');
        let length: usize =
            body.take_while(|next| next.trim().is_empty() || depth(next) > depth(line)).map(str::len).sum();
        let start = begin + (line.len() - rest.len());
        Some((name.trim(), &source[start..at + length]))
    })
}

/// What functions call their arguments: `def f(a, b)`, `function (a)`, `a => …`, `(a, b) => …`, `lambda a: …`.
pub(super) fn parameters(tokens: &[Token]) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut note = |at: usize| {
        if let Some(Token::Name(name)) = tokens.get(at) {
            found.insert(name.clone());
        }
    };
    for at in 0..tokens.len() {
        match name(tokens, at) {
            "def" | "function" | "fn" => {
                let Some(open) = (at..tokens.len().min(at + 3)).find(|at| name(tokens, *at) == "(") else { continue };
                let names = (open + 1..tokens.len()).take(64).take_while(|at| name(tokens, *at) != ")");
                // What stands behind `=` is a value.
                names.filter(|at| name(tokens, at - 1) != "=").for_each(&mut note);
            }
            "lambda" => {
                let names = (at + 1..tokens.len()).take(32).take_while(|at| name(tokens, *at) != ":");
                names.filter(|at| name(tokens, at - 1) != "=").for_each(&mut note);
            }
            "=>" if at > 0 && name(tokens, at - 1) == ")" => {
                let names = (0..at - 1).rev().take(64).take_while(|at| name(tokens, *at) != "(");
                names.filter(|at| *at == 0 || name(tokens, at - 1) != "=").for_each(&mut note);
            }
            // In a hash `a => …` is a key.
            "=>" if at > 1 && matches!(name(tokens, at - 2), "(" | "=" | "return" | "async") => note(at - 1),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::lexer::tokens;
    use super::*;

    #[test]
    fn a_function_that_forks_and_calls_itself() {
        for (language, source, again) in [
            (Language::Python, "import os\ndef f():\n  os.fork(); f()\nf()", true),
            (Language::Python, "import os\ndef f(): os.fork(); f()\nf()", true),
            (Language::Python, "import os\ndef f():\n  os.fork()\nf()\nf()", false),
            (Language::JavaScript, "const f=()=>{require('child_process').fork('x');f()};f()", true),
            (Language::JavaScript, "const f=()=>{require('child_process').fork('x')};f();f()", false),
            (Language::JavaScript, "require('child_process').fork(__filename)", true),
            (Language::Perl, "sub f { fork; f() } f()", true),
            (Language::Perl, "sub f { fork } f(); f()", false),
        ] {
            assert_eq!(forks_again(language, source, &tokens(language, source)), again, "{source}");
        }
    }

    #[test]
    fn arguments_have_names() {
        for (language, source, names) in [
            (Language::Python, "def f(a, b=c): pass", vec!["a", "b"]),
            (Language::Python, "x = lambda a: a", vec!["a"]),
            (Language::JavaScript, "f(a => a); g((b, c) => b)", vec!["a", "b", "c"]),
            (Language::JavaScript, "function f(a) { x = 1 }", vec!["a"]),
        ] {
            let mut found: Vec<String> = parameters(&tokens(language, source)).into_iter().collect();
            found.sort();
            assert_eq!(found, names, "{source}");
        }
    }
}
