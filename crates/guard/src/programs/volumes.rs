//! Managers of volumes, snapshots and backups: removing what they keep asks, listing it does not. They write over raw
//! disks as well where they take a disk in.

use super::options::{gnu, leading};
use super::rows::{self, Asked, Tool, asked, tool};
use super::{Kind, Program, plain, runs};
use crate::eval::{Call, Writing};
use crate::finding::{Effect, TargetClass};
use crate::text;

pub(super) const PROGRAMS: &[Program] = &[
    plain(
        &[
            "lvremove",
            "vgremove",
            "pvremove",
            "lvreduce",
            "vgreduce",
            "vgexport",
            "vgmerge",
            "vgsplit",
            "pvmove",
            "pvresize",
            "vgcfgrestore",
            "lvrename",
            "vgrename",
            "vgimportclone",
        ],
        lvm_removes,
    ),
    plain(&["lvchange", "vgchange", "pvchange", "lvconvert", "lvresize"], lvm_changes),
    plain(&["pvcreate", "vgcreate", "vgextend"], lvm_takes),
    runs(&["lvm"], lvm),
    plain(&["zfs"], zfs),
    plain(&["zpool"], zpool),
    plain(&["btrfs"], btrfs),
    plain(
        &[
            "snapper",
            "timeshift",
            "tmutil",
            "borg",
            "borgmatic",
            "restic",
            "rdiff-backup",
            "duplicity",
            "bup",
            "stratis",
            "drbdadm",
            "iscsiadm",
            "targetcli",
            "gluster",
            "rbd",
            "ceph",
            "multipath",
            "dmraid",
            "vdo",
            "storcli",
            "megacli",
            "MegaCli64",
            "storcli64",
            "ssacli",
            "hpssacli",
            "arcconf",
            "tw_cli",
            "kopia",
            "btrbk",
            "sanoid",
            "tarsnap",
        ],
        manager,
    ),
    Program { names: &["vssadmin", "wbadmin", "diskshadow"], model: shadows, kind: Kind::Windows },
    Program {
        names: &["manage-bde", "fsutil", "mountvol", "cipher", "chkdsk", "bcdedit", "bcdboot", "bootsect", "reagentc"],
        model: windows_disks,
        kind: Kind::Windows,
    },
];

const WHY: &str = "deletes or changes volumes, snapshots or backups";

fn lvm_removes(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("ALSlnsf?", "size= extents= select= test yes force help version"));
    if options.asks_only() || options.has("t test h") {
        return;
    }
    call.asks(Effect::Disk, &options.operands.join(" "), WHY);
}

fn lvm_changes(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("acDLlmMprS", "activate= size= extents= select= resizefs test yes force merge splitmirrors= uncache repair type= help version"));
    if options.asks_only() || options.has("t test h") {
        return;
    }
    let grows = options.value("L l size extents").is_some_and(|size| size.starts_with('+'));
    let activates = options.value("a activate").is_some_and(|value| value.contains('y'));
    if call.name == "lvresize" && grows || activates {
        return;
    }
    call.asks(Effect::Disk, &options.operands.join(" "), WHY);
}

/// A disk that is taken in gets a new header.
fn lvm_takes(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "AcklMpsuZf?",
        "physicalextentsize= maxphysicalvolumes= uuid= restorefile= test yes force help version",
    ));
    if options.asks_only() || options.has("t test h") {
        return;
    }
    disks(call, &options.operands);
}

fn disks(call: &mut Call<'_, '_>, words: &[String]) {
    for word in words {
        let place = call.place(word, true);
        if place.class == TargetClass::Device || text::is_unknown(word) && word.contains("/dev") {
            call.write_place(&place, Writing::Replace);
        }
    }
}

/// `lvm lvremove …`; without a command it reads commands from its input.
fn lvm(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    if words.first().is_some_and(|word| !word.starts_with('-')) {
        return call.run(words);
    }
    for line in call.input().unwrap_or_default().lines().take(200) {
        let words = crate::shell::split(line);
        if !words.is_empty() {
            call.run(words);
        }
    }
}

fn zfs(call: &mut Call<'_, '_>) {
    let Some((verb, rest)) = call.arguments().split_first().map(|(verb, rest)| (verb.clone(), rest.to_vec())) else {
        return;
    };
    let options = gnu("otdxsSLlbVi", "help").read(&rest);
    let asks = match verb.as_str() {
        "destroy" => !options.has("n"),
        "rollback" | "unmount" | "umount" | "promote" | "unload-key" | "change-key" | "unshare" | "release"
        | "upgrade" | "rename" | "unallow" | "allow" | "unjail" | "set" | "inherit" => true,
        "receive" | "recv" => options.has("F") && !options.has("n"),
        verb => text::is_unknown(verb),
    };
    if asks {
        call.asks(Effect::Disk, &options.operands.join(" "), WHY);
    }
}

fn zpool(call: &mut Call<'_, '_>) {
    let Some((verb, rest)) = call.arguments().split_first().map(|(verb, rest)| (verb.clone(), rest.to_vec())) else {
        return;
    };
    let options = gnu("oORtmdc", "help").read(&rest);
    match verb.as_str() {
        "labelclear" => {
            for operand in options.operands {
                call.write(&operand, Writing::Replace);
            }
        }
        "create" | "add" | "attach" | "replace" if !options.has("n") => {
            disks(call, &options.operands);
            if verb != "create" || options.has("f") {
                call.asks(Effect::Disk, &options.operands.join(" "), WHY);
            }
        }
        "destroy" | "offline" | "detach" | "remove" | "export" | "split" | "reguid" | "upgrade" | "set"
        | "initialize" | "reopen" | "checkpoint" => call.asks(Effect::Disk, &options.operands.join(" "), WHY),
        "import" if options.has("F X D") && !options.has("n") => {
            call.asks(Effect::Disk, &options.operands.join(" "), WHY);
        }
        verb if text::is_unknown(verb) => call.cannot_tell("tells a pool something that cannot be told"),
        _ => {}
    }
}

/// Groups and verbs of `btrfs` may be cut short.
fn btrfs(call: &mut Call<'_, '_>) {
    let options = leading("", "help version format=").read(call.arguments());
    if options.asks_only() {
        return;
    }
    let words: Vec<String> = options.operands.iter().filter(|word| !word.starts_with('-')).cloned().collect();
    let all = options.operands.clone();
    let (Some(group), verb) = (words.first(), words.get(1).cloned().unwrap_or_default()) else { return };
    let is = |full: &str, least: usize, word: &str| word.len() >= least && full.starts_with(word);
    if text::is_unknown(group) || text::is_unknown(&verb) {
        return call.cannot_tell("tells a file system something that cannot be told");
    }
    if all.iter().any(|word| word == "--help" || word == "--dry-run") {
        return;
    }
    let asks = if is("subvolume", 2, group) {
        is("delete", 1, &verb) || is("set-default", 4, &verb)
    } else if is("device", 1, group) {
        if is("add", 1, &verb) {
            disks(call, &words[2..]);
        }
        is("delete", 2, &verb) || is("remove", 3, &verb)
    } else if is("replace", 3, group) {
        if is("start", 3, &verb) {
            disks(call, words.get(3..4).unwrap_or_default());
        }
        is("start", 3, &verb) || is("cancel", 1, &verb)
    } else if is("check", 2, group) {
        all.iter().any(|word| {
            matches!(word.as_str(), "--repair" | "--init-csum-tree" | "--init-extent-tree" | "--clear-space-cache")
        })
    } else if is("rescue", 3, group) {
        true
    } else if is("filesystem", 1, group) {
        is("resize", 3, &verb) || is("label", 1, &verb) && words.len() > 3
    } else if is("quota", 5, group) {
        is("disable", 1, &verb)
    } else if is("property", 1, group) {
        is("set", 1, &verb)
    } else if is("qgroup", 2, group) {
        is("destroy", 1, &verb) || is("limit", 1, &verb)
    } else {
        false
    };
    if asks {
        call.asks(Effect::Disk, &words.join(" "), WHY);
    }
}

const MANAGERS: &[Tool] = &[
    tool(
        "snapper",
        gnu("ctdpuaf", "config= type= cleanup-algorithm= description= root= no-dbus help version"),
        "delete remove rm undochange rollback cleanup delete-config modify",
        "",
    ),
    tool(
        "timeshift",
        gnu(
            "",
            "snapshot= target= comments= tags= snapshot-device= target-device= delete delete-all restore list create check",
        ),
        "-delete -delete-all -restore",
        "",
    ),
    tool(
        "tmutil",
        gnu("dpt", ""),
        "delete deletelocalsnapshots thinlocalsnapshots disable restore removedestination deleteinprogress setdestination disablelocal removeexclusion stopbackup inheritbackup associatedisk",
        "",
    ),
    tool(
        "borg",
        gnu(
            "ape",
            "glob-archives= prefix= keep-daily= keep-weekly= keep-monthly= keep-last= keep-within= repo= dry-run list stats",
        ),
        "delete prune break-lock compact recreate",
        "n dry-run",
    ),
    tool("borgmatic", gnu("cv", "config= dry-run"), "prune compact", "n dry-run"),
    tool(
        "restic",
        gnu(
            "rpo",
            "repo= password-file= password-command= keep-last= keep-daily= keep-weekly= keep-monthly= keep-yearly= keep-within= tag= host= path= prune dry-run",
        ),
        "forget prune rewrite unlock key/remove key/add repair",
        "n dry-run",
    ),
    tool("rdiff-backup", gnu("", "remove-older-than= force"), "-remove-older-than remove", ""),
    tool(
        "duplicity",
        gnu("", "force"),
        "remove-older-than remove-all-but-n-full remove-all-inc-of-but-n-full cleanup",
        "dry-run",
    ),
    tool("bup", gnu("", ""), "rm gc prune-older", ""),
    tool(
        "kopia",
        gnu("", ""),
        "snapshot/delete snapshot/expire blob/delete content/delete repository/disconnect policy/delete policy/remove maintenance/run",
        "",
    ),
    tool("btrbk", gnu("c", "config= dry-run"), "clean prune run", "n dry-run"),
    tool("sanoid", gnu("", "configdir= prune-snapshots cron readonly"), "-prune-snapshots -cron", "readonly"),
    tool("tarsnap", gnu("fCX", "nuke keyfile= print-stats list-archives"), "-d -nuke", ""),
    tool(
        "stratis",
        gnu("", ""),
        "pool/destroy filesystem/destroy fs/destroy pool/stop filesystem/rename pool/init-cache",
        "",
    ),
    tool(
        "drbdadm",
        gnu("", ""),
        "down secondary create-md wipe-md disconnect detach invalidate primary del-minor",
        "d dry-run",
    ),
    tool(
        "iscsiadm",
        gnu("mTpoIrnv", "mode= targetname= portal= op= logout logoutall= login"),
        "-u -U -logout -logoutall",
        "",
    ),
    tool("targetcli", gnu("", ""), "clearconfig */delete restoreconfig", ""),
    tool(
        "gluster",
        gnu("", "mode="),
        "volume/stop volume/delete volume/remove-brick volume/replace-brick peer/detach snapshot/delete volume/reset",
        "",
    ),
    tool(
        "rbd",
        gnu("pcn", "pool= image= cluster= no-progress"),
        "rm remove resize snap/rm snap/purge snap/rollback trash/purge trash/rm trash/mv mirror/disable unmap group/remove pool/init",
        "",
    ),
    tool(
        "ceph",
        gnu("cnk", "cluster= format="),
        "osd/out osd/down osd/rm osd/destroy osd/purge osd/set osd/pool/delete osd/pool/rm fs/rm fs/fail mon/remove orch/rm orch/stop orch/restart config/rm config/set auth/del auth/rm mds/fail",
        "",
    ),
    tool("multipath", gnu("vpbi", ""), "-f -F -w -W", "l ll"),
    tool("dmraid", gnu("facC", ""), "-x -E -r", "s"),
    tool("vdo", gnu("n", "name= all"), "remove stop deactivate disableCompression create", ""),
];

fn manager(call: &mut Call<'_, '_>) {
    // Controllers of arrays take their words in any order.
    if matches!(
        call.name.as_str(),
        "storcli" | "storcli64" | "megacli" | "MegaCli64" | "ssacli" | "hpssacli" | "arcconf" | "tw_cli"
    ) {
        let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
        let changes = [
            "delete",
            "del",
            "erase",
            "init",
            "clear",
            "set",
            "remove",
            "-cfglddel",
            "-cfgclr",
            "-ldinit",
            "-pdclear",
            "modify",
            "create",
            "flasherase",
            "-cfgforeign",
        ];
        if words.iter().any(|word| changes.contains(&word.as_str())) && !words.iter().any(|word| word == "show") {
            call.asks(Effect::Disk, &words.join(" "), WHY);
        }
        return;
    }
    rows::judge(call, MANAGERS, Effect::Disk, WHY);
}

/// Shadow copies and backups of Windows.
fn shadows(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    let options = gnu("", "").read(&words);
    if asked(&options, "delete resize revert disable start stop create restore") == Asked::Yes
        && !(words.first().is_some_and(|word| word == "create") && call.name.eq_ignore_ascii_case("vssadmin"))
    {
        return call.asks(Effect::Disk, &words.join(" "), WHY);
    }
    if call.name.eq_ignore_ascii_case("diskshadow") && words.iter().any(|word| word.starts_with("/s") || word == "-s") {
        call.cannot_tell("runs a script about shadow copies that cannot be read here");
    }
}

fn windows_disks(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    let any = |list: &[&str]| {
        words.iter().any(|word| list.iter().any(|name| word == name || word.starts_with(&format!("{name}:"))))
    };
    let asks = match call.name.to_ascii_lowercase().as_str() {
        "manage-bde" => any(&[
            "-off",
            "-lock",
            "-forcerecovery",
            "-changepassword",
            "-changekey",
            "-wipefreespace",
            "-w",
            "-on",
            "-pause",
            "-changepin",
            "-setidentifier",
        ]),
        "fsutil" => {
            any(&[
                "dismount",
                "setzerodata",
                "deletejournal",
                "setdisablelastaccess",
                "set",
                "setdirty",
                "createjournal",
                "8dot3name",
                "setcasesensitiveinfo",
                "enforce",
                "modify",
            ]) && !any(&["query"])
        }
        "mountvol" => any(&["/d", "/p", "/r", "/n", "/e"]),
        "cipher" => any(&["/w", "/e", "/d", "/r", "/x", "/rekey"]),
        "chkdsk" => any(&["/f", "/r", "/x", "/b", "/spotfix"]),
        "bcdedit" => any(&[
            "/set",
            "/delete",
            "/deletevalue",
            "/create",
            "/import",
            "/default",
            "/timeout",
            "/bootsequence",
            "/displayorder",
        ]),
        "reagentc" => any(&["/disable", "/enable", "/setreimage", "/boottore"]),
        _ => !words.is_empty() && !any(&["/?", "/help"]),
    };
    if asks {
        call.asks(Effect::Disk, &words.join(" "), "changes disks or how this host starts");
    }
}

#[cfg(test)]
mod tests {
    use crate::Verdict::{self, Dangerous, Hardline, Safe};
    use crate::{World, judge};

    fn verdict(command: &str) -> Verdict {
        judge(command, &World::new("/home/u", "/home/u/project")).verdict
    }

    #[test]
    fn removing_asks_and_listing_does_not() {
        for (asks, twin) in [
            ("lvremove -f vg0/data", "lvs vg0"),
            ("lvm vgremove vg0", "lvm vgs"),
            ("lvreduce -L 5G vg0/data", "lvremove --test vg0/data"),
            ("lvresize -L 5G vg0/data", "lvresize -L +5G vg0/data"),
            ("zfs destroy -r tank/a", "zfs destroy -nv tank/a"),
            ("zfs rollback tank/a@b", "zfs list -t snapshot"),
            ("zpool export tank", "zpool status"),
            ("btrfs su del /mnt/a", "btrfs su li /mnt"),
            ("btrfs subvolume delete -c /mnt/a", "btrfs subvolume delete --help"),
            ("snapper -c root delete 5", "snapper -c root list"),
            ("tmutil deletelocalsnapshots /", "tmutil listlocalsnapshots /"),
            ("restic -r x forget --prune abc", "restic -r x forget --dry-run abc"),
            ("borg prune -d 7 repo", "borg list repo"),
            ("vssadmin delete shadows /all", "vssadmin list shadows"),
            ("bcdedit /set testsigning on", "bcdedit /enum"),
            ("manage-bde -off C:", "manage-bde -status"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }

    #[test]
    fn taking_a_disk_in_writes_over_it() {
        for never in [
            "pvcreate /dev/sdb",
            "zpool labelclear -f /dev/sdb",
            "zpool create tank /dev/sdb",
            "btrfs device add /dev/sdc /mnt",
        ] {
            assert_eq!(verdict(never), Hardline, "{never}");
        }
    }
}
