//! What commands and methods of PowerShell do. A command is a verb and a noun: most are told by the two of them.

use super::Reader;
use crate::eval::{Call, Extent, Writing, blurred};
use crate::finding::Effect;
use crate::programs::{power, windows};
use crate::text::{self, HOLE, REMOTE, SECRET};

pub(super) const VERBS: &str = "add backup checkpoint clear close compare complete compress confirm connect convert \
    convertfrom convertto copy debug disable disconnect dismount edit enable enter exit expand export find foreach format \
    get grant group hide import initialize install invoke join limit lock measure merge mount move new open optimize out \
    ping pop protect publish push read receive redo register remove rename repair request reset resize resolve restart \
    restore resume revoke save search select send set show skip sort split start step stop submit suspend switch sync \
    tee test trace unblock undo uninstall unlock unprotect unpublish unregister update use wait watch where write";

/// Other names of commands.
const ALIASES: &[(&str, &str)] = &[
    ("rm ri del erase rd rmdir", "remove-item"),
    ("kill spps", "stop-process"),
    ("spsv", "stop-service"),
    ("sasv", "start-service"),
    ("iex", "invoke-expression"),
    ("iwr curl wget", "invoke-webrequest"),
    ("irm", "invoke-restmethod"),
    ("gci ls dir", "get-childitem"),
    ("gc cat type", "get-content"),
    ("ac", "add-content"),
    ("clc", "clear-content"),
    ("cp copy cpi", "copy-item"),
    ("mv move mi", "move-item"),
    ("ren rni", "rename-item"),
    ("ni mkdir md", "new-item"),
    ("sp", "set-itemproperty"),
    ("rp", "remove-itemproperty"),
    ("si", "set-item"),
    ("echo write", "write-output"),
    ("saps start", "start-process"),
    ("sajb", "start-job"),
    ("icm", "invoke-command"),
    ("iwmi", "invoke-wmimethod"),
    ("gps ps", "get-process"),
    ("gsv", "get-service"),
    ("gi", "get-item"),
    ("clhy", "clear-history"),
    ("% foreach", "foreach-object"),
    ("? where", "where-object"),
    ("select", "select-object"),
    ("sort", "sort-object"),
    ("ft fl fw fc", "format-table"),
    ("oh", "out-host"),
    ("tee", "tee-object"),
    ("cd sl chdir pushd popd", "set-location"),
    ("cls clear", "clear-host"),
    ("h history ghy", "get-history"),
    ("r ihy", "invoke-history"),
    ("sleep", "start-sleep"),
    ("ipmo", "import-module"),
];

/// Parameters without a value.
const SWITCHES: &str = "recurse force whatif confirm verbose raw asjob wait passthru nonewline append usebasicparsing \
    container hidden noclobber runasadministrator removedata removeoem asplaintext nopassword permanent \
    quiet casesensitive full";

/// Words of a command, told apart.
struct Arguments<'a> {
    parameters: Vec<(String, Option<&'a str>)>,
    positional: Vec<&'a str>,
}

impl<'a> Arguments<'a> {
    fn read(words: &'a [(String, bool)]) -> Self {
        let mut found = Self { parameters: Vec::new(), positional: Vec::new() };
        let mut rest = words.iter().peekable();
        while let Some((word, option)) = rest.next() {
            let name =
                word.strip_prefix('-').filter(|name| *option && name.starts_with(|c: char| c.is_ascii_alphabetic()));
            let Some(name) = name else {
                found.positional.push(word);
                continue;
            };
            if let Some((name, value)) = name.split_once(':') {
                let value = if value.is_empty() { rest.next().map(|(value, _)| value.as_str()) } else { Some(value) };
                found.parameters.push((name.to_ascii_lowercase(), value));
                continue;
            }
            let name = name.to_ascii_lowercase();
            let switch = SWITCHES.split_ascii_whitespace().any(|switch| switch.starts_with(&name))
                || name.chars().all(|c| matches!(c, 'r' | 'f'));
            let value =
                if switch { None } else { rest.next_if(|(_, option)| !option).map(|(value, _)| value.as_str()) };
            found.parameters.push((name, value));
        }
        found
    }

    /// Whether a parameter is there, perhaps cut short.
    fn has(&self, full: &str) -> bool {
        self.parameters.iter().any(|(name, value)| full.starts_with(name.as_str()) && *value != Some("false"))
    }

    fn value(&self, full: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(name, _)| full.starts_with(name.as_str())).and_then(|(_, value)| *value)
    }

    /// The value of a parameter, or the words without one.
    fn all(&self, full: &[&str]) -> Vec<String> {
        let named = full.iter().filter_map(|name| self.value(name));
        named.chain(self.positional.iter().copied()).map(str::to_owned).collect()
    }

    fn shown(&self) -> String {
        self.all(&["name", "displayname", "path", "id"]).join(" ")
    }
}

/// Nouns that something of the host hangs on, what happens to it, and verbs that only look or begin.
const NOUNS: &[(&str, Effect, &str)] = &[
    ("service", Effect::Service, "start"),
    ("netfirewall", Effect::Service, ""),
    ("netadapter", Effect::Service, ""),
    ("netip", Effect::Service, ""),
    ("netroute", Effect::Service, ""),
    ("netnat", Effect::Service, ""),
    ("netconnectionprofile", Effect::Service, ""),
    ("dnsclient", Effect::Service, "clear"),
    ("dnsserver", Effect::Service, ""),
    ("dhcpserver", Effect::Service, ""),
    ("vpnconnection", Effect::Service, ""),
    ("website", Effect::Service, "start"),
    ("webapppool", Effect::Service, "start"),
    ("iis", Effect::Service, "start"),
    ("vm", Effect::Service, "start"),
    ("smbshare", Effect::Service, ""),
    ("windowsoptionalfeature", Effect::Package, ""),
    ("windowsfeature", Effect::Package, ""),
    ("windowscapability", Effect::Package, ""),
    ("appxpackage", Effect::Package, ""),
    ("appxprovisionedpackage", Effect::Package, ""),
    ("package", Effect::Package, "save import register"),
    ("module", Effect::Package, "import save remove new"),
    ("script", Effect::Package, "save new"),
    ("psresource", Effect::Package, "save"),
    ("psrepository", Effect::Package, ""),
    ("psremoting", Effect::Service, ""),
    ("timezone", Effect::Service, ""),
    ("date", Effect::Service, ""),
    ("mppreference", Effect::Service, ""),
    ("computer", Effect::Service, "checkpoint"),
    ("executionpolicy", Effect::Permission, ""),
    ("acl", Effect::Permission, ""),
    ("localuser", Effect::Account, ""),
    ("localgroup", Effect::Account, ""),
    ("aduser", Effect::Account, ""),
    ("adgroup", Effect::Account, ""),
    ("adaccount", Effect::Account, ""),
    ("adcomputer", Effect::Account, ""),
    ("adobject", Effect::Account, ""),
    ("mguser", Effect::Account, ""),
    ("mggroup", Effect::Account, ""),
    ("scheduledtask", Effect::Persistence, "start new"),
    ("scheduledjob", Effect::Persistence, "start new"),
    ("wmiobject", Effect::Service, ""),
    ("ciminstance", Effect::Service, ""),
    ("eventlog", Effect::History, "write new"),
    ("winevent", Effect::History, "new"),
    ("bitlocker", Effect::Disk, ""),
    ("partition", Effect::Disk, ""),
    ("virtualdisk", Effect::Disk, ""),
    ("storagepool", Effect::Disk, ""),
    ("volume", Effect::Disk, "optimize"),
    ("disk", Effect::Disk, ""),
    ("diskimage", Effect::Disk, "mount"),
    ("computerrestore", Effect::Disk, "enable"),
];

/// Verbs that only look, whatever follows.
const LOOKS: &str = "get test show measure find resolve compare select where sort group convertto convertfrom convert join \
    split read write wait trace ping search receive debug confirm";

/// Verbs that take something away, whatever follows.
const TAKES: &str = "remove clear reset stop disable uninstall dismount unregister revoke restart suspend lock";

/// Nouns that live in the session only.
const SESSION: &str = "variable alias job pssession psdrive event typedata psbreakpoint module transcript host \
    psbreakpoint function runspace member computerinfo";

/// Judges a command; answers what it hands on.
pub(super) fn run(
    reader: &mut Reader,
    call: &mut Call<'_, '_>,
    written: &str,
    words: &[(String, bool)],
    flow: Option<&[String]>,
) -> Vec<String> {
    let mut name = written.rsplit('\\').next().unwrap_or(written).to_ascii_lowercase();
    if let Some((_, full)) = ALIASES.iter().find(|(short, _)| short.split_ascii_whitespace().any(|short| short == name))
    {
        // Signals and bundles of letters belong to the programs of the same name elsewhere.
        if name == "kill"
            && words.first().is_some_and(|(word, _)| {
                word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            })
        {
            let native = std::iter::once(name).chain(words.iter().map(|(word, _)| word.clone())).collect();
            return super::native(call, native, flow);
        }
        name = (*full).to_owned();
    }
    let arguments = Arguments::read(words);
    if words.iter().any(|(word, option)| *option && matches!(word.to_ascii_lowercase().as_str(), "-whatif" | "-wi")) {
        return Vec::new();
    }
    let Some((verb, noun)) = name.split_once('-').filter(|(verb, _)| super::is_verb(verb)) else {
        let native = std::iter::once(written.to_owned()).chain(words.iter().map(|(word, _)| word.clone())).collect();
        return super::native(call, native, flow);
    };
    // Findings name the command and not the shell it runs in.
    let outer = std::mem::replace(&mut call.name, written.to_owned());
    let values = cmdlet(reader, call, (verb, noun), &arguments, flow);
    call.name = outer;
    values
}

fn cmdlet(
    reader: &mut Reader,
    call: &mut Call<'_, '_>,
    (verb, noun): (&str, &str),
    arguments: &Arguments<'_>,
    flow: Option<&[String]>,
) -> Vec<String> {
    let handed = || flow.map(<[String]>::to_vec).unwrap_or_default();
    let unknown = || vec![blurred(&flow.map(<[String]>::concat).unwrap_or_default())];
    match (verb, noun) {
        ("stop" | "restart", "computer") => power::never(call, "this machine"),
        ("clear" | "initialize", "disk")
        | ("format", "volume")
        | ("remove", "partition")
        | ("reset", "physicaldisk") => {
            call.never(Effect::Disk, &arguments.shown(), "writes over a raw disk");
        }
        ("remove", "item") => removes(call, arguments, flow),
        ("clear", "content" | "item") => writes(call, arguments, Writing::Empty, flow),
        ("set", "content" | "item") | ("out", "file") | ("export", _) | ("tee", "object") | ("start", "transcript") => {
            writes(call, arguments, Writing::Replace, flow);
            return if verb == "tee" { handed() } else { Vec::new() };
        }
        ("add", "content") | ("set" | "new" | "remove" | "clear" | "rename" | "copy" | "move", "itemproperty") => {
            writes(call, arguments, Writing::Edit, flow);
        }
        ("new", "item") => writes(call, arguments, Writing::Create, None),
        ("copy" | "move" | "rename", "item") => moves(call, arguments, verb),
        ("clear", "recyclebin") => call.asks(Effect::Delete, "the trash", "deletes what is in the trash for good"),
        ("clear", "history") => call.asks(Effect::History, "the command history", "erases the command history"),
        ("set", "psreadlineoption" | "psreadlineoptions") => {
            if arguments.value("historysavestyle").is_some_and(|style| style.eq_ignore_ascii_case("savenothing"))
                || arguments.has("historysavepath")
                || arguments.value("maximumhistorycount") == Some("0")
            {
                call.asks(Effect::History, "the command history", "switches the command history off");
            }
        }
        ("invoke", "expression") => {
            let mut source = arguments.all(&["command"]).join(" ");
            if arguments.parameters.is_empty() && arguments.positional.is_empty() {
                source = handed().join("\n");
            }
            return runs(reader, call, &source);
        }
        ("invoke", "history") => call.cannot_tell("runs an earlier command again"),
        ("invoke", "webrequest" | "restmethod") | ("start", "bitstransfer") => return fetches(call, arguments),
        ("invoke", "command") => {
            if arguments.has("filepath") {
                call.cannot_tell("runs a script elsewhere");
            }
            return unknown();
        }
        ("invoke", "wmimethod" | "cimmethod") => {
            let shown =
                arguments.all(&["methodname", "name", "class", "classname", "query"]).join(" ").to_ascii_lowercase();
            if shown.contains("shutdown") || shown.contains("reboot") {
                return power_off(call);
            }
            call.asks(Effect::Service, &shown, "changes the system through its management interface");
        }
        ("start", "process") => starts(call, arguments),
        ("stop", "process") => stops(call, arguments, flow),
        ("get", "content") => {
            let mut texts = Vec::new();
            for path in arguments.all(&["path", "literalpath"]) {
                texts.push(call.read(&path.replace('\\', "/")));
            }
            return texts;
        }
        ("get", "childitem" | "item" | "itemproperty") => {
            let environment = arguments.all(&["path", "literalpath"]).iter().any(|path| {
                path.to_ascii_lowercase().starts_with("env:")
                    && !path[4..].starts_with(|c: char| c.is_ascii_alphabetic())
            });
            return vec![if environment { SECRET.to_string() } else { HOLE.to_string() }];
        }
        ("write", _) | ("out", "string" | "host" | "default") => {
            let mut values = arguments.all(&["inputobject", "object", "message"]);
            if values.is_empty() {
                values = handed();
            }
            return values;
        }
        ("out", "null") | ("set" | "push" | "pop", "location") | ("start", "sleep") => return Vec::new(),
        ("select" | "where" | "sort" | "foreach" | "group" | "measure" | "format", _) => {
            let blocks = arguments.positional.concat();
            return if flow.is_some() { vec![blurred(&(handed().concat() + &blocks))] } else { unknown() };
        }
        ("get", "clipboard") | ("convertto", "securestring") => return vec![HOLE.to_string()],
        ("convertfrom", "securestring") if arguments.has("asplaintext") => return vec![SECRET.to_string()],
        ("new", "object") => return vec![arguments.all(&["typename", "comobject"]).join(" ")],
        ("add", "type") => {
            if let Some(source) = arguments.value("typedefinition").or_else(|| arguments.value("memberdefinition")) {
                crate::programs::interpreters::code(call, crate::programs::interpreters::Language::Other, source);
            }
        }
        _ => return by_noun(call, verb, noun, arguments, unknown()),
    }
    Vec::new()
}

fn by_noun(
    call: &mut Call<'_, '_>,
    verb: &str,
    noun: &str,
    arguments: &Arguments<'_>,
    unknown: Vec<String>,
) -> Vec<String> {
    let listed = |list: &str, word: &str| list.split_ascii_whitespace().any(|known| known == word);
    if listed(LOOKS, verb) || verb == "new" && noun.starts_with("scheduledtask") {
        return unknown;
    }
    let row = NOUNS.iter().filter(|(prefix, ..)| noun.starts_with(prefix)).max_by_key(|(prefix, ..)| prefix.len());
    match row {
        Some((_, _, harmless)) if listed(harmless, verb) => {}
        Some((prefix, effect, _)) if noun.len() <= prefix.len() + 16 => {
            call.asks(*effect, &arguments.shown(), "changes the system or what it runs");
        }
        _ if listed(TAKES, verb) && !listed(SESSION, noun) => {
            call.asks(Effect::Service, &arguments.shown(), "takes something away that others may need");
        }
        _ => {}
    }
    unknown
}

fn power_off(call: &mut Call<'_, '_>) -> Vec<String> {
    power::never(call, "this machine");
    Vec::new()
}

fn removes(call: &mut Call<'_, '_>, arguments: &Arguments<'_>, flow: Option<&[String]>) {
    let paths = arguments.all(&["path", "literalpath"]);
    let recursive =
        arguments.has("recurse") || arguments.parameters.iter().any(|(name, _)| matches!(name.as_str(), "rf" | "fr"));
    if paths.is_empty() && flow.is_some() {
        return call.asks(Effect::Delete, "", "deletes whatever the commands before it find");
    }
    for path in paths {
        let lower = path.to_ascii_lowercase();
        if lower.starts_with("hklm:")
            || lower.starts_with("hkcu:")
            || lower.starts_with("cert:")
            || lower.starts_with("registry::")
        {
            call.asks(Effect::Persistence, &path, "changes settings of the system");
            continue;
        }
        if lower.starts_with("env:")
            || lower.starts_with("variable:")
            || lower.starts_with("alias:")
            || lower.starts_with("function:")
        {
            continue;
        }
        let path = home(call, &path);
        windows::remove(call, &path, if recursive { Extent::Bulk } else { Extent::One });
    }
}

/// PowerShell itself knows what `~` is.
fn home(call: &Call<'_, '_>, path: &str) -> String {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => format!("{}{rest}", call.machine.world.home),
        _ => path.to_owned(),
    }
}

fn writes(call: &mut Call<'_, '_>, arguments: &Arguments<'_>, writing: Writing, flow: Option<&[String]>) {
    let named = ["filepath", "literalpath", "path"].iter().find_map(|name| arguments.value(name));
    let Some(path) = named.or_else(|| arguments.positional.first().copied()) else { return };
    let path = home(call, path);
    let lower = path.to_ascii_lowercase();
    if ["env:", "variable:", "alias:", "function:"].iter().any(|drive| lower.starts_with(drive)) {
        return;
    }
    let empty = arguments.value("value").is_some_and(str::is_empty) || arguments.positional.get(1) == Some(&"");
    windows::write(call, &path, if empty && writing == Writing::Replace { Writing::Empty } else { writing });
    let remote = flow
        .into_iter()
        .flatten()
        .map(String::as_str)
        .chain(arguments.positional.iter().copied())
        .any(|text| text.contains(REMOTE));
    if remote {
        call.now_foreign(&path.replace('\\', "/"));
    }
}

fn moves(call: &mut Call<'_, '_>, arguments: &Arguments<'_>, verb: &str) {
    let paths = arguments.all(&["path", "literalpath"]);
    let target = arguments
        .value("destination")
        .or_else(|| arguments.value("newname"))
        .map(str::to_owned)
        .or_else(|| paths.get(1).cloned());
    if let Some(source) = paths.first().map(|path| home(call, path).replace('\\', "/")) {
        if verb == "copy" {
            let text = call.read(&source);
            if text.contains(SECRET) {
                return;
            }
        } else if verb == "move" && !source.contains(':') {
            let place = call.place(&source, true);
            if crate::place::wiped(&place, call.machine.world).is_some() {
                return call.delete_place(&place, Extent::Bulk);
            }
        }
    }
    if let Some(target) = target {
        let target = home(call, &target);
        windows::write(call, &target, Writing::Replace);
    }
}

/// Runs a text that was put together.
fn runs(reader: &mut Reader, call: &mut Call<'_, '_>, source: &str) -> Vec<String> {
    if source.contains(REMOTE) {
        call.asks(Effect::ExecuteRemote, "PowerShell", "runs text that comes over the network, unread");
    } else if text::is_unknown(source) {
        call.cannot_tell("runs text that cannot be told");
    }
    reader.script(call, source)
}

/// What is fetched is only dangerous once it runs.
fn fetches(call: &mut Call<'_, '_>, arguments: &Arguments<'_>) -> Vec<String> {
    if let Some(file) = arguments.value("infile") {
        let _ = call.read(&file.replace('\\', "/"));
    }
    let sent = arguments.value("body").into_iter().chain(arguments.value("form")).any(|body| body.contains(SECRET));
    if sent {
        call.asks(Effect::NetworkSend, &arguments.shown(), "sends a secret");
    }
    match arguments.value("outfile").or_else(|| arguments.value("destination")) {
        Some(file) => {
            windows::write(call, file, Writing::Replace);
            call.now_foreign(&file.replace('\\', "/"));
            Vec::new()
        }
        None => vec![REMOTE.to_string()],
    }
}

fn starts(call: &mut Call<'_, '_>, arguments: &Arguments<'_>) {
    if arguments.value("verb").is_some_and(|verb| verb.eq_ignore_ascii_case("runas")) {
        call.asks(Effect::Privilege, "the administrator", "runs something with all rights");
    }
    let mut words = arguments.all(&["filepath"]);
    let list: Vec<String> = ["argumentlist", "args"]
        .iter()
        .filter_map(|name| arguments.value(name))
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let at = 1.min(words.len());
    words.splice(at..at, list);
    if let Some(program) = words.first_mut()
        && let Some(bare) = program.strip_suffix(".exe")
    {
        *program = bare.to_owned();
    }
    call.run(words);
}

fn stops(call: &mut Call<'_, '_>, arguments: &Arguments<'_>, flow: Option<&[String]>) {
    let names = arguments.value("name").or_else(|| arguments.value("processname"));
    if names == Some("*") {
        return call.never(Effect::ProcessKill, "*", "ends all processes");
    }
    let numbers = arguments.all(&["id"]);
    let known = !numbers.is_empty()
        && numbers.iter().all(|number| number.chars().all(|c| c.is_ascii_digit() || c == text::PLAIN));
    if names.is_some() || flow.is_some() || !known {
        call.asks(Effect::ProcessKill, &arguments.shown(), "ends processes by name");
    }
}

/// Judges a call of a method on `before`; answers its value.
pub(super) fn method(
    reader: &mut Reader,
    call: &mut Call<'_, '_>,
    before: &str,
    method: &str,
    values: &[String],
) -> String {
    let lower = before.to_ascii_lowercase();
    let first = values.first().cloned().unwrap_or_default();
    match method {
        "downloadstring" | "downloaddata" | "openread" | "getstringasync" | "getasync" | "getbytearrayasync" => {
            return REMOTE.to_string();
        }
        "downloadfile" | "downloadfileasync" => {
            if let Some(file) = values.get(1) {
                windows::write(call, file, Writing::Replace);
                call.now_foreign(&file.replace('\\', "/"));
            }
        }
        "win32shutdown" | "win32shutdowntracker" => power::never(call, "this machine"),
        "reboot" | "shutdown" if lower.contains("operatingsystem") || lower.contains(HOLE) => {
            power::never(call, "this machine");
        }
        "kill" | "terminate" | "closemainwindow" => {
            call.asks(Effect::ProcessKill, "", "ends processes that a command found");
        }
        "delete" => {
            let recursive = lower.contains("directory") && values.iter().any(|value| value == "true" || value == "1");
            if first.is_empty() || !lower.contains("::") {
                call.asks(Effect::Delete, "", "deletes what a command found");
            } else {
                windows::remove(call, &first, if recursive { Extent::Bulk } else { Extent::One });
            }
        }
        "clearlog" | "deleteeventlog" => call.asks(Effect::History, &first, "clears a log of the system"),
        "clear" if lower.contains("eventlog") => call.asks(Effect::History, "", "clears a log of the system"),
        "writealltext" | "writealllines" | "writeallbytes" => windows::write(call, &first, Writing::Replace),
        "appendalltext" | "appendalllines" => windows::write(call, &first, Writing::Edit),
        "readalltext" | "readalllines" | "readallbytes" => return call.read(&first.replace('\\', "/")),
        "getenvironmentvariables" => return SECRET.to_string(),
        "setenvironmentvariable" if values.len() > 2 => {
            call.asks(Effect::Persistence, &first, "changes the environment of all later programs");
        }
        "frombase64string" => {
            return crate::eval::unbase64(&first).map_or_else(|| HOLE.to_string(), |text| text.replace('\0', ""));
        }
        "getstring" | "tostring" | "trim" | "invokereturnasis" => {
            return if first.is_empty() {
                before.rsplit_once('.').map_or(before, |(value, _)| value).to_owned()
            } else {
                first
            };
        }
        "create" | "newscriptblock" if lower.contains("scriptblock") => {
            let _ = runs(reader, call, &first);
        }
        "invokescript" | "addscript" => {
            let _ = runs(reader, call, &first);
        }
        "start" | "run" | "exec" | "shellexecute"
            if lower.contains("process") || lower.contains("wscript.shell") || lower.contains("shell.application") =>
        {
            windows::command_line(call, &values.join(" "));
        }
        _ => {}
    }
    let mut out = String::new();
    for hole in [SECRET, REMOTE] {
        if before.contains(hole) || values.iter().any(|value| value.contains(hole)) {
            out.push(hole);
        }
    }
    if out.is_empty() { HOLE.to_string() } else { out }
}
