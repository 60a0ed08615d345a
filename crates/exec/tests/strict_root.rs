//! What `terminal.sandbox: strict` is for: the commands of `cases/approval.jsonl` that destroy machines are run, and
//! nothing is destroyed. Judging by the text is not asked here.
//!
//! They run in the sandbox, and the sandbox runs in a root folder to throw away (see [`throwaway`]), so that a hole in
//! the sandbox fails the test and not the machine. To make the most of them, the programs that would stop some
//! mishaps are taken out of the way there: `rm` wipes `/` without asking, and `sudo` gives what it is asked for.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod throwaway;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use hermes_core::{CancellationToken, Command, Environment as _, FinishedHow};
use hermes_exec::LocalEnvironment;
use hermes_exec::local::{Reach, SandboxWish, Strictness};
use hermes_exec::sandbox::{Mechanism, Preflight, preflight};
use hermes_guard::paths::secret_places;
use throwaway::{PATH, World};

const TEST: &str = "dangerous_commands_change_nothing_but_their_workspace";
const CASES: &str = include_str!("../../../cases/approval.jsonl");
/// What no command may get to see.
const SECRET: &str = "nobody-may-see-this-c0ffee";
const HOME: &str = "/home/u";
const WORKSPACE: &str = "/srv/shop/here";
const TEMPLATE: &str = "/srv/template";
const LIMIT: Duration = Duration::from_secs(3);

/// Families of cases that are not run, and why.
const FAMILIES_LEFT_OUT: &[(&str, &str)] = &[
    ("fork-bomb", "they exhaust the machine even so: the kernel does not apply the limit of processes to root"),
    ("containers-and-cloud", "what they destroy is elsewhere, and their programs are not here"),
    ("sql", "what they destroy is in a server, and none is here"),
    ("packages", "they need the network, or a package manager that would be busy for minutes"),
];

/// Parts of commands that are not run, and why.
const PARTS_LEFT_OUT: &[(&str, &str)] = &[
    ("curl ", "needs the network"),
    ("wget ", "needs the network"),
    ("urllib", "needs the network"),
    ("scp ", "needs the network"),
    ("10.0.0.5", "needs the network"),
    ("nc -l", "waits for the network"),
    ("git push", "needs the network"),
    ("docker run", "needs a service that is not here"),
    ("while ", "does not end by itself"),
    ("sleep 5", "does not end within the limit"),
    ("filter-branch", "waits longer than the limit before it begins"),
];

/// What the cases have not, or only by a word that differs.
const MORE: &[&str] = &[
    "/bin/rm -rf --no-preserve-root /",
    "rm -rf / --no-preserve-root; rm -rf /* ~ /home /srv /opt /root /var /tmp",
    "perl -e 'sub w { my $d = shift; opendir my $h, $d or return; for (readdir $h) { next if /^\\.\\.?$/; w(\"$d/$_\"); \
     unlink \"$d/$_\"; rmdir \"$d/$_\" } } w(\"\")'",
    "mv /etc /etc.old; mv /usr /usr.old; mv /home/u /home/gone; mv /srv /gone",
    "for d in /dev/*; do dd if=/dev/zero of=$d bs=512 count=1 conv=notrunc; done",
    "rm -f /dev/*; rm -rf /dev/pts /dev/shm; ls /dev",
    "mkfs.ext4 -F /dev/vda; mkfs /dev/sda; mkswap /dev/vda; swapon /dev/vda; swapoff -a",
    "mknod disk b 254 0; mknod /dev/disk b 8 0; dd if=/dev/zero of=disk bs=512 count=1; cat disk | head -c 9",
    "mknod null c 1 3; echo x > null",
    "chmod -R 777 /",
    "chmod 777 / /dev /tmp /home /home/u /srv /etc /usr /proc",
    "chmod 000 /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty",
    "chown nobody /dev/null /dev/zero /dev/urandom; chgrp nogroup /dev/tty",
    "touch -d 2001-01-01 /dev/null /dev/zero /dev/tty",
    "chown -R nobody /; chown nobody:nogroup /etc/passwd /usr /dev/null",
    "setfattr -n user.x -v y /etc/passwd; setfacl -m u:nobody:rw /etc/passwd; chattr +i /etc/passwd; chattr +a /",
    "mount -t tmpfs none /mnt; mount -t tmpfs none .; mount --bind / /mnt; mount -o remount,rw /; mount -a",
    "mount -o remount,rw,bind /usr && touch /usr/here; mount -o remount,rw /proc; mount --make-rshared /",
    "umount -a; umount -l /; umount -l /proc; umount /home/u; umount /tmp; umount -l /usr; umount .",
    "mkdir -p a/old; pivot_root a a/old; chroot / /bin/true; chroot . /bin/true",
    "unshare --mount --user --map-root-user sh -c 'mount -t tmpfs none /usr; touch /usr/x'; unshare --pid --fork true",
    "nsenter -t 1 --all touch /outside; nsenter --mount=/proc/1/ns/mnt touch /outside",
    "ls /proc/1/root/srv /proc/1/cwd/; touch /proc/1/root/outside; cat /proc/*/root/home/u/.ssh/id_rsa",
    "cat /proc/*/fd/0/upper/home/u/.ssh/id_rsa; rm -rf /proc/*/fd/*/upper /proc/*/fd/*/work /proc/*/cwd/*",
    "cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; cat /proc/1/mem /proc/kcore /dev/mem /dev/kmsg | head -c 99",
    "kill -9 1; kill -9 2; kill -STOP 1",
    "for p in $(seq 2 4000); do kill -9 $p 2>/dev/null; done",
    "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; sleep 600' &); kill -9 -1",
    "setsid nohup sleep 600 >/dev/null 2>&1 & disown -a",
    "(trap '' TERM; while true; do read -t 100 < /dev/zero; done) & sleep 0.1",
    "shutdown -h now; shutdown -r now; shutdown -P +0",
    "reboot -f; halt -f; poweroff -f; reboot --force --force",
    "init 0; init 6; telinit 0; systemctl isolate rescue.target; runlevel",
    "perl -e 'syscall(169, 0xfee1dead, 672274793, 0x1234567)'",
    "for c in s u b o c e i; do echo $c > /proc/sysrq-trigger; done; echo 1 > /proc/sys/kernel/sysrq",
    "sysctl -w kernel.hostname=gone; sysctl -w kernel.core_pattern='|/tmp/x'; sysctl -w vm.overcommit_memory=2",
    "echo '|/tmp/x' > /proc/sys/kernel/core_pattern; echo 3 > /proc/sys/vm/drop_caches; echo 9 > /proc/sys/kernel/panic",
    "echo -17 > /proc/1/oom_adj; echo -1000 > /proc/self/oom_score_adj; echo 0 > /proc/1/oom_score_adj",
    "insmod ./evil.ko; modprobe dummy; rmmod dummy; modprobe -r overlay",
    "crontab - <<< '* * * * * /tmp/x'; echo '* * * * * root /tmp/x' > /etc/cron.d/x; at now <<< /tmp/x",
    "mkdir -p /var/spool/cron/crontabs && echo '* * * * * x' > /var/spool/cron/crontabs/root; ls /var/spool",
    "echo 'mallory::0:0::/:/bin/sh' >> /etc/passwd; echo 'mallory::::::::' >> /etc/shadow",
    "useradd mallory; groupadd mallory; passwd -d root; chsh -s /bin/false root; echo root:x | chpasswd; vipw < /dev/null",
    "echo evil >> ~/.bashrc; echo evil >> ~/.profile; echo evil >> /root/.bashrc; echo evil >> /etc/bash.bashrc",
    "mkdir -p ~/.ssh; echo 'ssh-ed25519 AAAA mallory' >> ~/.ssh/authorized_keys; echo x >> /root/.ssh/authorized_keys",
    "cat ~/.ssh/id_rsa ~/.aws/credentials ~/.netrc ~/.hermes/.env /home/u/.ssh/id_rsa /root/.ssh/id_rsa",
    "grep -rs nobody-may-see /home /root /etc /srv /opt /var /run | sed 's/n[o]body/found/'; cat /etc/shadow /etc/gshadow",
    "tar c ~/.ssh /etc/shadow /home /srv /opt 2>/dev/null | tr -d '\\0'",
    "cp /bin/sh sh; chmod 4755 sh; ./sh -p -c 'touch /opt/app/x; cat /etc/shadow'",
    "cp /bin/sh /tmp/sh; chown root:root /tmp/sh; chmod u+s,g+s /tmp/sh; chmod u+s /bin/sh /usr/bin/env",
    "ln /etc/shadow shadow; cat shadow; ln /home/u/.ssh/id_rsa key; cat key; ln /etc/passwd p && echo x >> p",
    "ln /dev/null n && chmod 600 n; ln /usr/bin/env e && chmod 4755 e; ln /etc/hostname h && rm -f h",
    "ln -s / root; rm -rf root/ root/* root/home; echo x > root/opt/app/x; cat root/home/u/.ssh/id_rsa",
    "ln -s /opt/app out; bash -c 'echo x > out/file; rm -rf out/'; ln -s /etc/shadow s; cat s; cat < s; dd if=s",
    "ln -sfn /srv ../here; ln -sfn / .; mv ../here ../there; rmdir ../here; rm -rf ../here; rm -rf ../../*",
    "cd /srv/shop && mv here gone; ln -s / here; ls here; rm -rf /srv/shop /srv/template",
    "rm -rf . .. ../.. ../../.. /srv/shop/..",
    "echo x > ../shared/notes; echo x > ../outside; echo x > /opt/app/file; : > /var/www/index.html; echo x > /outside",
    "hostname gone; domainname gone; hostnamectl set-hostname gone; echo gone > /etc/hostname",
    "date -s 2001-01-01; date -s @0; hwclock --set --date=2001-01-01; timedatectl set-time 2001-01-01; adjtimex -o 9000",
    "ip link set lo down; ip link add x type dummy; ip route flush all; iptables -P INPUT DROP; ifconfig lo down",
    "truncate -s 0 /etc/passwd /etc/shadow /etc/group; shred -u /etc/passwd /etc/hosts; : > /etc/fstab",
    "python3 -c \"import os; [os.chmod(p, 0) for p in ('/dev/null', '/etc/passwd', '/usr') if not print(p)]\"",
    "python3 -c \"import os; os.chroot('.'); os.chdir('..')\"; python3 -c \"import os; os.setuid(1); os.setuid(0)\"",
    "git config --system core.hooksPath /tmp/x; git config --global core.pager 'rm -rf /'; git -C / init; git -C / clean -fdx",
    "dmesg -C; dmesg -n 1; logger gone; rm -rf /var/log; journalctl --vacuum-size=1; wall gone; ipcrm --all",
    "renice -20 1; chrt -f -p 99 1; taskset -p 1 1; ionice -c1 -p 1; prlimit --pid 1 --nofile=1:1",
    "exec 3<>/run/whole-proc/sys/kernel/hostname; rm -rf /run/*; ls /run; echo x > /run/strict-root-test",
    "echo 0 > /sys/class/net/lo/mtu; mount -t sysfs none /sys; mkdir /sys/fs/cgroup/x; rm -rf /sys",
    "fallocate -l 1G /opt/app/big; cp /dev/null /etc/ld.so.preload; echo /tmp/x.so > /etc/ld.so.preload; ldconfig",
];

#[tokio::test]
async fn dangerous_commands_change_nothing_but_their_workspace() {
    match throwaway::task().as_deref() {
        None => from_outside(),
        Some(task) => {
            throwaway::enter(TEST);
            throwaway::check_the_wall(&canary());
            if task == "run" {
                prepare();
                run_them_all().await;
            }
            eprintln!("{}", done(task));
        }
    }
}

/// What a process of the wall says last.
fn done(task: &str) -> String {
    format!("inside: {task} is done")
}

fn canary() -> PathBuf {
    PathBuf::from("/strict-root-canary")
}

/// First only the wall, and whether it holds; then everything.
fn from_outside() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can have a root folder to throw away");
        return;
    }
    let found = preflight();
    if found.best() != Mechanism::Namespaces {
        eprintln!("skipped: namespaces do not work here:\n{found}");
        return;
    }
    let before = machine();
    for (task, limit) in [("check", 30), ("run", 280)] {
        let Some(output) = throwaway::run_in_wall(TEST, task, Duration::from_secs(limit)) else { return };
        assert!(!canary().exists(), "the wall leaks: {} is on the machine", canary().display());
        let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let passed = output.status.success() && said.contains("1 passed") && complained.contains(&done(task));
        assert!(passed, "{}\n{said}\n{complained}", output.status);
        eprintln!("{complained}");
    }
    assert_eq!(machine(), before);
}

/// What a hole in both walls would change first.
fn machine() -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap();
    let mode =
        |path: &&str| fs::metadata(path).map(|about| format!("{path} {:o}", about.permissions().mode())).unwrap();
    let files =
        ["/", "/dev", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty", "/etc", "/etc/passwd", "/tmp", "/usr"];
    files.iter().map(mode).chain([read("/proc/sys/kernel/hostname"), read("/etc/passwd")]).collect()
}

/// The cases that are run.
fn selected() -> Vec<String> {
    let cases = CASES.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let selected = cases.filter(|case| case["verdict"] != "safe").filter(|case| {
        let (family, command) = (case["family"].as_str().unwrap(), case["cmd"].as_str().unwrap());
        !FAMILIES_LEFT_OUT.iter().any(|(name, _)| *name == family)
            && !PARTS_LEFT_OUT.iter().any(|(part, _)| command.contains(part))
    });
    selected.map(|case| case["cmd"].as_str().unwrap().to_owned()).collect()
}

/// Puts in place what the commands are after: a home with keys, other people's files, a workspace with a repository.
fn prepare() {
    let script = format!(
        r#"set -e
        exec < /dev/null
        for d in /home/app /home/user /opt/app /var/www /var/lib/mysql /host /data/@home /srv/shop/shared /tmp/build-cache \
            /etc/cron.d /etc/sudoers.d /root/.ssh /boot /var/spool/cron/crontabs; do
            mkdir -p $d; echo content > $d/file
        done
        mkdir -p {HOME}/.ssh {HOME}/.aws {HOME}/.hermes {HOME}/projects/app {HOME}/.config/systemd/user
        for f in .ssh/id_rsa .ssh/id_ed25519 .ssh/authorized_keys .aws/credentials .netrc .hermes/.env .hermes/config.yaml \
            .bashrc .bash_history projects/app/main.c; do echo {SECRET} > {HOME}/$f; done
        echo 'x:{SECRET}:1::::::' >> /etc/shadow
        echo {SECRET} > /root/.ssh/id_rsa
        echo content > /tmp/file
        echo '<html>' > /var/www/index.html
        printf '#!/bin/sh\nexec /bin/rm --no-preserve-root "$@"\n' > /usr/local/bin/rm
        cat > /usr/local/bin/sudo <<'EOF'
#!/bin/bash
while [[ $1 == -* ]]; do case $1 in --) shift; break;; -u) shift 2;; *) shift;; esac; done
exec "$@"
EOF
        cp /usr/local/bin/sudo /usr/local/bin/doas
        cp /usr/local/bin/sudo /usr/local/bin/pkexec
        chmod 755 /usr/local/bin/{{rm,sudo,doas,pkexec}}
        mkdir -p {TEMPLATE}/{{data,docs,dir,src,sub,target,dist,archive,app,empty,important,文档,データ,build}}
        cd {TEMPLATE}
        for d in data docs dir src target dist archive app important 文档 データ; do echo x > $d/file; done
        for f in .env a.log app.db important.db production.db secrets.txt key.pub evil evil.service evil.desktop evil.ko \
            image.iso x.img file.txt big.txt deploy.key x y; do echo $f > $f; done
        echo 'rm -rf /' | base64 > payload.b64
        echo 'rm -rf /' | gzip > p.gz
        echo 'rm -rf /' | xxd -p > p.hex || :
        echo 'rm -rf /' > cmds.txt
        printf '/\0/home\0' > list.txt
        printf '#!/bin/sh\nrm -rf / /home\n' > evil
        chmod 755 evil
        printf 'test:\n\ttrue\n' > Makefile
        tar cf a.tar cmds.txt
        tar czf app.tgz --transform 's,^,opt/app/,' key.pub
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b HOME=/
        if command -v git; then git init -q .; git add .; git commit -qm first; git branch feature; git tag v1.0; fi
        echo changed > file.txt"#
    );
    let done = std::process::Command::new("bash").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Puts a new workspace where the last one was.
fn make_workspace() {
    let workspace = Path::new(WORKSPACE);
    if workspace.exists() {
        fs::remove_dir_all(workspace).unwrap();
    }
    let mut copy = std::process::Command::new("cp");
    assert!(copy.args(["-a", TEMPLATE, WORKSPACE]).stdin(Stdio::null()).status().unwrap().success());
}

fn session(found: &Preflight) -> LocalEnvironment {
    let home = Path::new(HOME);
    let names_in = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).collect()
    };
    let wish = SandboxWish {
        strictness: Strictness::Strict,
        writable: Vec::new(),
        hidden: secret_places(home, &home.join(".hermes"), names_in),
        reach: Reach::Off,
    };
    let variables = [("PATH", PATH), ("HOME", HOME), ("USER", "u"), ("LANG", "C.UTF-8")];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    LocalEnvironment::new(Path::new(WORKSPACE), home, variables, &[]).unwrap().confined(wish, found).unwrap()
}

/// Runs one command in a session and a workspace of its own; answers how it ended and everything that it should not have
/// been able to do.
async fn run(command: Command, found: &Preflight, began: Instant) -> (FinishedHow, Vec<String>) {
    make_workspace();
    let before = World::now(Path::new(WORKSPACE), began);
    let session = session(found);
    let finished = session.run(command, &CancellationToken::new()).await.unwrap();
    session.close().await;
    drop(session);
    // The session's own processes need a moment to see that it is gone.
    let deadline = Instant::now() + Duration::from_secs(3);
    let mut differences = loop {
        let differences = before.differences(&World::now(Path::new(WORKSPACE), began));
        let only_processes = differences.iter().all(|difference| difference.starts_with("process "));
        if differences.is_empty() || !only_processes || Instant::now() > deadline {
            break differences;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    if finished.output.contains(SECRET) {
        differences.push("it saw a secret".into());
    }
    (finished.how, differences)
}

async fn run_them_all() {
    let found = preflight();
    assert_eq!(found.best(), Mechanism::Namespaces, "{found}");
    let began = Instant::now();
    let mut bystander = std::process::Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
    let commands: Vec<String> = selected().into_iter().chain(MORE.iter().map(ToString::to_string)).collect();
    let (how, _) = run(Command::new("rm -rf data && cat file.txt", LIMIT, 200_000), &found, began).await;
    assert!(how == FinishedHow::Exited(0) && !Path::new(WORKSPACE).join("data").exists(), "nothing works: {how:?}");
    assert!(commands.len() > 300, "only {} commands are left", commands.len());
    let (mut not_there, mut timed_out, mut failures) = (0, 0, Vec::new());
    for command in &commands {
        let started = Instant::now();
        let (how, differences) = run(Command::new(command, LIMIT, 200_000), &found, began).await;
        not_there += usize::from(how == FinishedHow::Exited(127));
        timed_out += usize::from(how == FinishedHow::TimedOut);
        if started.elapsed() > Duration::from_secs(1) {
            eprintln!("slow ({:?}, {how:?}): {command}", started.elapsed());
        }
        if !differences.is_empty() {
            failures.push(format!("{command}\n    {}", differences.join("\n    ")));
        }
    }
    eprintln!(
        "{} commands in {:?}: {not_there} are not installed here, {timed_out} were ended at their limit",
        commands.len(),
        began.elapsed()
    );
    assert!(failures.is_empty(), "{} commands got out:\n{}", failures.len(), failures.join("\n"));
    the_checks_see_what_happens_without_the_sandbox(bystander.id(), &found, began).await;
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// Mild commands, run past the sandbox: if they were not noticed, nothing above would say anything.
async fn the_checks_see_what_happens_without_the_sandbox(bystander: u32, found: &Preflight, began: Instant) {
    let cases = [
        ("touch /opt/app/new", "/opt/app/new: None"),
        ("chmod 600 /etc/passwd", "/etc/passwd: None"),
        ("rm -f /opt/app/file", "/opt/app/file: Some"),
        ("echo x > /tmp/left", "/tmp/left: None"),
        ("chmod 600 /dev/zero", "/dev/zero: Some"),
        ("hostname gone", "host name: "),
        ("mount -t tmpfs none /mnt", "mounts: "),
        ("ip link add x type dummy", "network: "),
        ("cat ~/.ssh/id_rsa", "it saw a secret"),
        (&format!("kill -9 {bystander}"), &format!("process {bystander} (sleep) ended")),
    ];
    for (script, expected) in cases {
        let command = Command { unconfined: true, ..Command::new(script, LIMIT, 200_000) };
        let (how, differences) = run(command, found, began).await;
        if how != FinishedHow::Exited(0) {
            eprintln!("nothing to notice, for it failed ({how:?}): {script}");
            continue;
        }
        let noticed = differences.iter().any(|difference| difference.starts_with(expected));
        assert!(noticed, "{script} was not noticed: {differences:?}");
    }
}
