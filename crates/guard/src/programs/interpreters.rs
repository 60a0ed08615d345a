//! Interpreters: code on the command line and on the input is read; program files of the project run openly.

use super::options::{Grammar, leading, single_dash};
use super::{Program, runs};
use crate::code;
use crate::eval::{Call, base_name};
use crate::finding::{Effect, TargetClass};
use crate::text::{self, HOLE, REMOTE};

pub(crate) use crate::code::Language;

pub(super) const PROGRAMS: &[Program] = &[
    runs(&["python", "pypy", "ipython", "py", "bpython"], python),
    runs(&["perl"], perl),
    runs(&["ruby", "jruby", "irb", "macruby"], ruby),
    runs(&["node", "nodejs", "bun_run", "ts-node", "tsx"], node),
    runs(&["deno"], deno),
    runs(&["php"], php),
    runs(&["lua", "luajit", "texlua"], lua),
    runs(&["Rscript", "R"], r),
    runs(&["gdb", "lldb", "cgdb", "rust-gdb", "rust-lldb"], debugger),
    runs(&["gnuplot", "octave", "octave-cli", "matlab", "maxima", "sage"], calculator),
    runs(&["m4"], m4),
    runs(&["tclsh", "wish", "jimsh"], tcl),
    runs(&["julia", "elixir", "groovy", "guile", "racket", "ghci", "runghc", "swift", "scala", "jshell"], other),
];

/// Runs `source` as code of a language, in what surrounds `call`.
pub(crate) fn code(call: &mut Call<'_, '_>, language: Language, source: &str) {
    let source = text::unglob(source);
    if source.contains(REMOTE) {
        return call.asks(Effect::ExecuteRemote, &call.name.clone(), "runs code that comes over the network, unread");
    }
    if text::is_unknown(&source) {
        call.cannot_tell("runs code of which a part is unknown");
    }
    match language {
        Language::Shell => call.shell(&source),
        _ => code::scan(call, language, &source),
    }
}

/// The commands of a `sed` script that run programs or write files.
pub(crate) fn sed_script(call: &mut Call<'_, '_>, script: &str) {
    code::sed(call, script);
}

/// Runs a program file: what this command wrote itself is read, what it fetched asks, what is there runs openly.
pub(crate) fn run_file(call: &mut Call<'_, '_>, file: &str, language: Option<Language>) {
    let named = file.contains('/') || language.is_some();
    if text::is_unknown(file) {
        return call.cannot_tell("runs a file whose name cannot be told");
    }
    if !named {
        return;
    }
    if file == "-" || crate::place::is_stdin(file) {
        if let Some(source) = call.input() {
            code(call, language.unwrap_or(Language::Shell), &source);
        }
        return;
    }
    let place = call.place(file, true);
    if let Some(source) = call.machine.descriptor(&place.path) {
        return code(call, language.unwrap_or(Language::Shell), &source);
    }
    if let Some(fact) = call.machine.file(&place.path) {
        let source = fact.text.clone();
        let language = language.unwrap_or_else(|| shebang(&source, &place.path));
        if language != Language::Shell {
            return code(call, language, &source);
        }
        let name = call.name.clone();
        return call.machine.run_known(&place.path, |machine| machine.evaluate(&name, &source));
    }
    if call.is_foreign(&place.path) {
        return call.asks(Effect::ExecuteRemote, &place.path, "runs what this very command fetched, unread");
    }
    if text::has_glob(&place.path) && language.is_some() && place.class != TargetClass::Workspace {
        call.cannot_tell("runs files that are named by a pattern");
    }
    if place.path.starts_with("/dev/tcp/") {
        call.asks(Effect::ExecuteRemote, &place.path, "runs what arrives over the network");
    }
}

fn shebang(source: &str, path: &str) -> Language {
    let first = source.lines().next().unwrap_or_default();
    let program = first.strip_prefix("#!").map(|line| {
        let mut words = line.split_whitespace();
        let program = words.next().map_or("", base_name);
        if program == "env" { words.find(|word| !word.starts_with('-')).unwrap_or_default() } else { program }
    });
    let name = program.unwrap_or_else(|| path.rsplit('.').next().unwrap_or_default());
    Language::of(name).unwrap_or(Language::Shell)
}

const PYTHON: Grammar = leading("cmWXQ", "check-hash-based-pycs= help version");

/// `python [options] [-c code | -m module | file | -] [arguments]`
fn python(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let options = PYTHON.read(&words);
    if let Some(source) = options.value("c").map(str::to_owned) {
        return code_with(call, Language::Python, &source, &options.operands);
    }
    if let Some(module) = options.value("m").map(str::to_owned) {
        let at =
            words.iter().position(|word| *word == module || word.ends_with(&module)).map_or(words.len(), |at| at + 1);
        return self::module(call, &module, words[at..].to_vec());
    }
    if options.asks_only() || options.has("V h") {
        return;
    }
    script_or_input(call, &options.operands, Language::Python);
}

fn module(call: &mut Call<'_, '_>, module: &str, arguments: Vec<String>) {
    let program = match module {
        // Runs what it measures.
        "timeit" => {
            let options = leading("nrsu", "number= repeat= setup= unit= process verbose help").read(&arguments);
            for source in
                options.values("s setup").map(str::to_owned).chain(options.operands.clone()).collect::<Vec<_>>()
            {
                code(call, Language::Python, &source);
            }
            return;
        }
        "pip" | "pip3" => "pip",
        "poetry" | "twine" | "uv" | "pipx" | "alembic" | "flask" | "django" | "black" | "ruff" | "pytest" | "nox"
        | "tox" | "build" => module,
        _ => return,
    };
    let mut words = vec![program.to_owned()];
    words.extend(arguments);
    call.run(words);
}

/// A script file runs openly; without one the input is the code.
fn script_or_input(call: &mut Call<'_, '_>, operands: &[String], language: Language) {
    match operands.first() {
        Some(file) if file != "-" => {
            if operands[1..].iter().any(|word| word == "--help" || word == "--version") {
                return;
            }
            let file = file.clone();
            run_file(call, &file, Some(language));
            super::project_file(call, &file, &operands[1..]);
        }
        _ => {
            if let Some(source) = call.input() {
                code_with(call, language, &source, operands.get(1..).unwrap_or_default());
            }
        }
    }
}

/// Code that is given arguments.
fn code_with(call: &mut Call<'_, '_>, language: Language, source: &str, arguments: &[String]) {
    let before = call.machine.state.slot(&crate::eval::Key::Positional);
    call.machine.state.set(crate::eval::Key::Positional, crate::eval::Slot::Positional(arguments.to_vec()));
    code(call, language, source);
    call.machine.state.set(crate::eval::Key::Positional, before);
}

/// `perl [-ne…] [-e code | file]`
fn perl(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let options = leading("eEImMFx?C{0123456789IOESioDALa}D{0123456789}d{t:}i?0{01234567}l{01234567}", "help version")
        .read(&words);
    let modules: Vec<String> = options
        .values("M m")
        .map(|module| {
            format!("use {};\n", module.replacen('=', " qw(", 1) + if module.contains('=') { ")" } else { "" })
        })
        .collect();
    let codes: Vec<String> = options.values("e E").map(str::to_owned).collect();
    let in_place = options.has("i");
    if codes.is_empty() {
        if options.asks_only() || options.has("v V") {
            return;
        }
        return script_or_input(call, &options.operands, Language::Perl);
    }
    code(call, Language::Perl, &format!("{}{}", modules.concat(), codes.join("\n")));
    files_of_a_filter(call, &options.operands, in_place, options.has("n p"));
}

/// Files that one-liners go through line by line.
fn files_of_a_filter(call: &mut Call<'_, '_>, files: &[String], in_place: bool, filters: bool) {
    for file in files {
        if in_place {
            call.write(file, crate::eval::Writing::Edit);
        } else if filters {
            let text = call.read(file);
            call.print(&text);
        }
    }
    if files.is_empty() && filters {
        let input = call.input().unwrap_or_else(|| HOLE.into());
        let printed = crate::eval::blurred(&input);
        call.print(&printed);
    }
    call.print(&HOLE.to_string());
}

fn ruby(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let options =
        leading("eErIFCx?K{EeSsUuNnAa}T{0123456789}W{012:}i?0{01234567}", "encoding= external-encoding= help version")
            .read(&words);
    let required: String = options.values("r").map(|name| format!("require '{name}'\n")).collect();
    let codes: Vec<String> = options.values("e").map(str::to_owned).collect();
    if codes.is_empty() {
        if options.asks_only() || options.has("v") {
            return;
        }
        return script_or_input(call, &options.operands, Language::Ruby);
    }
    code(call, Language::Ruby, &format!("{required}{}", codes.join("\n")));
    files_of_a_filter(call, &options.operands, options.has("i"), options.has("n p"));
}

const NODE: Grammar = leading(
    "eprCi?",
    "eval= print= require= import= loader= experimental-loader= conditions= input-type= env-file= test watch check help version",
);

fn node(call: &mut Call<'_, '_>) {
    // `-pe code` and `-p -e code` are `-p code`.
    let mut words = call.arguments().to_vec();
    words.iter_mut().filter(|word| *word == "-pe").for_each(|word| *word = "-p".to_owned());
    if let Some(at) = words.windows(2).position(|pair| {
        matches!(pair[0].as_str(), "-p" | "--print") && matches!(pair[1].as_str(), "-e" | "--eval" | "-p")
    }) {
        words.remove(at + 1);
    }
    let options = NODE.read(&words);
    for file in options.values("r require import loader experimental-loader").map(str::to_owned).collect::<Vec<_>>() {
        if file.starts_with("http") || file.starts_with("data:") {
            call.asks(Effect::ExecuteRemote, &file, "loads code from elsewhere");
        } else if file.starts_with('/') {
            let place = call.place(&file, true);
            if place.class != TargetClass::Workspace {
                call.asks(Effect::CannotTell, &place.path, "loads code that cannot be read here");
            }
        }
    }
    let codes: Vec<String> = options.values("e eval p print").map(str::to_owned).collect();
    if !codes.is_empty() {
        let shows = options.has("p print");
        for source in codes {
            let source = if shows { format!("console.log({source})") } else { source };
            code(call, Language::JavaScript, &source);
        }
        return call.print(&HOLE.to_string());
    }
    if options.asks_only() || options.has("v c check") {
        return;
    }
    script_or_input(call, &options.operands, Language::JavaScript);
}

/// `deno run URL`, `deno eval code`
fn deno(call: &mut Call<'_, '_>) {
    let options = call.options(&leading("", ""));
    let Some(verb) = options.operands.first().cloned() else { return };
    let rest = leading(
        "cLr?",
        "config= location= import-map= allow-all allow-read=? allow-write=? allow-net=? allow-run=? allow-env=?",
    )
    .read(&options.operands[1..]);
    match verb.as_str() {
        "eval" => {
            if let Some(source) = rest.operands.first().cloned() {
                code(call, Language::JavaScript, &source);
            }
        }
        "run" | "serve" | "install" | "compile" | "x" => {
            let file = rest.operands.first().cloned().unwrap_or_default();
            if file.starts_with("http://") || file.starts_with("https://") {
                call.asks(Effect::ExecuteRemote, &file, "runs code from an address");
            } else {
                script_or_input(call, &rest.operands, Language::JavaScript);
            }
        }
        _ => {}
    }
}

fn php(call: &mut Call<'_, '_>) {
    let options = leading(
        "rBREfFcdzStb",
        "run= process-begin= process-code= process-end= file= define= server= docroot= help version",
    )
    .read(call.arguments());
    for setting in options.values("d define").map(str::to_owned).collect::<Vec<_>>() {
        if setting.starts_with("auto_prepend_file")
            || setting.starts_with("auto_append_file")
            || setting.starts_with("extension")
        {
            call.asks(Effect::CannotTell, &setting, "loads code that cannot be read here");
        }
    }
    let codes: Vec<String> =
        options.values("r B R E run process-begin process-code process-end").map(str::to_owned).collect();
    if codes.is_empty() {
        if options.asks_only() || options.has("v i m l S") {
            return;
        }
        let operands = options.values("f file").map(str::to_owned).chain(options.operands.clone()).collect::<Vec<_>>();
        return script_or_input(call, &operands, Language::Php);
    }
    for source in codes {
        code(call, Language::Php, &source);
    }
}

fn lua(call: &mut Call<'_, '_>) {
    let options = leading("el", "").read(call.arguments());
    let codes: Vec<String> = options.values("e").map(str::to_owned).collect();
    for source in &codes {
        code(call, Language::Lua, source);
    }
    if codes.is_empty() && !options.has("v") {
        script_or_input(call, &options.operands, Language::Lua);
    }
}

fn r(call: &mut Call<'_, '_>) {
    let options = leading("eg", "file= args help version").read(call.arguments());
    for source in options.values("e").map(str::to_owned).collect::<Vec<_>>() {
        code(call, Language::R, &source);
    }
    if !options.has("e") && call.name == "Rscript" {
        script_or_input(call, &options.operands, Language::R);
    }
}

/// `gdb -ex command`, `lldb -o command`: commands that run a shell or Python.
fn debugger(call: &mut Call<'_, '_>) {
    let options = call.options(&Grammar {
        valued: "oOksxcp",
        long: "ex= eval-command= iex= o= one-line= O= k= s= source= x= command= ix= cd= p= pid= c= core=",
        permute: true,
        single_dash: true,
    });
    let commands: Vec<String> = options.values("ex eval-command iex o one-line O k").map(str::to_owned).collect();
    for command in commands {
        let command = command.trim();
        if let Some(script) =
            ["shell ", "!", "platform shell ", "make "].iter().find_map(|verb| command.strip_prefix(verb))
        {
            call.shell(script);
        } else if let Some(source) = ["python ", "py ", "python-interactive ", "pi ", "script "]
            .iter()
            .find_map(|verb| command.strip_prefix(verb))
        {
            code(call, Language::Python, source);
        } else if command.contains("system(") {
            code(call, Language::Other, command.trim_start_matches("call ").trim_start_matches("print "));
        }
    }
}

/// Programs for numbers and plots whose language can run others.
fn calculator(call: &mut Call<'_, '_>) {
    let options = call.options(&leading("e", "eval= batch= batch-string= r="));
    for source in options.values("e eval batch r batch-string").map(str::to_owned).collect::<Vec<_>>() {
        code(call, Language::Other, &source);
    }
    if !options.has("e eval") {
        script_or_input(call, &options.operands, Language::Other);
    }
}

/// Tcl: `exec` runs a program, `file delete` deletes.
fn tcl(call: &mut Call<'_, '_>) {
    let operands = call.options(&leading("", "")).operands;
    if operands.first().is_some_and(|file| file != "-") {
        return script_or_input(call, &operands, Language::Other);
    }
    let Some(input) = call.input() else { return };
    for line in input.split(['\n', ';']) {
        let words = crate::shell::split(line);
        match words.as_slice() {
            [exec, rest @ ..] if exec == "exec" => call.run(rest.to_vec()),
            [file, verb, rest @ ..] if file == "file" && verb == "delete" => {
                let force = rest.iter().any(|word| word == "-force");
                for path in rest.iter().filter(|word| !word.starts_with('-')) {
                    call.delete(path, if force { crate::eval::Extent::Bulk } else { crate::eval::Extent::One });
                }
            }
            [open, what, ..] if open == "open" && what.starts_with('|') => call.shell(&what[1..]),
            _ => {}
        }
    }
}

/// `m4`: `syscmd` and `esyscmd` run their argument.
fn m4(call: &mut Call<'_, '_>) {
    let Some(input) = call.input() else { return };
    for piece in input.split("syscmd(").skip(1) {
        let argument = piece.split(')').next().unwrap_or_default().trim_matches(['`', '\'']).to_owned();
        call.shell(&argument);
    }
}

/// Languages of which only the calls that run programs and touch files are known.
fn other(call: &mut Call<'_, '_>) {
    let grammar = if call.name == "groovy" {
        single_dash("e=", false)
    } else {
        leading("eEcl", "eval= print= command= help version")
    };
    let options = grammar.read(call.arguments());
    if options.asks_only() {
        return;
    }
    let language = Language::of(&call.name).unwrap_or(Language::Other);
    let codes: Vec<String> = options.values("e E c eval print command").map(str::to_owned).collect();
    for source in &codes {
        code(call, language, source);
    }
    if codes.is_empty() {
        script_or_input(call, &options.operands, language);
    }
}
