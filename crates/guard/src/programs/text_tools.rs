//! Programs that read text and print it: what they show, where they write, and the options that run something else.

use super::environment::side_door;
use super::options::{Grammar, gnu, leading};
use super::{Program, interpreters, prints};
use crate::eval::{Call, Writing, filtered};
use crate::finding::{Effect, TargetClass};
use crate::text::{self, HOLE, PLAIN};

pub(super) const PROGRAMS: &[Program] = &[
    prints(
        &[
            "cat",
            "gcat",
            "tac",
            "rev",
            "nl",
            "head",
            "ghead",
            "tail",
            "gtail",
            "cut",
            "gcut",
            "paste",
            "fold",
            "fmt",
            "expand",
            "unexpand",
            "column",
            "uniq",
            "strings",
            "xxd",
            "od",
            "hexdump",
            "base64",
            "gbase64",
            "base32",
            "basenc",
            "more",
            "less",
            "most",
            "bat",
            "batcat",
            "pv",
            "wc",
            "md5sum",
            "sha1sum",
            "sha256sum",
            "sha512sum",
            "cksum",
            "zcat",
            "bzcat",
            "xzcat",
            "zstdcat",
            "zless",
            "bzless",
            "gunzip",
            "gzip",
            "bzip2",
            "bunzip2",
            "xz",
            "unxz",
            "zstd",
            "unzstd",
            "lz4",
            "brotli",
            "uudecode",
            "uuencode",
            "iconv",
            "dos2unix",
            "unix2dos",
            "comm",
            "join",
            "diff",
            "colordiff",
            "sdiff",
            "cmp",
            "jq",
            "gojq",
            "yq",
            "xq",
            "dasel",
            "mlr",
            "csvcut",
            "csvlook",
            "xmllint",
            "pandoc",
            "glow",
            "mdcat",
            "highlight",
            "pygmentize",
            "buffer",
            "mbuffer",
            "ts",
            "vis",
            "pbcopy",
            "xclip",
            "xsel",
            "wl-copy",
            "clip",
            "numfmt",
            "jless",
            "fx",
            "gron",
            "bzgrep",
            "zgrep",
        ],
        reader,
    ),
    prints(&["grep", "egrep", "fgrep", "ggrep", "rgrep", "rg", "ripgrep", "ag", "ack", "ugrep"], search),
    prints(&["sort", "gsort"], sort),
    prints(&["tr", "gtr"], filter),
    prints(&["sed", "gsed", "ssed"], sed),
    prints(&["awk", "gawk", "mawk", "nawk", "original-awk"], awk),
    prints(&["man", "gman"], man),
    prints(&["printenv"], printenv),
    prints(&["ls", "gls", "dir", "exa", "eza", "lsd"], ls),
    prints(&["dirname", "basename", "realpath", "readlink", "greadlink"], path_tool),
    prints(
        &[
            "date",
            "gdate",
            "hostname",
            "uname",
            "nproc",
            "arch",
            "tty",
            "seq",
            "uuidgen",
            "stat",
            "df",
            "du",
            "free",
            "uptime",
            "getconf",
            "id",
            "groups",
            "logname",
            "sw_vers",
            "tput",
            "lsb_release",
            "sleep",
            "expr",
            "bc",
            "getent",
            "pgrep",
            "pidof",
            "lsof",
        ],
        plain_output,
    ),
    prints(&["whoami"], whoami),
    prints(&["yes"], yes),
];

/// Options with values, where a value is not a file.
const READERS: &[(&[&str], Grammar)] = &[
    (&["head", "ghead", "tail", "gtail"], gnu("ncs", "lines= bytes= sleep-interval= pid= retry follow=?")),
    (&["cut", "gcut"], gnu("bcdf", "bytes= characters= delimiter= fields= output-delimiter=")),
    (&["paste"], gnu("d", "delimiters=")),
    (&["fold", "fmt", "expand", "unexpand"], gnu("wt", "width= tabs=")),
    (&["column"], gnu("tscoNHdO", "separator= output-separator= table-columns=")),
    (&["base64", "gbase64", "base32", "basenc"], gnu("w", "wrap=")),
    (&["xxd"], gnu("cglnosR", "cols= groupsize= len= offset= seek=")),
    (&["od", "hexdump"], gnu("AjNStwenfs", "address-radix= skip-bytes= read-bytes= format= width= length=")),
    (&["less", "more", "most"], gnu("bhjkoOpPtTxyz#", "")),
    (
        &["bat", "batcat"],
        gnu(
            "lrHm",
            "language= line-range= highlight-line= map-syntax= theme= style= pager= paging= color= tabs= wrap= decorations= terminal-width= file-name=",
        ),
    ),
    (&["nl"], gnu("bdfhilnsvw", "")),
    (&["uniq"], gnu("fsw", "skip-fields= skip-chars= check-chars=")),
    (&["strings"], gnu("nteTsU", "bytes= radix= encoding= target=")),
    (
        &["gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd", "lz4", "brotli"],
        gnu("SoDTbqw", "suffix= output= threads= format= memlimit= quality="),
    ),
    (&["iconv"], gnu("fto", "from-code= to-code= output=")),
    (
        &["diff", "colordiff", "sdiff"],
        gnu(
            "CUxXFISLWD",
            "context=? unified=? label= exclude= exclude-from= width= ignore-matching-lines= show-function-line= to-file= from-file= color=?",
        ),
    ),
    (&["wc"], gnu("", "files0-from=")),
    (&["join", "comm"], gnu("aeijotv12", "")),
    (
        &["pandoc"],
        gnu(
            "ftosVMH",
            "from= to= output= metadata= variable= template= resource-path= filter= lua-filter= pdf-engine=",
        ),
    ),
    (&["xmllint"], gnu("o", "output= xpath= encode= schema= relaxng=")),
    (&["mlr", "csvcut", "csvlook"], gnu("cd", "")),
];

fn grammar(name: &str) -> Grammar {
    READERS.iter().find(|(names, _)| names.contains(&name)).map_or(gnu("", ""), |(_, grammar)| *grammar)
}

/// Prints its files, or its input, changed in some way.
fn reader(call: &mut Call<'_, '_>) {
    let options = call.options(&grammar(&call.name));
    let name = call.name.clone();
    if options.asks_only() {
        return;
    }
    if let Some(pager) = options.value("pager").map(str::to_owned).filter(|_| matches!(name.as_str(), "bat" | "batcat"))
    {
        side_door(call, &pager);
    }
    for filter in options.values("filter lua-filter F").map(str::to_owned).collect::<Vec<_>>() {
        if name == "pandoc" {
            let language = if filter.ends_with(".lua") { None } else { Some(interpreters::Language::Shell) };
            interpreters::run_file(call, &filter, language);
        }
    }
    if let Some(output) = options.value("o output").map(str::to_owned).filter(|output| output != "-") {
        call.write(&output, Writing::Replace);
    }
    for commands in
        call.arguments().iter().filter_map(|word| word.strip_prefix('+')).map(str::to_owned).collect::<Vec<_>>()
    {
        // `less '+!command'`
        if matches!(name.as_str(), "less" | "more" | "zless")
            && let Some(script) = commands.trim_start_matches('+').strip_prefix(['!', '|', '#'])
        {
            call.shell(script);
        }
    }
    if matches!(name.as_str(), "less" | "more" | "most" | "zless") {
        for variable in ["LESSOPEN", "LESSCLOSE"] {
            if let Some((_, value)) = call.environment.iter().find(|(name, _)| name == variable).cloned() {
                super::environment::passed(call, variable, &value);
            }
        }
    }
    let mut files: Vec<String> = options.operands.clone();
    files.retain(|file| !file.starts_with('+') || files_may_start_with_plus(&name));
    if matches!(name.as_str(), "jq" | "gojq" | "xq" | "dasel" | "gron" | "numfmt" | "mlr" | "fx" | "tr") {
        let options = call.options(&gnu("fLo", "arg= argjson= slurpfile= rawfile= indent= from-file= tab"));
        files = options.operands.clone();
        if !files.is_empty() && !options.has("f from-file") && name != "gron" {
            let program = files.remove(0);
            let words: Vec<&str> =
                program.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '$')).collect();
            // The whole environment, not one variable of it.
            if matches!(name.as_str(), "jq" | "gojq") && (words.contains(&"env") || words.contains(&"$ENV")) {
                call.print(&text::SECRET.to_string());
            }
        }
        // `--arg name value` takes two words.
        let pairs = call
            .arguments()
            .iter()
            .filter(|word| matches!(word.as_str(), "--arg" | "--argjson" | "--slurpfile" | "--rawfile"))
            .count();
        let keep = files.len().saturating_sub(pairs);
        files.truncate(keep);
        if call.arguments().iter().any(|word| matches!(word.as_str(), "-n" | "--null-input" | "--args" | "--jsonargs"))
        {
            files.clear();
        }
    }
    if name == "jq"
        && call.arguments().iter().any(|word| word.starts_with('-') && word.contains('n'))
        && let Some(literal) = call.arguments().iter().find_map(|word| serde_json::from_str::<String>(word).ok())
    {
        return call.print(&format!("{literal}\n"));
    }
    if name == "yq" {
        let options = call.options(&gnu("poI", "input-format= output-format= indent= front-matter= split-exp="));
        files = options.operands.clone();
        files.retain(|file| !matches!(file.as_str(), "eval" | "e" | "eval-all" | "ea"));
        if !files.is_empty() {
            files.remove(0);
        }
        if options.has("i inplace in-place") {
            for file in &files {
                call.write(file, Writing::Edit);
            }
            return;
        }
    }
    if matches!(
        name.as_str(),
        "gzip"
            | "bzip2"
            | "xz"
            | "zstd"
            | "lz4"
            | "gunzip"
            | "bunzip2"
            | "unxz"
            | "unzstd"
            | "brotli"
            | "dos2unix"
            | "unix2dos"
    ) && !options.has("c stdout to-stdout t test l list")
        && !files.is_empty()
    {
        for file in &files {
            let place = call.place(file, true);
            if !matches!(place.class, TargetClass::Secret)
                || crate::place::within(&place.path, &call.machine.world.workspace)
            {
                call.write_place(&place, Writing::Edit);
            }
        }
        return;
    }
    let counts = matches!(name.as_str(), "wc" | "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" | "cksum");
    let mut text = String::new();
    if files.is_empty() {
        text = call.input().unwrap_or_else(|| HOLE.into());
    }
    if counts {
        return call.print(&PLAIN.to_string());
    }
    for file in files {
        text.push_str(&call.read(&file));
    }
    let printed = filtered(call, &text);
    call.print(&printed);
}

fn files_may_start_with_plus(name: &str) -> bool {
    !matches!(name, "less" | "more" | "tail" | "head" | "zless")
}

/// Prints its input changed; takes no files.
fn filter(call: &mut Call<'_, '_>) {
    let input = call.input().unwrap_or_else(|| HOLE.into());
    let printed = filtered(call, &input);
    call.print(&printed);
}

const SEARCH: Grammar = gnu(
    "ABCDdefmgtTjMEr",
    "regexp= file= max-count= after-context= before-context= context= color=? colour= include= exclude= exclude-dir= exclude-from= glob= iglob= type= type-not= threads= max-depth= max-columns= encoding= replace= pre= pre-glob= hostname-bin= pager= sort= sortr= engine= ignore-file= path-separator= label= binary-files= devices= directories= files0-from= filter= save-config= decompress",
);

/// Searches files for a pattern and shows the lines.
fn search(call: &mut Call<'_, '_>) {
    // Letters that are flags of `grep` take values in `rg`.
    let grep = !matches!(call.name.as_str(), "rg" | "ripgrep" | "ag" | "ack");
    let options = call.options(&Grammar { valued: if grep { "ABCDdefm" } else { SEARCH.valued }, ..SEARCH });
    if options.asks_only() {
        return;
    }
    for program in options.values("pre hostname-bin pager filter").map(str::to_owned).collect::<Vec<_>>() {
        if options.has("pre") {
            // The program gets every file that is searched.
            let line = format!("{program} {}", crate::eval::quoted(&format!("./{HOLE}")));
            side_door(call, &line);
        } else {
            side_door(call, &program);
        }
    }
    let mut files = options.operands.clone();
    if !options.has("e regexp f file files type-list") && !files.is_empty() {
        files.remove(0);
    }
    let quiet = options.has("l files-with-matches L files-without-match c count q quiet files");
    for pattern in options.values("g glob iglob include").map(text::live).collect::<Vec<_>>() {
        // A search that picks the files with secrets shows them.
        if !quiet && !pattern.starts_with('!') && call.place(&pattern, true).class == TargetClass::Secret {
            call.read(&pattern);
        }
    }
    let names_only = options.has("l files-with-matches L files-without-match c count q quiet");
    let mut text = String::new();
    if files.is_empty() {
        let recursive = options.has("r R recursive")
            || matches!(call.name.as_str(), "rg" | "ripgrep" | "ag" | "ack" | "rgrep" | "ugrep");
        let input = call.input();
        text = match input {
            Some(input) => input,
            None if recursive => format!("./{HOLE}\n"),
            None => HOLE.into(),
        };
    }
    for file in files {
        if names_only {
            let shown = text::unglob(&file);
            text.push_str(&format!("{}/{HOLE}\n", shown.trim_end_matches('/')));
            continue;
        }
        let secret = call.place(&file, true).class == TargetClass::Secret;
        if (options.has("r R recursive") || file == ".") && !secret {
            text.push_str(&format!("./{HOLE}\n"));
        } else {
            let found = call.read(&file);
            text.push_str(&found);
        }
    }
    let printed = if names_only { text } else { filtered(call, &text) };
    call.print(&printed);
}

const SORT: Grammar = gnu(
    "kotSTb",
    "key= output= field-separator= buffer-size= temporary-directory= compress-program= batch-size= parallel= files0-from= random-source= sort= check=? reverse unique help version",
);

fn sort(call: &mut Call<'_, '_>) {
    let options = call.options(&SORT);
    if options.asks_only() {
        return;
    }
    if let Some(program) = options.value("compress-program").map(str::to_owned) {
        // It gets the text that is sorted.
        let outer = std::mem::replace(&mut call.machine.stdin, crate::eval::Feed::of(HOLE.to_string()));
        side_door(call, &program);
        call.machine.stdin = outer;
    }
    if let Some(output) = options.value("o output").map(str::to_owned) {
        call.write(&output, Writing::Replace);
    }
    let mut text = String::new();
    if options.operands.is_empty() {
        text = call.input().unwrap_or_else(|| HOLE.into());
    }
    for file in &options.operands {
        text.push_str(&call.read(file));
    }
    if options.has("o output") {
        return;
    }
    let printed = if text::is_literal(&text) {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        if options.has("r reverse") {
            lines.reverse();
        }
        if options.has("n numeric-sort k key t R random-sort") {
            // The order is another one; what is printed is a permutation of known lines.
            lines.sort_by_key(|line| {
                line.trim()
                    .split(|c: char| !c.is_ascii_digit())
                    .next()
                    .and_then(|number| number.parse::<u64>().ok())
                    .unwrap_or(0)
            });
        }
        lines.iter().map(|line| format!("{line}\n")).collect()
    } else {
        text
    };
    call.print(&printed);
}

fn man(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("PHCMmLpRSsTEr", "pager= html=? config-file= locale= manpath= preprocessor= sections= extension= prompt= recode= browser= troff-device=?"));
    for program in options.values("P pager H html browser").map(str::to_owned).collect::<Vec<_>>() {
        side_door(call, &program);
    }
}

fn printenv(call: &mut Call<'_, '_>) {
    let names: Vec<String> = call.options(&gnu("", "null")).operands;
    if call.arguments().iter().any(|word| word == "--help" || word == "--version") {
        return;
    }
    if names.is_empty() || names.iter().any(|name| crate::eval::is_secret_name(name)) {
        return call.print(&text::SECRET.to_string());
    }
    for name in names {
        let value = call.sees(&name).unwrap_or_else(|| HOLE.into());
        call.print(&format!("{value}\n"));
    }
}

/// Lists names; for a directory they are unknown, and for a whole system directory they are all of it.
fn ls(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("ITw", "ignore= tabsize= width= color=? sort= time= time-style= block-size= format= hide= indicator-style= help version"));
    let operands = if options.operands.is_empty() { vec![".".to_owned()] } else { options.operands.clone() };
    let themselves = options.has("d directory");
    for operand in operands {
        if text::has_glob(&operand) || themselves {
            call.print(&format!("{operand}\n"));
            continue;
        }
        let place = call.place(&operand, true);
        let whole = matches!(place.class, TargetClass::Root | TargetClass::System | TargetClass::Home);
        let name = if whole { text::STAR } else { HOLE };
        call.print(&format!("{name}\n"));
    }
}

fn path_tool(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("s", "suffix= relative-to= relative-base= zero canonicalize"));
    let operands = options.operands.clone();
    for (index, operand) in operands.iter().enumerate() {
        let printed = match call.name.as_str() {
            "dirname" => match operand.trim_end_matches('/').rsplit_once('/') {
                Some(("", _)) => "/".to_owned(),
                Some((directory, _)) => directory.to_owned(),
                None => ".".to_owned(),
            },
            "basename" => {
                let name = operand.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                let suffix =
                    options.value("s suffix").or_else(|| operands.get(1).map(String::as_str)).unwrap_or_default();
                if index > 0 && !options.has("a s multiple suffix") {
                    return;
                }
                name.strip_suffix(suffix).unwrap_or(name).to_owned()
            }
            _ => call.place(operand, true).path,
        };
        call.print(&format!("{printed}\n"));
    }
}

fn plain_output(call: &mut Call<'_, '_>) {
    if call.name == "seq" {
        return seq(call);
    }
    if call.name == "getent" && call.arguments().iter().any(|word| matches!(word.as_str(), "shadow" | "gshadow")) {
        call.read("/etc/shadow");
    }
    if matches!(call.name.as_str(), "date" | "gdate" | "hostname") {
        super::kernel::clock_and_name(call);
    }
    if call.name == "pgrep" {
        return super::processes::pgrep(call);
    }
    let processes = matches!(call.name.as_str(), "pidof" | "lsof");
    let printed = if processes { text::OUTPUT } else { PLAIN };
    call.print(&format!("{printed}\n"));
}

fn seq(call: &mut Call<'_, '_>) {
    let numbers: Vec<Option<i64>> = call
        .options(&leading("sf", "separator= format= equal-width"))
        .operands
        .iter()
        .map(|word| word.parse().ok())
        .collect();
    let range = match numbers.as_slice() {
        [Some(last)] => Some((1, *last)),
        [Some(first), Some(last)] => Some((*first, *last)),
        _ => None,
    };
    match range {
        Some((first, last)) if last.saturating_sub(first) < 16 => {
            for number in first..=last {
                call.print(&format!("{number}\n"));
            }
        }
        // Where it begins and ends may be a number that means something.
        Some((first, last)) => call.print(&format!("{first}\n{PLAIN}\n{last}\n")),
        None => call.print(&format!("{PLAIN}\n")),
    }
}

fn whoami(call: &mut Call<'_, '_>) {
    let user = call.machine.world.user.clone();
    call.print(&format!("{user}\n"));
}

fn yes(call: &mut Call<'_, '_>) {
    let line = if call.arguments().is_empty() { "y".to_owned() } else { call.arguments().join(" ") };
    call.machine.endless_input = true;
    call.print(&format!("{line}\n{line}\n{HOLE}"));
}

// ------------------------------------------------------------------------------------------------------------ editors

/// `sed`: its commands may run and write.
fn sed(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let options = gnu("efl", "expression= file= line-length= in-place=? quiet silent regexp-extended separate unbuffered null-data sandbox posix debug help version").read(&words);
    if options.asks_only() {
        return;
    }
    let in_place = words.iter().any(|word| {
        word.starts_with("--in-pl")
            || word == "-i"
            || word.starts_with("-i")
            || (word.starts_with('-')
                && !word.starts_with("--")
                && word.contains('i')
                && !word.contains('e')
                && !word.contains('f'))
    });
    let mut scripts: Vec<String> = options.values("e expression").map(str::to_owned).collect();
    let mut files = options.operands.clone();
    // `-i` with a suffix of its own word, as BSD has it.
    if call.name == "sed"
        && words.first().is_some_and(|word| word == "-i")
        && files.first().is_some_and(String::is_empty)
    {
        files.remove(0);
    }
    for file in options.values("f file").map(str::to_owned).collect::<Vec<_>>() {
        let text = call.read(&file);
        if text.contains(text::REMOTE) {
            call.asks(Effect::ExecuteRemote, &file, "runs an editing script that comes over the network, unread");
        } else if text::is_literal(&text) {
            scripts.push(text);
        }
    }
    if scripts.is_empty() && !options.has("f file") && !files.is_empty() {
        scripts.push(files.remove(0));
    }
    for script in &scripts {
        interpreters::sed_script(call, script);
    }
    if in_place {
        for file in &files {
            call.write(file, Writing::Edit);
        }
        return;
    }
    let mut text = String::new();
    if files.is_empty() {
        text = call.input().unwrap_or_else(|| HOLE.into());
    }
    for file in &files {
        text.push_str(&call.read(file));
    }
    let printed = filtered(call, &text);
    call.print(&printed);
}

fn awk(call: &mut Call<'_, '_>) {
    let options = leading("FvfimWeEl", "field-separator= assign= file= include= load= source= exec= dump-variables=? profile=? lint=? sandbox version help").read(call.arguments());
    if options.asks_only() || options.has("V") {
        return;
    }
    let mut operands = options.operands.clone();
    let mut programs: Vec<String> = options.values("e source").map(str::to_owned).collect();
    let mut sources = false;
    for file in options.values("f file").map(str::to_owned).collect::<Vec<_>>() {
        sources = true;
        interpreters::run_file(call, &file, Some(interpreters::Language::Awk));
    }
    if programs.is_empty() && !sources && !operands.is_empty() {
        programs.push(operands.remove(0));
    }
    let mut text = String::new();
    let files: Vec<String> = operands.into_iter().filter(|word| !word.contains('=')).collect();
    for file in &files {
        text.push_str(&call.read(file));
    }
    if files.is_empty() {
        text = call.input().unwrap_or_else(|| HOLE.into());
    }
    // A program that only begins prints what it says; the others change what they read.
    let begins = programs.iter().all(|program| program.trim_start().starts_with("BEGIN")) && files.is_empty();
    let mut printed = String::new();
    // `-v name=value` comes before everything.
    let mut set = String::new();
    for (name, value) in options.values("v assign").filter_map(|assign| assign.split_once('=')) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        set += &format!("BEGIN {{ {name} = \"{value}\" }}\n");
    }
    for program in &programs {
        let program = format!("{set}{program}");
        printed.push_str(&call.captured(|call| interpreters::code(call, interpreters::Language::Awk, &program)));
    }
    if !begins || printed.is_empty() {
        printed = filtered(call, &text);
    }
    call.print(&printed);
}
