//! Programs that write file systems, partition tables, headers and raw blocks. What they write to is a path like any
//! other: on a raw disk it never runs, on a regular file it is an ordinary write.

use super::options::{Grammar, gnu, leading};
use super::{Program, plain, prints};
use crate::eval::{Call, Writing, blurred};
use crate::finding::{Effect, TargetClass};
use crate::text::{self, HOLE};

pub(super) const PROGRAMS: &[Program] = &[
    plain(
        &[
            "mkfs",
            "newfs",
            "mke2fs",
            "mkdosfs",
            "mkntfs",
            "mkexfatfs",
            "mkreiserfs",
            "mkudffs",
            "mkswap",
            "mkquotadisk",
            "mkfatfs",
            "mkbootdisk",
        ],
        format,
    ),
    prints(&["dd", "gdd", "dcfldd", "dc3dd", "sg_dd", "ddpt"], dd),
    plain(&["wipefs"], wipefs),
    plain(
        &[
            "blkdiscard",
            "blkzone",
            "nwipe",
            "dban",
            "sg_format",
            "sg_sanitize",
            "sg_write_same",
            "sg_unmap",
            "sg_write_buffer",
            "sg_reset",
        ],
        erase,
    ),
    plain(&["hdparm"], hdparm),
    plain(&["sdparm", "smartctl"], tune),
    plain(&["nvme"], nvme),
    plain(&["fdisk", "gdisk", "cgdisk", "cfdisk", "xfdisk"], interactive),
    plain(&["sfdisk"], sfdisk),
    plain(&["sgdisk"], sgdisk),
    plain(&["parted", "gparted"], parted),
    plain(&["gpart", "bsdlabel", "disklabel", "fdformat", "superformat"], bsd),
    plain(&["badblocks"], badblocks),
    plain(&["cryptsetup", "integritysetup", "veritysetup", "cryptsetup-reencrypt"], cryptsetup),
    plain(&["mdadm"], mdadm),
    plain(&["dmsetup"], dmsetup),
    plain(&["losetup"], losetup),
    plain(
        &[
            "tune2fs",
            "e2label",
            "resize2fs",
            "debugfs",
            "btrfstune",
            "xfs_admin",
            "fatlabel",
            "ntfslabel",
            "dosfslabel",
            "ntfsresize",
            "swaplabel",
            "fatresize",
            "exfatlabel",
        ],
        tuner,
    ),
    plain(&["fsck", "e2fsck", "dosfsck", "ntfsfix", "xfs_repair", "reiserfsck"], fsck),
];

/// Writes to each of these; a raw disk among them never runs.
pub(super) fn write_all(call: &mut Call<'_, '_>, targets: &[String]) {
    for target in targets {
        call.write(target, Writing::Replace);
    }
}

/// Writes to operands, and to every raw disk among the other words: which letter takes a value differs too much between
/// programs to lose a disk over it.
pub(super) fn write_disks(call: &mut Call<'_, '_>, operands: &[String]) {
    write_all(call, operands);
    for word in call.arguments().to_vec() {
        let path = word.rsplit('=').next().unwrap_or_default();
        if path.starts_with("/dev/") && !operands.contains(&word) {
            let place = call.place(path, true);
            if place.class == TargetClass::Device {
                call.write_place(&place, Writing::Replace);
            }
        }
    }
}

/// The same for what is only dangerous on a disk, and nothing on a file.
pub(super) fn change_all(call: &mut Call<'_, '_>, targets: &[String], why: &str) {
    for target in targets {
        let place = call.place(target, true);
        if !matches!(place.class, TargetClass::Workspace | TargetClass::Temporary) {
            call.find(crate::Verdict::Dangerous, Effect::Disk, &place.path, place.class, why);
        }
    }
}

const TUNES: &str = "changes what is on a disk";

// ----------------------------------------------------------------------------------------------- file systems and raw

fn format(call: &mut Call<'_, '_>) {
    let name = call.name.clone();
    let words = call.arguments().to_vec();
    let first = gnu("t", "type= help version").read(&words);
    let kind = match (first.value("t type"), name.strip_prefix("mkfs.")) {
        (Some(kind), _) if name == "mkfs" => kind.to_owned(),
        (_, Some(kind)) => kind.to_owned(),
        _ => name.trim_start_matches("mk").trim_end_matches("fs").to_owned(),
    };
    let ext = kind.starts_with("ext") || name == "mke2fs";
    let valued = match kind.as_str() {
        _ if ext => "bcCdDeEfgGiIJlLmMNoOrtTUz",
        "xfs" => "bcdilmLnprst",
        "btrfs" => "AbdlLmnrsUO",
        "ntfs" | "nt" => "cfHLpsSTzt",
        "swap" => "LpUve",
        "vfat" | "fat" | "msdos" | "dos" => "bDfFghimMnrRsSt",
        _ => "bcdFgiLlmnNoOpsStTUu",
    };
    let options = gnu(valued, "type= label= uuid= pagesize= sectorsize= nodesize= metadata= data= rootdir= features= subvol= volume-id= dry-run no-action").read(&words);
    if options.asks_only()
        || options.has("V h dry-run")
        || (ext || matches!(kind.as_str(), "ntfs" | "nt")) && options.has("n no-action")
    {
        return;
    }
    if kind == "xfs" && options.has("N") {
        return;
    }
    write_disks(call, &options.operands);
}

/// `dd if=… of=…`
fn dd(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    if words.iter().any(|word| matches!(word.as_str(), "--help" | "--version")) {
        return;
    }
    let value = |name: &str| words.iter().rev().find_map(|word| word.strip_prefix(name)).map(str::to_owned);
    let source = value("if=");
    let text = match &source {
        Some(file) => call.read(file),
        None => call.input().unwrap_or_else(|| HOLE.into()),
    };
    let nothing = matches!(source.as_deref(), Some("/dev/null" | "/dev/zero" | "/dev/urandom" | "/dev/random"));
    let mut written = false;
    for name in ["of=", "hof=", "ofs=", "hofs=", "wipe=", "hwipe=", "of:="] {
        for target in words.iter().filter_map(|word| word.strip_prefix(name)).map(str::to_owned).collect::<Vec<_>>() {
            written = true;
            let foreign = source.as_ref().is_some_and(|file| {
                let path = call.place(file, true).path;
                call.is_foreign(&path)
            });
            let keeps = words.iter().any(|word| word.starts_with("conv=") && word.contains("notrunc"));
            let path = call.write(&target, if nothing && !keeps { Writing::Empty } else { Writing::Replace });
            if foreign || text.contains(text::REMOTE) {
                call.now_foreign(&target);
            } else if text != HOLE.to_string() {
                call.machine.remember_file(&path, text.clone());
            }
        }
    }
    if !written {
        // Cut or converted, it is no longer certain.
        let whole = !words
            .iter()
            .any(|word| ["bs=", "count=", "skip=", "conv=", "ibs=", "cbs="].iter().any(|name| word.starts_with(name)));
        let printed = if whole || text::is_literal(&text) { text } else { blurred(&text) };
        call.print(&printed);
    }
}

fn wipefs(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "tob?O",
        "all offset= types= backup=? output= no-act force quiet parsable json noheadings lock=? help version",
    ));
    if options.asks_only() || options.has("n no-act") || !options.has("a all o offset") {
        return;
    }
    write_disks(call, &options.operands);
}

/// Programs without a harmless use of a device.
fn erase(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("olspmnc", "offset= length= step= help version"));
    if options.asks_only() || options.has("V h") {
        return;
    }
    let mut operands = options.operands.clone();
    if call.name == "blkzone" && operands.first().is_some_and(|verb| verb == "report" || verb == "capacity") {
        return;
    }
    operands.retain(|word| word.contains('/'));
    write_disks(call, &operands);
}

fn hdparm(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let devices: Vec<String> =
        words.iter().filter(|word| word.starts_with('/') || text::is_unknown(word)).cloned().collect();
    let erases = [
        "--security-erase",
        "--security-erase-enhanced",
        "--trim-sector-ranges",
        "--trim-sector-ranges-stdin",
        "--write-sector",
        "--repair-sector",
        "--make-bad-sector",
        "--sanitize-block-erase",
        "--sanitize-crypto-scramble",
        "--sanitize-overwrite",
        "--fwdownload",
        "--dco-restore",
        "--dco-setmax",
    ];
    let has = |list: &[&str]| {
        words.iter().any(|word| list.iter().any(|name| word == name || word.starts_with(&format!("{name}="))))
    };
    if has(&erases) || words.iter().any(|word| word.starts_with("--security-erase") || word.starts_with("--fwdownload"))
    {
        return write_disks(call, &devices);
    }
    let changes =
        ["-y", "-Y", "--security-set-pass", "--security-unlock", "--security-disable", "--security-freeze", "-w"];
    if has(&changes)
        || words.iter().any(|word| {
            word.starts_with("-N") && word.len() > 2
                || word.starts_with("-W") && word.len() > 2
                || word.starts_with("-r") && word.len() > 2
        })
    {
        change_all(call, &devices, TUNES);
    }
}

fn tune(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("sctdlofSTFrvPnX", "set= clear= command= defaults smart= offlineauto= saveauto= test="));
    if call.name == "sdparm" && options.has("s set c clear D defaults C command") {
        change_all(call, &options.operands, TUNES);
    }
}

fn nvme(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "nsaldofbczmtrvSLpikN",
        "namespace-id= ses= lbaf= sanact= output-format= timeout= force help version",
    ));
    if options.asks_only() {
        return;
    }
    let verb = options.operands.first().cloned().unwrap_or_default();
    let devices = options.operands.get(1..).unwrap_or_default().to_vec();
    match verb.as_str() {
        "format" | "sanitize" | "write" | "write-zeroes" | "write-uncor" | "dsm" | "delete-ns" | "zns" | "copy"
        | "compare-and-write" | "resv-acquire" | "security-send" => write_raw(call, &devices),
        "fw-download" | "fw-commit" | "fw-activate" | "detach-ns" | "attach-ns" | "create-ns" | "reset"
        | "subsystem-reset" | "set-feature" | "disconnect" | "disconnect-all" | "connect" | "connect-all"
        | "resv-release" | "ns-rescan" | "lockdown" => change_all(call, &devices, TUNES),
        verb if text::is_unknown(verb) => call.cannot_tell("tells a disk something that cannot be told"),
        _ => {}
    }
}

/// Devices of which the controller stands for all of its disks.
fn write_raw(call: &mut Call<'_, '_>, devices: &[String]) {
    let devices: Vec<String> =
        devices.iter().filter(|word| word.contains('/') || text::is_unknown(word)).cloned().collect();
    write_disks(call, &devices);
}

// --------------------------------------------------------------------------------------------------- partition tables

/// Whether what is typed into a partition editor writes the table in the end; what nobody knows may.
fn typed(call: &mut Call<'_, '_>, writes: &[&str]) -> Option<bool> {
    let input = call.input()?;
    let write = input.lines().any(|line| writes.contains(&line.split_whitespace().next().unwrap_or_default()));
    Some(write || text::is_unknown(&input))
}

/// Editors that change nothing before they are told to write.
fn interactive(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("bcCHSotTuwWLB", "sector-size= compatibility= list bytes list-details help version lock=? wipe= wipe-partitions= color=? types output= type= units= zero"));
    if options.asks_only() || options.has("l list x list-details V s getsz h") {
        return;
    }
    match typed(call, &["w", "Y", "write", "wq"]) {
        Some(true) => write_disks(call, &options.operands),
        Some(false) => {}
        None if options.has("B i I a u") && call.name == "fdisk" => write_disks(call, &options.operands),
        None => change_all(call, &options.operands, "opens the partitions of a disk for editing"),
    }
}

fn sfdisk(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "bNouwWXYOC",
        "activate dump json show-geometry list list-free disk-id reorder show-size list-types verify delete part-attrs \
         part-label part-type part-uuid append backup backup-file= move-data=? force color=? lock=? partno= no-act \
         no-reread no-tell-kernel output= quiet wipe= wipe-partitions= label= label-nested= show-pt-geometry help version",
    ));
    if options.asks_only() || options.has("d dump J json g show-geometry l list F list-free s show-size T list-types V verify n no-act v h G show-pt-geometry") {
        return;
    }
    let asks = options.has("part-type part-label part-uuid part-attrs disk-id c id")
        && options.operands.len() <= 2
        && !(options.has("disk-id") && options.operands.len() == 2);
    if let Some(device) = options.operands.first().cloned()
        && !asks
    {
        write_disks(call, &[device]);
    }
}

const SGDISK: Grammar = gnu(
    "aAbcdihjlmnrRStTuUC",
    "set-alignment= attributes= backup= change-name= recompute-chs= delete= move-second-header display-alignment \
     end-of-largest first-in-largest first-aligned-in-largest mbrtogpt randomize-guids hybrid= info= align-end \
     move-main-table= load-backup= list-types gpttombr= new= largest-new= clear print-mbr print pretend transpose= \
     replicate= sort resize-table= typecode= transform-bsd= partition-guid= disk-guid= verify version zap zap-all help",
);

fn sgdisk(call: &mut Call<'_, '_>) {
    let options = SGDISK.read(call.arguments());
    let reads = "i info p print v verify L list-types b backup D display-alignment E end-of-largest f first-in-largest F \
        first-aligned-in-largest O print-mbr V version h help a set-alignment";
    if options.asks_only() || options.has("P pretend") {
        return;
    }
    for target in options.values("R replicate").map(str::to_owned).collect::<Vec<_>>() {
        call.write(&target, Writing::Replace);
    }
    let writes = options.options.iter().any(|(name, _)| {
        !matches!(name.as_str(), "R" | "replicate") && !reads.split_ascii_whitespace().any(|read| read == name)
    });
    if writes {
        write_disks(call, &options.operands);
    }
}

/// `parted [options] [device [command…]]`
fn parted(call: &mut Call<'_, '_>) {
    let options = leading("a", "align= list machine script interactive fix json help version").read(call.arguments());
    if options.asks_only() || options.has("l list h v") {
        return;
    }
    let Some((device, words)) = options.operands.split_first().map(|(device, words)| (device.clone(), words.to_vec()))
    else {
        return;
    };
    let writes = [
        "mklabel",
        "mktable",
        "mkpart",
        "rm",
        "resizepart",
        "rescue",
        "set",
        "toggle",
        "name",
        "disk_set",
        "disk_toggle",
        "mkfs",
        "mkpartfs",
        "resize",
        "move",
        "cp",
        "type",
    ];
    let write = if words.is_empty() {
        typed(call, &writes)
    } else {
        // Commands may be cut short as long as nothing else begins that way.
        let reads = ["print", "help", "unit", "align-check", "select", "version", "quit", "script"];
        Some(words.iter().flat_map(|word| word.split_whitespace()).any(|word| {
            text::is_unknown(word)
                || writes.contains(&word)
                || word.len() > 2
                    && !reads.iter().any(|read| read.starts_with(word))
                    && writes.iter().any(|write| write.starts_with(word))
        }))
    };
    match write {
        Some(true) => write_all(call, &[device]),
        Some(false) => {}
        None => change_all(call, &[device], "opens the partitions of a disk for editing"),
    }
}

/// `gpart create -s gpt ada0`, `bsdlabel -w da0`: devices without their directory.
fn bsd(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("abBfilnpstF", ""));
    let verb = options.operands.first().map(String::as_str).unwrap_or_default();
    let writes = match call.name.as_str() {
        "gpart" => matches!(
            verb,
            "create"
                | "destroy"
                | "delete"
                | "bootcode"
                | "restore"
                | "resize"
                | "recover"
                | "modify"
                | "add"
                | "set"
                | "unset"
        ),
        "fdformat" | "superformat" => true,
        _ => options.has("w R B e"),
    };
    if writes {
        let target = options.operands.last().cloned().unwrap_or_default();
        call.never(Effect::Disk, &target, "writes over a raw disk");
    }
}

fn badblocks(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("bcdeioptB", ""));
    if options.has("w") {
        return write_disks(call, &options.operands[..options.operands.len().min(1)]);
    }
    if options.has("n") {
        change_all(call, &options.operands[..options.operands.len().min(1)], "writes each block of a disk anew");
    }
}

// ---------------------------------------------------------------------------------------------------- headers, arrays

fn cryptsetup(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "chsdSloptTyi",
        "cipher= hash= key-size= key-file= new-keyfile= key-slot= size= offset= skip= type= header= header-backup-file= \
         uuid= label= sector-size= pbkdf= iter-time= master-key-file= volume-key-file= priority= timeout= tries= luks2-metadata-size= \
         subsystem= integrity= batch-mode force-password test-passphrase dump-master-key dump-volume-key dry-run help version usage",
    ));
    if options.asks_only() || options.has("usage V ?") {
        return;
    }
    if call.name == "cryptsetup-reencrypt" {
        return write_disks(call, &options.operands);
    }
    let verb = options.operands.first().cloned().unwrap_or_default();
    let devices: Vec<String> = options.operands.iter().skip(1).take(1).cloned().collect();
    match verb.as_str() {
        "luksFormat" | "format" | "erase" | "luksErase" | "luksHeaderRestore" | "reencrypt" => {
            write_disks(call, &devices);
        }
        "luksRemoveKey" | "luksKillSlot" | "luksAddKey" | "luksChangeKey" | "config" | "convert" | "token"
        | "repair" | "luksConvertKey" => change_all(call, &devices, "changes keys in the header of a disk"),
        "luksUUID" if options.has("uuid") => change_all(call, &devices, "changes the header of a disk"),
        "close" | "remove" | "luksClose" | "luksSuspend" | "tcryptClose" | "resize" => {
            call.asks(Effect::Disk, &devices.join(" "), "closes or changes an open volume");
        }
        "luksDump" | "tcryptDump" | "bitlkDump" if options.has("dump-master-key dump-volume-key") => {
            call.asks(Effect::SecretRead, &devices.join(" "), "shows the key of a disk");
        }
        verb if text::is_unknown(verb) => call.cannot_tell("tells a disk something that cannot be told"),
        _ => {}
    }
}

fn mdadm(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "lncxezNcmbpRaU",
        "level= raid-devices= spare-devices= chunk= metadata= name= bitmap= layout= size= uuid= config= homehost= add= remove= \
         fail= update= create build zero-superblock stop grow assemble examine detail monitor scan run force query \
         kill-subarray= update-subarray= manage help version",
    ));
    if options.asks_only() || options.has("V h") {
        return;
    }
    if options.has("zero-superblock create C build B kill-subarray") {
        let devices: Vec<String> = options
            .operands
            .iter()
            .chain(
                options.options.iter().filter_map(|(_, value)| value.as_ref()).filter(|value| value.starts_with('/')),
            )
            .filter(|word| *word != "missing" && word.contains('/') || text::is_unknown(word))
            .cloned()
            .collect();
        return write_disks(call, &devices);
    }
    if options.has("stop S grow G fail f remove r add re-add replace set-faulty update-subarray readonly o readwrite w")
        && !options.has("examine E detail D query Q")
    {
        call.asks(Effect::Disk, &options.operands.join(" "), "changes or stops an array of disks");
    }
}

fn dmsetup(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("uoScjmRUGM", "uuid= table= noheadings columns help version"));
    let verb = options.operands.first().map(String::as_str).unwrap_or_default();
    if matches!(
        verb,
        "remove"
            | "remove_all"
            | "wipe_table"
            | "suspend"
            | "reload"
            | "load"
            | "clear"
            | "create"
            | "rename"
            | "message"
            | "setgeometry"
            | "resume"
    ) {
        call.asks(Effect::Disk, &options.operands[1..].join(" "), "changes how disks are put together");
    }
}

fn losetup(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("oObjS", "detach detach-all offset= sizelimit= associated= set-capacity find show partscan read-only list json output= help version"));
    if options.has("d D detach detach-all c set-capacity") && !options.asks_only() {
        call.asks(Effect::Disk, &options.operands.join(" "), "takes a disk away that is made of a file");
    }
}

/// Settings, labels and sizes of file systems.
fn tuner(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("cCdeEfgGiIjJlLmMoOrTuUzRbDsS", "help version"));
    if options.asks_only() || options.has("V h") {
        return;
    }
    let words = call.arguments().to_vec();
    let reads = match call.name.as_str() {
        "tune2fs" => words.iter().any(|word| word == "-l"),
        "e2label" | "fatlabel" | "ntfslabel" | "dosfslabel" | "exfatlabel" => options.operands.len() < 2,
        "debugfs" => !words.iter().any(|word| word == "-w"),
        "resize2fs" => words.iter().any(|word| word == "-P"),
        "ntfsresize" => words.iter().any(|word| matches!(word.as_str(), "-i" | "--info" | "-n" | "--no-action" | "-m")),
        "xfs_admin" => words.iter().all(|word| !word.starts_with('-') || matches!(word.as_str(), "-l" | "-u")),
        _ => false,
    };
    if !reads {
        let devices: Vec<String> = words.iter().filter(|word| word.starts_with('/')).take(1).cloned().collect();
        change_all(call, &devices, TUNES);
    }
}

fn fsck(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("tbBEjlLCmo", "help version"));
    let dry = options.has("n N V h no-action") || options.asks_only();
    let repairs = options.has("y a p f L D")
        || matches!(call.name.as_str(), "xfs_repair" | "ntfsfix")
        || options.has("fix-fixable rebuild-tree rebuild-sb");
    if !dry && repairs {
        let devices: Vec<String> = options.operands.iter().filter(|word| word.contains('/')).cloned().collect();
        change_all(call, &devices, "repairs a file system, which may lose files");
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
    fn raw_disks_are_never_written() {
        for (never, twin) in [
            ("mkfs.ext4 -L data /dev/sdb1", "mkfs.ext4 -L data disk.img"),
            ("mkfs -t xfs /dev/nvme0n1p2", "mkfs -t xfs -N /dev/nvme0n1p2"),
            ("mkfs.vfat -n BOOT /dev/sdb1", "mke2fs -n /dev/sdb1"),
            ("newfs_msdos -F 32 /dev/disk4s1", "newfs_msdos -F 32 x.img"),
            ("mkswap /dev/sda3", "mkswap swapfile"),
            ("dd of=/dev/sda if=x.img", "dd if=/dev/sda of=x.img count=1"),
            ("cat x.img | dd of=/dev/sdb", "cat x.img | dd of=copy.img"),
            ("wipefs -af /dev/sdb", "wipefs -n -a /dev/sdb"),
            ("blkdiscard /dev/sdb", "blkdiscard --help"),
            ("hdparm --user-master u --security-erase p /dev/sdb", "hdparm -I /dev/sdb"),
            ("nvme sanitize /dev/nvme1 -a 2", "nvme smart-log /dev/nvme1"),
            ("printf 'o\\nw\\n' | fdisk /dev/sdb", "printf 'p\\nq\\n' | fdisk /dev/sdb"),
            ("sfdisk --delete /dev/sda", "sfdisk -d /dev/sda"),
            ("sfdisk /dev/sda < table", "sfdisk disk.img < table"),
            ("sgdisk -n 1:0:0 /dev/sda", "sgdisk -i 1 /dev/sda"),
            ("sgdisk --zap-all /dev/sda", "sgdisk --pretend --zap-all /dev/sda"),
            ("parted -s /dev/sda mklabel gpt", "parted -s /dev/sda unit MiB print"),
            ("badblocks -wsv /dev/sdb", "badblocks -sv /dev/sdb"),
            ("cryptsetup -q luksFormat /dev/sdb1", "cryptsetup luksDump /dev/sdb1"),
            ("cryptsetup erase /dev/sda2", "cryptsetup luksFormat vault.img"),
            ("mdadm --zero-superblock /dev/sdb1", "mdadm --examine /dev/sdb1"),
            ("mdadm -C /dev/md0 -l 1 -n 2 /dev/sdb1 /dev/sdc1", "mdadm -D /dev/md0"),
        ] {
            assert_eq!(verdict(never), Hardline, "{never}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }

    #[test]
    fn changes_of_disks_ask() {
        for (asks, twin) in [
            ("tune2fs -L x /dev/sda1", "tune2fs -l /dev/sda1"),
            ("fsck -y /dev/sda1", "fsck -n /dev/sda1"),
            ("cryptsetup luksKillSlot /dev/sda2 1", "cryptsetup status x"),
            ("mkfs.ext4 \"$DEVICE\"", "mkfs.ext4 --help"),
            ("dmsetup remove x", "dmsetup ls"),
            ("mdadm --stop /dev/md0", "mdadm --detail --scan"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }
}
