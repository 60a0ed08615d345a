//! Which language a file is in, by its name and, where it has none that tells, by its first line.

use std::path::Path;

/// A language that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Json(Dialect),
    /// One JSON value a line.
    JsonLines,
    Yaml,
    Toml,
    Python,
    /// JavaScript and TypeScript with all that belongs to them.
    Script,
    Rust,
    Go,
    Java,
}

/// What a JSON file may hold beside JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Whoever reads it refuses comments.
    Strict,
    /// Nobody knows who reads it.
    Unknown,
    /// Comments and a comma after the last entry, as editors and compilers read their settings.
    Commented,
}

impl Language {
    /// The largest file that is checked. A recursive parser gets a stack that the deepest possible nesting fits in, so it
    /// cannot be given as much as the others.
    pub(super) fn most_bytes(self) -> usize {
        match self {
            Self::Json(_) | Self::JsonLines | Self::Yaml | Self::Toml => 4 << 20,
            Self::Go | Self::Java => 1 << 20,
            Self::Python | Self::Script | Self::Rust => 512 << 10,
        }
    }
}

/// The language of a file, or why none is checked.
pub(super) fn language(path: &Path, content: &[u8]) -> Result<Language, String> {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().to_ascii_lowercase());
    if let Some(known) = by_name(&name, folder.as_deref()) {
        return Ok(known);
    }
    match suffix_of(&name) {
        Some(suffix) => {
            by_suffix(suffix).ok_or_else(|| format!("the syntax of .{} files is not checked", short(suffix)))
        }
        None => by_first_line(content).ok_or_else(|| "the language is not known".into()),
    }
}

/// `.gitignore` has no suffix, `a.py` has one.
fn suffix_of(name: &str) -> Option<&str> {
    name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, suffix)| suffix)
}

fn short(suffix: &str) -> String {
    suffix.chars().filter(|letter| !letter.is_control()).take(20).collect()
}

fn by_name(name: &str, folder: Option<&str>) -> Option<Language> {
    use Dialect::{Commented, Strict};
    let commented = matches!(
        name,
        "api-extractor.json"
            | "biome.json"
            | "c_cpp_properties.json"
            | "deno.json"
            | "devcontainer.json"
            | "keybindings.json"
            | "language-configuration.json"
            | "launch.json"
            | "nx.json"
            | "rush.json"
            | "settings.json"
            | "tasks.json"
            | "tslint.json"
            | "turbo.json"
            | "typedoc.json"
            | ".babelrc"
            | ".babelrc.json"
            | ".eslintrc.json"
            | ".jscsrc"
            | ".jshintrc"
            | ".oxlintrc.json"
            | ".swcrc"
    ) || suffix_of(name) == Some("json")
        && (matches!(folder, Some(".vscode" | ".devcontainer"))
            || name.starts_with("tsconfig")
            || name.starts_with("jsconfig"));
    if commented {
        return Some(Language::Json(Commented));
    }
    match name {
        "package.json" | "package-lock.json" | "composer.json" | "composer.lock" | "flake.lock" | "pipfile.lock" => {
            Some(Language::Json(Strict))
        }
        "cargo.lock" | "poetry.lock" | "uv.lock" | "pdm.lock" | "pipfile" => Some(Language::Toml),
        _ => None,
    }
}

fn by_suffix(suffix: &str) -> Option<Language> {
    use Dialect::{Commented, Strict, Unknown};
    Some(match suffix {
        "json" => Language::Json(Unknown),
        "geojson" | "har" | "ipynb" | "jsonld" | "topojson" | "webmanifest" => Language::Json(Strict),
        "jsonc" | "code-workspace" | "code-snippets" | "sublime-project" | "sublime-settings" => {
            Language::Json(Commented)
        }
        "jsonl" | "ndjson" => Language::JsonLines,
        "yaml" | "yml" => Language::Yaml,
        "toml" => Language::Toml,
        "py" | "pyi" | "pyw" => Language::Python,
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => Language::Script,
        "rs" => Language::Rust,
        "go" => Language::Go,
        "java" => Language::Java,
        _ => return None,
    })
}

/// The program that a script without a suffix is for.
fn by_first_line(content: &[u8]) -> Option<Language> {
    let line = content.strip_prefix(b"#!")?;
    let line = &line[..line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len()).min(200)];
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let program = words.find(|word| *word != "env" && !word.starts_with('-') && !word.contains('='))?;
    match program {
        "node" => Some(Language::Script),
        // The second Python is another language.
        python if python == "python" || python.starts_with("python3") => Some(Language::Python),
        _ => None,
    }
}

/// Whether a text that does not parse seems to be made into one that does by somebody else (Helm, Jinja, Go, ERB). `places`
/// are the lines that the parser stumbled over: what has a meaning of its own in the language, or stands in its remarks,
/// counts only there.
pub(super) fn is_template(language: Language, path: &Path, text: &str, places: &[&str]) -> bool {
    let names = path.components().any(|part| part.as_os_str().to_string_lossy().contains("{{"));
    let has = |open: &str, close: &str| text.find(open).is_some_and(|at| text[at..].contains(close));
    let blocks = has("{% ", "%}")
        || has("{%- ", "%}")
        || has("<%", "%>")
        || has("{{cookiecutter.", "}}")
        || has("{{ cookiecutter.", "}}");
    let is_data = matches!(language, Language::Json(_) | Language::JsonLines | Language::Yaml | Language::Toml);
    let in_data = || is_data && (has("{#", "#}") || text.lines().any(has_bare_braces));
    let is_remark = |line: &str| line.split_once("{#").is_some_and(|(_, rest)| rest.contains("#}"));
    let there = |line: &&str| {
        has_bare_name(line)
            || is_remark(line)
            || has_placeholder(line, "@", '@')
            // A YAML text and a template literal may have these.
            || !matches!(language, Language::Yaml | Language::Script) && has_placeholder(line, "${", '}')
    };
    names || blocks || in_data() || places.iter().any(there)
}

/// Whether a place of a line is outside of quotes.
fn is_bare(before: &str) -> bool {
    !['"', '\'', '`'].iter().any(|quote| before.matches(*quote).count() % 2 == 1)
}

/// Whether a line has a name between `{{` and `}}` where no program has one: `{{ value }}`, `{{#if x}}`, `{{ .Name | lower }}`.
/// (`style={{color}}` of React is one word with what stands before it.)
fn has_bare_name(line: &str) -> bool {
    line.match_indices("{{").any(|(at, _)| {
        let (before, inside) = (&line[..at], line[at + 2..].split_once("}}"));
        let is_name = inside.is_some_and(|(inside, _)| {
            let inside = inside.trim_matches(|c: char| c.is_whitespace() || c == '-' || c == '~');
            let name = inside.trim_start_matches(['#', '/', '>', '&', '!', '.']).trim_start();
            !inside.starts_with("..")
                && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && !inside.contains(['{', '}', ':', ',', ';', '='])
        });
        is_name && is_bare(before) && !before.ends_with(['$', '='])
    })
}

/// Whether a line has a name between `open` and `close` outside of quotes.
fn has_placeholder(line: &str, open: &str, close: char) -> bool {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
    line.match_indices(open).any(|(at, _)| {
        let inside = line[at + open.len()..].split_once(close);
        is_bare(&line[..at]) && inside.is_some_and(|(name, _)| is_name(name))
    })
}

/// Whether a line has `{{` outside of quotes, where it is no data. (`${{ }}` of workflows is plain text for YAML.)
fn has_bare_braces(line: &str) -> bool {
    line.match_indices("{{").any(|(at, _)| {
        let before = &line[..at];
        !before.ends_with('$') && (is_bare(before) || before.trim_end().ends_with("}}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_and_else_the_first_line() {
        let of = |path: &str, content: &str| language(Path::new(path), content.as_bytes()).ok();
        assert_eq!(of("/a/tsconfig.build.json", ""), Some(Language::Json(Dialect::Commented)));
        assert_eq!(of("/a/.vscode/x.json", ""), Some(Language::Json(Dialect::Commented)));
        assert_eq!(of("/a/X.JSON", ""), Some(Language::Json(Dialect::Unknown)));
        assert_eq!(of("/a/package.json", ""), Some(Language::Json(Dialect::Strict)));
        assert_eq!(of("/a/Cargo.lock", ""), Some(Language::Toml));
        assert_eq!(of("/a/run", "#!/usr/bin/env -S python3.12 -u\nx"), Some(Language::Python));
        assert_eq!(of("/a/run", "#!/usr/bin/node\n"), Some(Language::Script));
        assert_eq!(of("/a/run", "#!/usr/bin/python2\n"), None);
        for unknown in ["/a/b.txt", "/a/.gitignore", "/a/py", "/a/x.yaml.j2", "/a/x.json5", "/"] {
            assert_eq!(of(unknown, "x"), None, "{unknown}");
        }
    }

    #[test]
    fn templates_are_told_from_data_with_braces() {
        let path = Path::new("/a/x");
        let lines = |text: &'static str| text.lines().collect::<Vec<_>>();
        for template in [
            "a: {{ .Values.x }}",
            "{{- if x }}\na: b",
            "a: \"{{ x }}\"{{ y }}",
            "{% if x %}\na",
            "<%= x %>: b",
            "{# x #}",
        ] {
            assert!(is_template(Language::Yaml, path, template, &lines(template)), "{template}");
        }
        for data in ["a: \"{{ x }}\"", "a: ${{ x }}", "a: {b: {c: d}}", "a: '{{ x }}'"] {
            assert!(!is_template(Language::Yaml, path, data, &lines(data)), "{data}");
        }
        assert!(is_template(Language::Yaml, path, "a: @NAME@", &["a: @NAME@"]));
        assert!(is_template(Language::JsonLines, path, "{\"a\": ${VALUE}}", &["{\"a\": ${VALUE}}"]));
        assert!(!is_template(Language::Yaml, path, "a: ${B}\nc", &["a: ${B}", "c"]));
        assert!(!is_template(Language::Python, path, "# {{ name }}\nx = (", &["x = ("]), "a remark elsewhere");
        for template in ["var x = {{ value }};", "{{#if x}}var y;{{/if}}", "{# x #}\nx = 1", "package {{ .Name }}"] {
            assert!(is_template(Language::Script, path, template, &lines(template)), "{template}");
        }
        for program in ["<a style={{color}}/>", "<a b={{ c: 1 }}/>", "f(`{{x}}`)", "let x = {{...a}}", "f(\"{{ x }}\")"]
        {
            assert!(!is_template(Language::Script, path, program, &lines(program)), "{program}");
        }
        assert!(
            is_template(Language::Java, path, "class ${name} {}", &lines("class ${name} {}"))
                && is_template(Language::Rust, path, "fn {{ x }}() {}", &lines("fn {{ x }}() {}"))
        );
        assert!(
            !is_template(Language::Python, path, "@a\n@b\ndef f(", &lines("@a\n@b\ndef f("))
                && !is_template(Language::Rust, path, "{{x", &lines("{{x"))
        );
        assert!(!is_template(Language::Go, path, "var x = [][]int{{1}, {2}}", &lines("var x = [][]int{{1}, {2}}")));
        assert!(is_template(Language::Python, Path::new("/a/{{cookiecutter.name}}/x.py"), "x = (", &lines("x = (")));
    }
}
