//! Images and what is written from them, and the disk tools of macOS and Windows, where disks are no paths.

use super::disks::{change_all, write_all, write_disks};
use super::options::{gnu, single_dash};
use super::{Kind, Program, plain};
use crate::eval::{Call, Writing};
use crate::finding::Effect;
use crate::text;

pub(super) const PROGRAMS: &[Program] = &[
    plain(
        &[
            "ddrescue",
            "dd_rescue",
            "xfs_copy",
            "rpi-imager",
            "bmaptool",
            "woeusb",
            "usbimager",
            "ventoy",
            "etcher",
            "wimlib-imagex",
            "myrescue",
        ],
        imager,
    ),
    plain(&["partclone", "e2image", "ntfsclone", "partimage", "fsarchiver", "xfsrestore", "restore"], restorer),
    plain(&["qemu-img"], qemu_img),
    plain(&["qemu-nbd", "nbd-client"], network_block),
    plain(&["make-bcache", "bcache", "bcachefs"], bcache),
    plain(&["extlinux", "syslinux", "isohybrid", "ms-sys", "install-mbr"], boot_sector),
    Program { names: &["diskutil"], model: diskutil, kind: Kind::Windows },
    plain(&["asr", "hdiutil"], images),
    Program { names: &["diskpart"], model: diskpart, kind: Kind::Windows },
    Program { names: &["format", "format.com"], model: format_drive, kind: Kind::Windows },
];

// -------------------------------------------------------------------------------------------------------------- images

/// `program image target`
fn imager(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("bBcdimKnrsSTxeCEMOPQXotlv", "bmap= device= force help version cli debug target-filesystem= label= partition= size= input-position= output-position= max-size= log-events="));
    if options.asks_only() || options.has("h V") {
        return;
    }
    let operands = &options.operands;
    let target = match call.name.as_str() {
        "woeusb" => operands.last(),
        "ventoy" => {
            let words = call.arguments();
            if words.iter().any(|word| matches!(word.as_str(), "-l" | "-h")) { None } else { words.last() }
        }
        "bmaptool" => operands.get(2).filter(|_| operands.first().is_some_and(|verb| verb == "copy")),
        "wimlib-imagex" => operands.last().filter(|_| operands.first().is_some_and(|verb| verb == "apply")),
        "rpi-imager" | "etcher" | "usbimager" => operands.last().filter(|_| operands.len() > 1),
        _ => operands.get(1),
    };
    if let Some(target) = target.cloned() {
        call.write(&target, Writing::Replace);
    }
}

fn restorer(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "soOLDdbnCcfjzZAeMvr",
        "source= output= overwrite= outfile= logfile= restore-image help version",
    ));
    if options.asks_only() {
        return;
    }
    let words = call.arguments().to_vec();
    let mut targets: Vec<String> = options.values("o O output overwrite").map(str::to_owned).collect();
    match call.name.as_str() {
        "e2image" if words.iter().any(|word| word == "-I") => targets.extend(options.operands.first().cloned()),
        "e2image" => targets.extend(options.operands.get(1).cloned()),
        "fsarchiver" => targets.extend(
            words
                .iter()
                .filter_map(|word| word.split("dest=").nth(1))
                .map(|rest| rest.split(',').next().unwrap_or_default().to_owned()),
        ),
        "partimage" if words.iter().any(|word| word == "restore" || word == "restmbr") => {
            targets.extend(words.iter().filter(|word| word.starts_with("/dev/")).cloned());
        }
        _ => {}
    }
    write_all(call, &targets);
}

fn qemu_img(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let Some(verb) = words.first().cloned() else { return };
    let options = gnu("fFOoBbSlmstTgrR", "object= preallocation= backing= help").read(&words[1..]);
    match verb.as_str() {
        "convert" => write_all(
            call,
            &options.operands.last().cloned().filter(|_| options.operands.len() > 1).into_iter().collect::<Vec<_>>(),
        ),
        "create" | "resize" | "commit" | "rebase" | "amend" => {
            write_all(call, &options.operands.first().cloned().into_iter().collect::<Vec<_>>());
        }
        "dd" => {
            let target: Vec<String> =
                words.iter().filter_map(|word| word.strip_prefix("of=")).map(str::to_owned).collect();
            write_all(call, &target);
        }
        "snapshot" if words.iter().any(|word| matches!(word.as_str(), "-d" | "-a")) => {
            call.asks(Effect::Disk, &options.operands.join(" "), "deletes or goes back to a snapshot");
        }
        _ => {}
    }
}

fn network_block(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("cdfoPbpks", "connect= disconnect= help version"));
    if options.has("d c connect disconnect") && !options.asks_only() {
        call.asks(Effect::Disk, &call.arguments().join(" "), "adds a disk to this host or takes it away");
    }
}

fn bcache(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("BCwb", "label= help version"));
    if options.asks_only() {
        return;
    }
    let formats = call.name == "make-bcache"
        || options.operands.first().is_some_and(|verb| matches!(verb.as_str(), "format" | "make"));
    if formats {
        let devices: Vec<String> = call.arguments().iter().filter(|word| word.contains('/')).cloned().collect();
        write_disks(call, &devices);
    }
}

fn boot_sector(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("dot", "install= update= help version"));
    if !options.asks_only() {
        change_all(call, &options.operands, "writes a boot loader");
    }
}

// --------------------------------------------------------------------------------------------------- macOS and Windows

fn diskutil(call: &mut Call<'_, '_>) {
    let words: Vec<String> = call.arguments().iter().map(|word| word.to_ascii_lowercase()).collect();
    let first = words.iter().position(|word| word != "quiet").unwrap_or(words.len());
    let words = words[first..].to_vec();
    let (Some(verb), second) = (words.first(), words.get(1).map(String::as_str).unwrap_or_default()) else { return };
    let target = words[1..].join(" ");
    match verb.as_str() {
        "erasedisk" | "erasevolume" | "eraseoptical" | "reformat" | "partitiondisk" | "zerodisk" | "randomdisk"
        | "secureerase" | "splitpartition" | "mergepartitions" | "addpartition" | "resizevolume" => {
            call.never(Effect::Disk, &target, "writes over a raw disk");
        }
        "apfs" | "ap" if second == "erasevolume" => call.never(Effect::Disk, &target, "writes over a raw disk"),
        "apfs" | "ap" | "corestorage" | "cs" | "appleraid" | "ar"
            if [
                "delete", "create", "add", "remove", "resize", "convert", "decrypt", "encrypt", "unlock", "lock",
                "change", "update", "repair", "set", "unmount",
            ]
            .iter()
            .any(|change| second.starts_with(change)) =>
        {
            call.asks(Effect::Disk, &target, "changes volumes");
        }
        "unmount" | "umount" | "unmountdisk" | "eject" | "rename" | "renamevolume" | "enablejournal"
        | "disablejournal" | "enableownership" | "disableownership" | "repairvolume" | "repairdisk"
        | "repairpermissions" | "mergepartition" => {
            call.asks(Effect::Disk, &target, "unmounts or changes volumes");
        }
        _ => {}
    }
}

fn images(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let verb = words.first().map(String::as_str).unwrap_or_default();
    if call.name == "asr" {
        if verb == "restore" || words.iter().any(|word| word.trim_start_matches('-') == "erase") {
            call.never(Effect::Disk, &words[1..].join(" "), "writes over a raw disk");
        }
        return;
    }
    match verb {
        "detach" | "eject" | "unmount" => call.asks(Effect::Disk, &words[1..].join(" "), "unmounts a volume"),
        "burn" => call.asks(Effect::Disk, &words[1..].join(" "), "writes over a disc"),
        "create" | "convert" => {
            let options = single_dash("size= fs= volname= srcfolder= format= type= o= layout= srcdevice=", true)
                .read(&words[1..]);
            let targets: Vec<String> = match options.value("o") {
                Some(file) => vec![file.to_owned()],
                None if verb == "create" => options.operands.clone(),
                None => Vec::new(),
            };
            write_all(call, &targets);
        }
        _ => {}
    }
}

/// `diskpart` reads its commands from its input or from a script.
fn diskpart(call: &mut Call<'_, '_>) {
    let words = call.arguments().to_vec();
    let script = words.iter().position(|word| word.eq_ignore_ascii_case("/s") || word.eq_ignore_ascii_case("-s"));
    let source = match script.and_then(|at| words.get(at + 1)).cloned() {
        Some(file) => call.read(&file),
        None => match call.input() {
            Some(input) => input,
            None => return,
        },
    };
    let mut changes = false;
    for line in source.lines() {
        let verb = line.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
        match verb.as_str() {
            "clean" | "format" | "delete" | "convert" | "create" | "recover" | "shrink" => {
                return call.never(Effect::Disk, line, "writes over a raw disk");
            }
            "active" | "inactive" | "assign" | "remove" | "attributes" | "offline" | "online" | "set" | "setid"
            | "gpt" | "extend" | "uniqueid" | "break" | "add" | "attach" | "detach" | "merge" | "compact"
            | "repair" => {
                changes = true;
            }
            _ => {}
        }
    }
    if changes || text::is_unknown(&source) {
        call.asks(Effect::Disk, "disks", "changes disks or volumes");
    }
}

/// `format C: /y` of Windows; elsewhere the name belongs to many harmless scripts.
fn format_drive(call: &mut Call<'_, '_>) {
    let drive = call.arguments().iter().find(|word| super::windows::is_drive(word)).cloned();
    if let Some(drive) = drive
        && !call.arguments().iter().any(|word| word == "/?")
    {
        call.never(Effect::Disk, &drive, "writes over a whole drive");
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
            ("ddrescue -f a.img /dev/sdd map", "ddrescue /dev/sdd a.img map"),
            ("partclone.ext4 -r -s a.img -o /dev/sda1", "partclone.ext4 -c -s /dev/sda1 -o a.img"),
            ("qemu-img convert -O raw a.qcow2 /dev/sdb", "qemu-img convert -O raw a.qcow2 a.raw"),
            ("diskutil eraseDisk APFS New disk2", "diskutil info disk2"),
            ("asr restore --source a.dmg --target /dev/disk3 --erase", "asr imagescan --source a.dmg"),
            ("printf 'select disk 1\\nclean\\n' | diskpart", "printf 'list disk\\n' | diskpart"),
            ("format C: /y", "format README.md"),
        ] {
            assert_eq!(verdict(never), Hardline, "{never}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }

    #[test]
    fn volumes_ask() {
        for (asks, twin) in [
            ("diskutil unmountDisk disk2", "diskutil list"),
            ("diskutil apfs deleteVolume disk1s2", "diskutil apfs list"),
            ("hdiutil detach /dev/disk2", "hdiutil info"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }
}
