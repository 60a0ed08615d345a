//! Programs that end processes: by number politely, by name with a question, all of them never.

use super::options::{Grammar, gnu};
use super::{Kind, Program, plain, prints};
use crate::eval::Call;
use crate::finding::Effect;
use crate::text::{self, HOLE, HOLES, JOB, OUTPUT};

pub(super) const PROGRAMS: &[Program] = &[
    plain(&["kill", "gkill"], kill),
    plain(&["killall"], killall),
    plain(&["killall5"], killall5),
    plain(&["pkill"], pkill),
    plain(&["skill", "snice"], skill),
    plain(&["fuser"], fuser),
    plain(&["xkill", "slay", "fkill", "kill-port", "killport", "npkill", "kill-process", "cross-port-killer"], by_name),
    prints(&["ps"], ps),
    Program { names: &["taskkill", "tskill"], model: taskkill, kind: Kind::Windows },
];

const ALL: &str = "ends all processes";
const NAMED: &str = "ends processes by name, port or pattern and not by number";
const INIT: &str = "signals the process that holds the system together";

/// A kind of target of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pid {
    /// A number, or a job of this very command.
    Known,
    Everything,
    Init,
    /// Neither a number nor known.
    Unknown,
}

fn pid(word: &str) -> Pid {
    let bare = word.strip_prefix('-').unwrap_or(word);
    if bare.starts_with('%') || bare.contains(JOB) {
        return Pid::Known;
    }
    if text::has_glob(bare) {
        // Only a pattern that every number matches is one over all processes.
        return if ["1", "2", "4711", "999"].iter().all(|number| text::matches(bare, number)) {
            Pid::Everything
        } else {
            Pid::Unknown
        };
    }
    if text::is_unknown(bare) {
        return Pid::Unknown;
    }
    if bare.chars().all(|c| c.is_ascii_digit()) && !bare.is_empty() {
        return match (bare.trim_start_matches('0'), word.starts_with('-')) {
            ("1", true) => Pid::Everything,
            ("1", false) => Pid::Init,
            _ => Pid::Known,
        };
    }
    if bare.chars().all(|c| c.is_ascii_digit() || c == text::PLAIN) && !bare.is_empty() {
        return Pid::Known;
    }
    Pid::Unknown
}

/// `kill [-signal | -s signal] pid…`: the first word with a dash is a signal, a later one is a group.
fn kill(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let mut targets: Vec<String> = Vec::new();
    let (mut signal, mut ended) = (None, false);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if ended || !targets.is_empty() || !word.starts_with('-') || word.len() < 2 {
            targets.push(word.clone());
            continue;
        }
        match word.as_str() {
            "--" => ended = true,
            "-l" | "-L" | "--list" | "--table" | "-V" | "-h" => return,
            "-s" | "-n" | "--signal" | "-q" | "--queue" | "--timeout" => {
                let value = rest.next().cloned();
                if !matches!(word.as_str(), "-q" | "--queue" | "--timeout") {
                    signal = value;
                }
            }
            "-p" | "--pid" => signal = Some("0".into()),
            "-a" | "--all" | "-v" | "--verbose" | "-r" | "--require-handler" => {}
            _ if word.starts_with("--signal=") => signal = word.split_once('=').map(|(_, value)| value.to_owned()),
            _ if word.starts_with("-l") || word.starts_with("--list") => return,
            _ if word.starts_with("-s") && word[2..].chars().all(|c| c.is_ascii_alphanumeric()) && word.len() > 3 => {
                signal = Some(word[2..].to_owned());
            }
            // After a signal a number with a dash is a group of processes.
            _ if signal.is_some() => targets.push(word.clone()),
            _ => signal = Some(word[1..].to_owned()),
        }
    }
    // `kill -1` alone: which of the two it is depends on the shell; there is nothing else it could be meant for.
    if targets.is_empty() && !ended && signal.as_deref() == Some("1") && words.len() == 1 {
        return call.asks(Effect::ProcessKill, "-1", ALL);
    }
    if matches!(signal.as_deref(), Some("0" | "EXIT")) {
        return;
    }
    for target in targets {
        match pid(&target) {
            Pid::Known => {}
            Pid::Everything => call.never(Effect::ProcessKill, &target, ALL),
            Pid::Init => call.asks(Effect::ProcessKill, &target, INIT),
            Pid::Unknown => {
                call.asks(Effect::ProcessKill, &target, "ends processes of which nobody can tell which they are");
            }
        }
    }
}

fn killall5(call: &mut Call<'_, '_>) {
    let zero = call.arguments().iter().any(|word| word == "-0");
    if !zero {
        call.never(Effect::ProcessKill, "all processes", ALL);
    }
}

/// Whether a regular expression matches every name: nothing but anchors, dots, repetitions and groups that may be empty.
fn matches_everything(pattern: &str) -> bool {
    let pattern = text::unglob(pattern);
    if pattern.contains([HOLE, HOLES, OUTPUT]) {
        return false;
    }
    let mut bare = pattern.as_str();
    loop {
        let before = bare;
        bare = bare.trim_start_matches('^').trim_end_matches('$');
        if let Some(inner) = bare.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            bare = inner;
        }
        if bare == before {
            break;
        }
    }
    if bare.split('|').any(|branch| branch.chars().all(|c| matches!(c, '.' | '*' | '+' | '?' | '^' | '$' | '(' | ')')))
    {
        return true;
    }
    // A class with a repetition that may be nothing, and classes as wide as the alphabet.
    let classes = [
        "[a-z]",
        "[^ ]",
        "\\w",
        "\\S",
        "[[:alnum:]]",
        "[[:print:]]",
        "[a-zA-Z]",
        "[A-Za-z]",
        "[a-zA-Z0-9]",
        "[0-9a-z]",
        "[:alpha:]",
    ];
    let core = bare.trim_end_matches(['*', '+', '?']);
    classes.contains(&core)
}

const PATTERN: Grammar = gnu(
    "dFgGPrstuUq",
    "signal= delimiter= pidfile= pgroup= group= parent= session= terminal= euid= uid= runstates= ns= nslist= older= \
         cgroup= env= queue= full exact newest oldest inverse ignore-case count echo list-name help version",
);

/// Numbers of processes; those of all of them are, for what ends them, the same as `-1`. The last is [`OUTPUT`]: a filter
/// leaves something unknown.
const EVERY: &str = "1\n-1\n\u{F0002}\n";

/// `pgrep` takes the options of `pkill` and prints.
pub(super) fn pgrep(call: &mut Call<'_, '_>) {
    let options = call.options(&PATTERN);
    let root = options.values("u U euid uid").any(|user| matches!(user, "root" | "0"));
    let users = options.has("u U euid uid");
    let all = options.operands.iter().any(|pattern| matches_everything(pattern)) || options.operands.is_empty() && root;
    let every = all && (!users || root) && !options.has("P parent g pgroup t terminal l a list-name list-full c count");
    call.print(&if every { EVERY.to_owned() } else { format!("{OUTPUT}\n") });
}

fn pkill(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let signals = |word: &String| is_signal(word);
    let zero = words.iter().any(|word| matches!(word.as_str(), "-0" | "--signal=0"))
        || words.windows(2).any(|pair| pair[0] == "--signal" && pair[1] == "0");
    let kept: Vec<String> = words.iter().filter(|word| !signals(word)).cloned().collect();
    let options = PATTERN.read(&kept);
    if options.asks_only() || zero || options.has("V h") {
        return;
    }
    let users: Vec<&str> = options.values("u U euid uid").collect();
    let root = users.iter().any(|list| list.split(',').any(|user| matches!(user, "root" | "0")));
    let narrowed = options.has("P parent g pgroup t terminal s session F pidfile ns cgroup r runstates");
    let all = options.operands.iter().any(|pattern| matches_everything(pattern))
        || options.operands.is_empty() && root && !options.has("G group");
    let inverted = options.has("v inverse") && !narrowed && users.is_empty();
    if (all && (users.is_empty() || root) && !narrowed) || inverted {
        return call.never(Effect::ProcessKill, &options.operands.join(" "), ALL);
    }
    let parent = options.value("P parent");
    let own = parent.is_some_and(|parent| parent.chars().all(|c| c.is_ascii_digit() || c == text::PLAIN || c == JOB))
        && parent != Some("1");
    if own && options.operands.is_empty() {
        return;
    }
    if options.operands.is_empty() && !narrowed && users.is_empty() && !options.has("G group env older") {
        return;
    }
    call.asks(Effect::ProcessKill, &options.operands.join(" "), NAMED);
}

/// `-9`, `-KILL`, `-SIGTERM` in the place of an option.
fn is_signal(word: &str) -> bool {
    let Some(name) = word.strip_prefix('-') else { return false };
    !name.is_empty() && name.chars().all(|c| c.is_ascii_digit())
        || name.len() > 2 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
}

fn killall(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let zero = words.windows(2).any(|pair| matches!(pair[0].as_str(), "-s" | "--signal") && pair[1] == "0")
        || words.iter().any(|word| word == "-0" || word == "--signal=0");
    let kept: Vec<String> = words.iter().filter(|word| !is_signal(word)).cloned().collect();
    let options = gnu(
        "suoyntcZ",
        "signal= user= older-than= younger-than= ns= context= regexp exact interactive ignore-case process-group quiet \
         verbose wait list help version",
    )
    .read(&kept);
    if options.asks_only() || zero || options.has("l list V") {
        return;
    }
    let root = options.values("u user").any(|user| matches!(user, "root" | "0"));
    let users = options.has("u user");
    let regexp = options.has("r regexp m");
    let all = regexp && options.operands.iter().any(|pattern| matches_everything(pattern));
    if all && (!users || root) || options.operands.is_empty() && root {
        return call.never(Effect::ProcessKill, &options.operands.join(" "), ALL);
    }
    if options.operands.is_empty() && !users {
        return;
    }
    call.asks(Effect::ProcessKill, &options.operands.join(" "), NAMED);
}

fn skill(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    if words.iter().any(|word| matches!(word.as_str(), "-l" | "-L" | "-n" | "-V" | "--no-action")) || words.is_empty() {
        return;
    }
    let root = words.windows(2).any(|pair| pair[0] == "-u" && matches!(pair[1].as_str(), "root" | "0"));
    if root && !words.iter().any(|word| matches!(word.as_str(), "-c" | "-t" | "-p")) {
        return call.never(Effect::ProcessKill, "root", ALL);
    }
    let only_numbers = words.iter().all(|word| word.starts_with('-') || pid(word) == Pid::Known);
    if !only_numbers {
        call.asks(Effect::ProcessKill, &words.join(" "), NAMED);
    }
}

/// `fuser -k` ends whoever uses a file or a port; on a whole file system that is nearly everybody.
fn fuser(call: &mut Call<'_, '_>) {
    let kept: Vec<String> = call.arguments().iter().filter(|word| !is_signal(word)).cloned().collect();
    let options =
        gnu("nN", "namespace= kill all mount ismountpoint inodes interactive silent user verbose version help")
            .read(&kept);
    if !options.has("k kill") {
        return;
    }
    let whole =
        options.has("m c mount") && options.operands.iter().any(|operand| call.place(operand, true).path == "/");
    if whole {
        return call.never(Effect::ProcessKill, "/", ALL);
    }
    call.asks(Effect::ProcessKill, &options.operands.join(" "), NAMED);
}

fn by_name(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("", "help version"));
    if !options.asks_only() && !options.has("h v V") {
        call.asks(Effect::ProcessKill, &options.operands.join(" "), NAMED);
    }
}

/// `taskkill /F /IM name`, `taskkill /PID number`
fn taskkill(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    if words.iter().any(|word| word == "/?") || words.is_empty() {
        return;
    }
    let dashed = |word: &str, name: &str| word.trim_start_matches(['/', '-']) == name && word.starts_with(['/', '-']);
    let mut numbers = call.name.eq_ignore_ascii_case("tskill");
    for pair in words.windows(2) {
        let filter = pair[1].replace('"', "");
        let all_numbers =
            || matches!(filter.split_whitespace().collect::<Vec<_>>().as_slice(), ["pid", "ne" | "gt" | "ge", _]);
        if dashed(&pair[0], "fi") && all_numbers()
            || (dashed(&pair[0], "im") || dashed(&pair[0], "fi")) && matches_everything(&filter)
        {
            return call.never(Effect::ProcessKill, &pair[1], ALL);
        }
        numbers |= dashed(&pair[0], "pid");
    }
    let named = words.iter().any(|word| dashed(word, "im") || dashed(word, "fi"));
    let values = words.iter().filter(|word| !word.starts_with(['/', '-']));
    if named || !numbers || values.clone().any(|word| pid(word) != Pid::Known) {
        call.asks(Effect::ProcessKill, &words.join(" "), NAMED);
    }
}

/// A list of the numbers of all processes is, for what kills them, the same as `-1`.
fn ps(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let options = gnu("CGgpqstUuoOkN", "format= pid= ppid= user= User= group= Group= sort= tty= sid= cols= columns= rows= lines= width= deselect help version").read(&words);
    let bsd = words.first().is_some_and(|word| !word.starts_with('-') && word.contains('a') && word.contains('x'));
    let bsd_format = words
        .iter()
        .position(|word| !word.starts_with('-') && word.ends_with('o') && word.contains('a') && word.contains('x'));
    let formats: Vec<String> = options
        .values("o format")
        .map(str::to_owned)
        .chain(bsd_format.and_then(|at| words.get(at + 1)).cloned())
        .collect();
    let all = options.has("e A") || bsd || options.has("a") && options.has("x");
    let narrowed = options.has("C p pid ppid u U user User g G t s q N deselect");
    let root = options.values("u U user User").any(|user| matches!(user, "root" | "0"));
    let numbers = formats.len() == 1 && matches!(formats[0].trim_end_matches('='), "pid" | "tgid" | "tid" | "spid");
    if numbers && (all && !narrowed || root) {
        return call.print(EVERY);
    }
    let environment =
        words.first().is_some_and(|word| !word.starts_with('-') && word.contains('e') && !word.contains(','));
    if environment && !options.has("help") {
        return call.print(&text::SECRET.to_string());
    }
    call.print(&format!("{HOLE}\n"));
}

#[cfg(test)]
mod tests {
    use crate::Verdict::{self, Dangerous, Hardline, Safe};
    use crate::{World, judge};

    fn verdict(command: &str) -> Verdict {
        judge(command, &World::new("/home/u", "/home/u/project")).verdict
    }

    #[test]
    fn all_processes_are_never_killed() {
        for (never, twin) in [
            ("kill -9 -1", "kill -9 -4711"),
            ("kill -- -1", "kill -- -4711"),
            ("kill -s KILL -1", "kill -s TERM 4711"),
            ("kill -KILL -- -1", "kill -l KILL"),
            ("kill --signal=9 -1", "kill -0 1"),
            ("xargs kill -9 <<< -1", "xargs echo <<< -1"),
            ("killall5", "killall5 --help"),
            ("killall -9 -r '.*'", "killall -l"),
            ("killall -u root", "killall -0 -u bob"),
            ("pkill -9 .", "pkill -0 node"),
            ("pkill -f '^.*$'", "pgrep -f '.*'"),
            ("pkill -u root", "pgrep -u root"),
            ("pkill -v x", "pgrep -v x"),
            ("ps -eo pid= | xargs kill", "ps -eo pid="),
            ("for p in /proc/[0-9]*; do kill \"${p##*/}\"; done", "for p in /proc/[0-9]*; do echo \"${p##*/}\"; done"),
            ("kill $(pgrep -f .)", "pgrep -f . -c"),
            ("fuser -km /", "fuser -m /"),
            ("taskkill /F /IM *", "tasklist"),
        ] {
            assert_eq!(verdict(never), Hardline, "{never}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }

    #[test]
    fn names_ask_and_numbers_do_not() {
        for (asks, twin) in [
            ("pkill node", "kill 4711 4712"),
            ("pkill -u alice", "sleep 9 & kill $!"),
            ("killall -s KILL java", "sleep 9 & kill -9 %1"),
            ("kill 1", "kill 11"),
            ("kill \"$(cat app.pid)\"", "kill $$"),
            ("kill $(pgrep node)", "kill $(jobs -p)"),
            ("kill -9 $(lsof -ti :80)", "lsof -ti :80"),
            ("pgrep node | xargs kill", "pgrep node | xargs echo"),
            ("ps aux | grep node | awk '{print $2}' | xargs kill", "ps aux | grep node | awk '{print $2}'"),
            ("fuser -k 80/tcp", "fuser 80/tcp"),
            ("kill \"$SOME_PID\"", "p=4711; kill \"$p\""),
            ("taskkill /F /IM node.exe", "taskkill /F /PID 4711"),
            ("kill-port 3000", "kill-port --help"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }
}
