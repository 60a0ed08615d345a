//! Calls of other languages that matter, as a table: which argument is the path, the command, the code.

use std::collections::HashMap;
use std::sync::LazyLock;

/// What a call does with its arguments, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Everything below the path goes.
    DeleteTree,
    /// The files that are named go.
    Delete,
    /// The same, and everything below with the option `recursive`.
    DeleteMaybe,
    /// The file is written.
    Write,
    /// The file is made empty.
    Empty,
    /// The file is opened; the second argument says how.
    Open,
    /// `open(HANDLE, mode, path)`
    OpenHandle,
    /// The file is read.
    Read,
    /// From the first to the second.
    Copy,
    /// The first goes, the second is written.
    Move,
    /// The second becomes a link to the first.
    Link,
    /// A directory or file is made.
    Create,
    /// A text that a shell runs, or a list of words.
    Run,
    /// A program and its arguments, one by one.
    Spawn,
    /// A program and a list of arguments.
    SpawnList,
    /// Code of the same language.
    Evaluate,
    /// Code of the same language, from a file.
    Load,
    /// Path and mode.
    Chmod,
    /// Mode and paths.
    ChmodFirst,
    /// Path and owner.
    Chown,
    /// Process and signal.
    Kill,
    /// Signal and processes.
    KillFirst,
    /// What an address answers.
    Fetch,
    /// An address into a file.
    FetchTo,
    /// One more process.
    Fork,
    /// A connection that a shell could be tied to.
    Socket,
    /// Its arguments are shown.
    Print,
    /// A pattern and what is put in, shown.
    PrintFormat,
    /// A pattern and what is put in.
    Format,
    /// `pack("H*", digits)`
    Pack,
    /// A variable of the environment.
    Variable,
    /// Parts of a path.
    Join,
    /// The home directory.
    Home,
    /// The path with `~` resolved.
    ExpandUser,
    /// Files that match a pattern.
    Glob,
    /// The names in a directory.
    List,
    /// Where it goes on.
    ChangeDirectory,
    /// Base64.
    Base64,
    /// Pairs of hex digits.
    Hex,
    /// A character by its number.
    Character,
    /// The first argument, unchanged as far as anybody cares.
    Same,
    /// The input.
    Input,
    /// A module by its name.
    Module,
    /// The library of the system.
    Native,
    /// The machine stops or restarts.
    Power,
    /// Statements of a database.
    Sql,
}

/// Names as dotted paths. One without a dot means that name behind any module or object; one with a dot must end so.
pub(super) const CALLS: &[(&str, Action)] = {
    use Action::{
        Base64, ChangeDirectory, Character, Chmod, ChmodFirst, Chown, Copy, Create, Delete, DeleteMaybe, DeleteTree,
        Empty, Evaluate, ExpandUser, Fetch, FetchTo, Fork, Format, Glob, Hex, Home, Input, Join, Kill, KillFirst, Link,
        List, Load, Module, Move, Native, Open, OpenHandle, Pack, Power, Print, PrintFormat, Read, Run, Same, Socket,
        Spawn, SpawnList, Sql, Variable, Write,
    };
    &[
        // Python
        ("shutil.rmtree", DeleteTree),
        ("rmtree", DeleteTree),
        ("os.remove", Delete),
        ("os.unlink", Delete),
        ("unlink", Delete),
        ("os.truncate", Empty),
        ("shutil.copy", Copy),
        ("shutil.copyfile", Copy),
        ("shutil.copy2", Copy),
        ("shutil.copytree", Copy),
        ("shutil.move", Move),
        ("os.rename", Move),
        ("os.replace", Move),
        ("os.symlink", Link),
        ("os.link", Link),
        ("os.system", Run),
        ("CDLL", Native),
        ("LoadLibrary", Native),
        ("libc.reboot", Power),
        ("libc.system", Run),
        ("libc.popen", Run),
        ("libc.kill", Kill),
        ("libc.unlink", Delete),
        ("libc.fork", Fork),
        ("os.popen", Run),
        ("subprocess.run", Run),
        ("subprocess.call", Run),
        ("subprocess.check_call", Run),
        ("subprocess.check_output", Run),
        ("subprocess.getoutput", Run),
        ("subprocess.getstatusoutput", Run),
        ("Popen", Run),
        ("check_call", Run),
        ("check_output", Run),
        ("commands.getoutput", Run),
        ("pty.spawn", Run),
        ("pexpect.run", Run),
        ("pexpect.spawn", Run),
        ("create_subprocess_shell", Run),
        ("create_subprocess_exec", Spawn),
        ("os.execv", SpawnList),
        ("os.execve", SpawnList),
        ("os.execvp", SpawnList),
        ("os.execvpe", SpawnList),
        ("os.execl", Spawn),
        ("os.execlp", Spawn),
        ("os.execle", Spawn),
        ("os.spawnlp", Spawn),
        ("os.spawnv", SpawnList),
        ("os.posix_spawn", SpawnList),
        ("builtins.exec", Evaluate),
        ("runpy.run_path", Load),
        ("os.chmod", Chmod),
        ("os.lchmod", Chmod),
        ("os.chown", Chown),
        ("shutil.chown", Chown),
        ("os.kill", Kill),
        ("os.killpg", Kill),
        ("urlopen", Fetch),
        ("requests.get", Fetch),
        ("httpx.get", Fetch),
        ("requests.post", Fetch),
        ("requests.put", Fetch),
        ("httpx.post", Fetch),
        ("urlretrieve", FetchTo),
        ("os.fork", Fork),
        ("socket.socket", Socket),
        ("socket.create_connection", Socket),
        ("os.getenv", Variable),
        ("os.environ.get", Variable),
        ("os.environ.items", Variable),
        ("os.environ.values", Variable),
        ("os.path.join", Join),
        ("os.path.expanduser", ExpandUser),
        ("expanduser", ExpandUser),
        ("Path.home", Home),
        ("os.path.abspath", Same),
        ("os.path.realpath", Same),
        ("Path", Same),
        ("PurePath", Same),
        ("pathlib.Path", Same),
        ("str", Same),
        ("bytes", Same),
        ("repr", Same),
        ("list", Same),
        ("sorted", Same),
        ("glob.glob", Glob),
        ("glob.iglob", Glob),
        ("os.listdir", List),
        ("os.scandir", List),
        ("os.walk", List),
        ("os.chdir", ChangeDirectory),
        ("os.makedirs", Create),
        ("os.mkdir", Create),
        ("os.mknod", Create),
        ("base64.b64decode", Base64),
        ("b64decode", Base64),
        ("standard_b64decode", Base64),
        ("bytes.fromhex", Hex),
        ("unhexlify", Hex),
        ("binascii.unhexlify", Hex),
        ("chr", Character),
        ("sprintf", Format),
        ("pack", Pack),
        ("input", Input),
        ("sys.stdin.read", Input),
        ("stdin.read", Input),
        ("__import__", Module),
        ("import_module", Module),
        ("fileinput.input", Input),
        ("execute", Sql),
        ("executescript", Sql),
        ("executemany", Sql),
        // Ruby
        ("FileUtils.rm_rf", DeleteTree),
        ("FileUtils.rm_r", DeleteTree),
        ("rm_rf", DeleteTree),
        ("rm_r", DeleteTree),
        ("remove_entry", DeleteTree),
        ("remove_entry_secure", DeleteTree),
        ("remove_dir", DeleteTree),
        ("FileUtils.rmtree", DeleteTree),
        ("FileUtils.rm", Delete),
        ("FileUtils.rm_f", Delete),
        ("FileUtils.remove", Delete),
        ("FileUtils.remove_file", Delete),
        ("File.delete", Delete),
        ("File.unlink", Delete),
        ("File.truncate", Empty),
        ("File.write", Write),
        ("File.binwrite", Write),
        ("IO.write", Write),
        ("File.open", Open),
        ("File.new", Open),
        ("File.read", Read),
        ("File.readlines", Read),
        ("IO.read", Read),
        ("IO.readlines", Read),
        ("FileUtils.cp", Copy),
        ("FileUtils.copy", Copy),
        ("FileUtils.cp_r", Copy),
        ("FileUtils.install", Copy),
        ("FileUtils.mv", Move),
        ("FileUtils.move", Move),
        ("File.rename", Move),
        ("FileUtils.ln_s", Link),
        ("FileUtils.ln_sf", Link),
        ("File.symlink", Link),
        ("File.chmod", ChmodFirst),
        ("FileUtils.chmod", ChmodFirst),
        ("FileUtils.chmod_R", ChmodFirst),
        ("Process.kill", KillFirst),
        ("Process.fork", Fork),
        ("Kernel.system", Run),
        ("Kernel.exec", Run),
        ("IO.popen", Run),
        ("Open3.capture2", Spawn),
        ("Open3.capture2e", Spawn),
        ("Open3.capture3", Spawn),
        ("Open3.popen3", Spawn),
        ("Process.spawn", Spawn),
        ("PTY.spawn", Spawn),
        ("instance_eval", Evaluate),
        ("class_eval", Evaluate),
        ("module_eval", Evaluate),
        ("Net.HTTP.get", Fetch),
        ("URI.open", Fetch),
        ("TCPSocket.new", Socket),
        ("TCPSocket.open", Socket),
        ("Dir.glob", Glob),
        ("Dir.children", List),
        ("Dir.entries", List),
        ("Dir.each_child", List),
        ("Dir.home", Home),
        ("File.join", Join),
        ("File.expand_path", ExpandUser),
        ("Dir.chdir", ChangeDirectory),
        ("Base64.decode64", Base64),
        ("Base64.strict_decode64", Base64),
        ("ENV.fetch", Variable),
        ("STDIN.read", Input),
        ("$stdin.read", Input),
        ("gets", Input),
        // Perl
        ("remove_tree", DeleteTree),
        ("File.Path.rmtree", DeleteTree),
        ("File.Copy.copy", Copy),
        ("File.Copy.move", Move),
        ("rename", Move),
        ("symlink", Link),
        ("link", Link),
        ("truncate", Empty),
        ("open", Open),
        ("sysopen", OpenHandle),
        ("system", Run),
        ("exec", Run),
        ("readpipe", Run),
        ("eval", Evaluate),
        ("chmod", ChmodFirst),
        ("chown", Chown),
        ("kill", KillFirst),
        ("fork", Fork),
        ("glob", Glob),
        ("chdir", ChangeDirectory),
        ("decode_base64", Base64),
        ("IO.Socket.INET.new", Socket),
        ("socket", Socket),
        ("connect", Socket),
        ("LWP.Simple.get", Fetch),
        ("do", Load),
        ("require", Module),
        // JavaScript
        ("rmSync", DeleteMaybe),
        ("fs.rm", DeleteMaybe),
        ("promises.rm", DeleteMaybe),
        ("promises.rmdir", DeleteMaybe),
        ("promises.unlink", Delete),
        ("rmdirSync", DeleteMaybe),
        ("fs.rmdir", DeleteMaybe),
        ("removeSync", DeleteTree),
        ("emptyDirSync", DeleteTree),
        ("fse.remove", DeleteTree),
        ("rimraf", DeleteTree),
        ("rimraf.sync", DeleteTree),
        ("rimrafSync", DeleteTree),
        ("unlinkSync", Delete),
        ("fs.unlink", Delete),
        ("truncateSync", Empty),
        ("fs.truncate", Empty),
        ("writeFileSync", Write),
        ("writeFile", Write),
        ("appendFileSync", Write),
        ("appendFile", Write),
        ("createWriteStream", Write),
        ("openSync", Open),
        ("readFileSync", Read),
        ("readFile", Read),
        ("createReadStream", Read),
        ("copyFileSync", Copy),
        ("copyFile", Copy),
        ("cpSync", Copy),
        ("renameSync", Move),
        ("fs.rename", Move),
        ("symlinkSync", Link),
        ("chmodSync", Chmod),
        ("fs.chmod", Chmod),
        ("chownSync", Chown),
        ("execSync", Run),
        ("child_process.exec", Run),
        ("spawnSync", SpawnList),
        ("child_process.spawn", SpawnList),
        ("spawn", SpawnList),
        ("execFileSync", SpawnList),
        ("execFile", SpawnList),
        ("child_process.fork", Fork),
        ("process.kill", Kill),
        ("Function", Evaluate),
        ("vm.runInThisContext", Evaluate),
        ("runInNewContext", Evaluate),
        ("fetch", Fetch),
        ("axios.get", Fetch),
        ("https.get", Fetch),
        ("http.get", Fetch),
        ("net.connect", Socket),
        ("net.createConnection", Socket),
        ("net.Socket", Socket),
        ("os.homedir", Home),
        ("homedir", Home),
        ("path.join", Join),
        ("path.resolve", Join),
        ("readdirSync", List),
        ("globSync", Glob),
        ("process.chdir", ChangeDirectory),
        ("atob", Base64),
        ("mkdirSync", Create),
        ("console.log", Print),
        ("console.error", Print),
        ("fromCharCode", Character),
        ("String.fromCharCode", Character),
        ("Buffer.from", Base64),
        ("Deno.remove", DeleteMaybe),
        ("Deno.removeSync", DeleteMaybe),
        ("Deno.writeTextFile", Write),
        ("Deno.writeTextFileSync", Write),
        ("Deno.readTextFile", Read),
        ("Deno.readTextFileSync", Read),
        ("Deno.Command", SpawnList),
        ("Deno.run", Run),
        ("Deno.Command", SpawnList),
        ("Bun.spawn", Run),
        // PHP
        ("file_put_contents", Write),
        ("fopen", Open),
        ("file_get_contents", Read),
        ("file", Read),
        ("readfile", Read),
        ("copy", Copy),
        ("shell_exec", Run),
        ("passthru", Run),
        ("popen", Run),
        ("proc_open", Run),
        ("pcntl_exec", SpawnList),
        ("pcntl_fork", Fork),
        ("posix_kill", Kill),
        ("fsockopen", Socket),
        ("assert", Evaluate),
        ("create_function", Evaluate),
        ("base64_decode", Base64),
        ("hex2bin", Hex),
        ("getenv", Variable),
        ("scandir", List),
        ("touch", Create),
        ("mkdir", Create),
        ("ftruncate", Empty),
        ("array_map", Same),
        ("array_walk", Same),
        ("reverse", Same),
        ("join", Same),
        ("implode", Same),
        ("scalar", Same),
        ("scalar reverse", Same),
        // Lua, R, Lisp and others
        ("os.execute", Run),
        ("io.popen", Run),
        ("io.open", Open),
        ("loadstring", Evaluate),
        ("load", Evaluate),
        ("dofile", Load),
        ("source", Load),
        ("include", Load),
        ("install_url", Load),
        ("install_github", Load),
        ("install_git", Load),
        ("download", Fetch),
        ("system2", SpawnList),
        ("shell", Run),
        ("file.remove", Delete),
        ("file.copy", Copy),
        ("file.rename", Move),
        ("writeLines", Write),
        ("shell-command", Run),
        ("shell-command-to-string", Run),
        ("async-shell-command", Run),
        ("call-process", Spawn),
        ("start-process", Spawn),
        ("delete-directory", DeleteTree),
        ("delete-file", Delete),
        ("write-region", Write),
        ("kill-emacs", Same),
        ("rm", DeleteMaybe),
        ("run", Run),
        ("System.cmd", SpawnList),
        ("File.rm_rf", DeleteTree),
        ("File.rm", Delete),
        ("deleteDir", DeleteTree),
        ("Runtime.exec", Run),
        ("print", Print),
        ("puts", Print),
        ("p", Print),
        ("pp", Print),
        ("say", Print),
        ("echo", Print),
        ("printf", PrintFormat),
        ("print_r", Print),
        ("var_dump", Print),
        ("cat", Print),
        ("sys.stdout.write", Print),
        ("stdout.write", Print),
        ("io.write", Print),
        ("json.dumps", Same),
        ("JSON.stringify", Same),
        ("dict", Same),
        ("json_encode", Same),
        ("pprint", Print),
    ]
};

/// Methods of a path or a text.
pub(super) const METHODS: &[(&str, Action)] = {
    use Action::{Chmod, Create, Delete, Empty, ExpandUser, Glob, Join, List, Move, Open, Read, Same, Write};
    &[
        ("unlink", Delete),
        ("delete", Delete),
        ("rmtree", Action::DeleteTree),
        ("write_text", Write),
        ("write_bytes", Write),
        ("read_text", Read),
        ("read_bytes", Read),
        ("open", Open),
        ("touch", Create),
        ("mkdir", Create),
        ("rename", Move),
        ("replace", Same),
        ("chmod", Chmod),
        ("joinpath", Join),
        ("expanduser", ExpandUser),
        ("glob", Glob),
        ("rglob", Glob),
        ("iterdir", List),
        ("resolve", Same),
        ("absolute", Same),
        ("decode", Same),
        ("encode", Same),
        ("strip", Same),
        ("read", Same),
        ("text", Same),
        ("body", Same),
        ("to_s", Same),
        ("toString", Same),
        ("trim", Same),
        ("chomp", Same),
        ("truncate", Empty),
        ("join", Same),
        ("each", Same),
        ("map", Same),
        ("forEach", Same),
        ("reverse", Same),
        ("reversed", Same),
        ("lower", Same),
        ("upper", Same),
        ("split", Same),
        ("content", Same),
        ("copy", Same),
        ("unlinkSync", Delete),
        ("to_h", Same),
        ("inspect", Same),
        ("items", Same),
    ]
};

/// The rows by the last part of their names.
static BY_LAST: LazyLock<HashMap<&'static str, Vec<(&'static str, Action)>>> = LazyLock::new(|| {
    let mut rows: HashMap<&str, Vec<(&str, Action)>> = HashMap::new();
    for (name, action) in CALLS {
        rows.entry(name.rsplit('.').next().unwrap_or_default()).or_default().push((name, *action));
    }
    rows
});

/// The action of a dotted name: the longest entry that the name ends with.
pub(super) fn action(path: &str) -> Option<Action> {
    let rows = BY_LAST.get(path.rsplit('.').next()?)?;
    let mut best: Option<(usize, Action)> = None;
    for (name, action) in rows {
        let ends =
            path == *name || path.strip_suffix(name).is_some_and(|rest| rest.ends_with('.') && name.contains('.'));
        let bare = !name.contains('.') && is_unambiguous(name, path);
        if (ends || bare) && best.is_none_or(|(length, _)| name.len() > length) {
            best = Some((name.len(), *action));
        }
    }
    best.map(|(_, action)| action)
}

/// Short names mean something else behind an object: only alone are they the function.
fn is_unambiguous(name: &str, path: &str) -> bool {
    const SHORT: [&str; 43] = [
        "join", "open", "link", "rename", "truncate", "system", "exec", "eval", "chmod", "chown", "kill", "fork",
        "glob", "chdir", "socket", "connect", "do", "require", "spawn", "fetch", "file", "copy", "popen", "load",
        "shell", "rm", "run", "print", "p", "cat", "echo", "printf", "say", "list", "str", "bytes", "dict", "touch",
        "mkdir", "input", "assert", "symlink", "Path",
    ];
    if !SHORT.contains(&name) {
        return true;
    }
    let before = path.strip_suffix(name).unwrap_or_default().trim_end_matches('.');
    matches!(
        before,
        "" | "Kernel"
            | "CORE"
            | "CORE.GLOBAL"
            | "builtins"
            | "__builtins__"
            | "globalThis"
            | "window"
            | "cp"
            | "child_process"
            | "POSIX"
            | "fs"
            | "os"
            | "Base"
            | "Process"
            | "proc"
            | "std"
            | "execa"
            | "shelljs"
    )
}
