//! The kernel and what holds the host together: modules, mounts, mandatory access control, firmware, alternatives.

use super::options::{gnu, single_dash};
use super::rows::{self, Asked, Tool, asked, tool};
use super::{Program, plain};
use crate::eval::Call;
use crate::finding::Effect;

pub(super) const PROGRAMS: &[Program] = &[
    plain(
        &[
            "insmod",
            "rmmod",
            "kmod",
            "kextload",
            "kextunload",
            "kmutil",
            "bpftool",
            "dkms",
            "setenforce",
            "setsebool",
            "semanage",
            "semodule",
            "aa-teardown",
            "aa-disable",
            "aa-complain",
            "aa-enforce",
            "aa-remove-unknown",
            "apparmor_parser",
            "spctl",
            "csrutil",
            "tccutil",
            "fdesetup",
            "mokutil",
            "bootctl",
            "efibootmgr",
            "grub-install",
            "grub2-install",
            "grub-set-default",
            "grub2-set-default",
            "grub-reboot",
            "grub2-reboot",
            "grub-editenv",
            "grub2-editenv",
            "update-grub",
            "grubby",
            "lilo",
            "update-initramfs",
            "dracut",
            "mkinitcpio",
            "fwupdmgr",
            "flashrom",
            "bless",
            "nvram",
            "pivot_root",
            "switch_root",
            "swapoff",
            "fusermount",
            "fusermount3",
            "umount.nfs",
            "udisksctl",
            "udevil",
            "eject",
            "quotaoff",
            "setquota",
            "edquota",
            "hwclock",
            "adjtimex",
            "cpupower",
            "tuned-adm",
            "powerprofilesctl",
            "nvidia-smi",
            "zramctl",
            "update-crypto-policies",
            "fips-mode-setup",
            "authselect",
            "criu",
        ],
        host,
    ),
    plain(&["modprobe"], modprobe),
    plain(&["sysctl"], sysctl),
    plain(&["mount"], mount),
    plain(&["umount", "unmount"], umount),
    plain(&["swapon"], swapon),
];

const HOST: &[Tool] = &[
    tool("insmod rmmod kextload kextunload", gnu("b", ""), "* -b -a", ""),
    tool("kmod", gnu("", ""), "load unload insert remove", ""),
    tool("kmutil", gnu("", ""), "load unload install clear-staging", ""),
    tool(
        "bpftool",
        gnu("f", ""),
        "prog/load prog/loadall prog/attach prog/detach map/update map/delete map/create net/attach net/detach cgroup/attach cgroup/detach link/detach struct_ops/register struct_ops/unregister",
        "",
    ),
    tool("dkms", gnu("mvkac", ""), "install remove add uninstall unbuild", ""),
    tool("setenforce setsebool aa-teardown aa-remove-unknown", gnu("", ""), "", ""),
    tool("semanage", gnu("tsrfF", ""), "-a -d -m -D -add -delete -modify -deleteall -import", ""),
    tool("semodule", gnu("irudseX", ""), "-i -r -u -d -e -B -R -D", ""),
    tool("aa-disable aa-complain aa-enforce", gnu("d", ""), "*", ""),
    tool(
        "apparmor_parser",
        gnu("bDIMfT", "base= features-file="),
        "* -R -r -a",
        "p Q N names preprocess skip-kernel-load",
    ),
    tool(
        "spctl",
        gnu("", "type= label="),
        "-master-disable -master-enable -global-disable -global-enable -add -remove -disable -enable kext-consent/disable kext-consent/enable",
        "",
    ),
    tool("csrutil", gnu("", ""), "disable enable clear netboot authenticated-root", ""),
    tool("tccutil", gnu("", ""), "reset", ""),
    tool("fdesetup", gnu("", ""), "disable enable remove changerecovery removerecovery add authrestart", ""),
    tool(
        "mokutil",
        gnu("", "import= delete= revoke-import disable-validation enable-validation reset password sb-state"),
        "-import -delete -reset -disable-validation -enable-validation -password -clear-password",
        "",
    ),
    tool(
        "bootctl",
        gnu("", "esp-path= boot-path="),
        "install update remove set-default set-oneshot unlink cleanup random-seed",
        "",
    ),
    tool(
        "efibootmgr",
        gnu(
            "bdpelLontTi?",
            "bootnum= disk= part= loader= label= bootorder= bootnext= timeout= create create-only delete-bootnum",
        ),
        "-B -c -C -o -O -n -N -a -A -t -T -D -create -create-only -delete-bootnum -bootorder -bootnext -delete-bootorder",
        "",
    ),
    tool("grub-set-default grub2-set-default grub-reboot grub2-reboot", gnu("", "boot-directory="), "*", ""),
    tool("grub-editenv grub2-editenv", gnu("", ""), "*/set */unset */create set unset create", ""),
    tool(
        "grubby",
        gnu("", "set-default= remove-kernel= update-kernel= args= remove-args= info= add-kernel="),
        "-set-default -remove-kernel -update-kernel -add-kernel",
        "",
    ),
    tool("lilo", gnu("CbrmRd", ""), "", "t q v V"),
    tool("update-grub", gnu("", ""), "", ""),
    tool("update-initramfs", gnu("kbv", ""), "-u -c -d", ""),
    tool("dracut", gnu("adokmi", "add= omit= kver="), "* -f -force -regenerate-all", ""),
    tool("mkinitcpio", gnu("pkgcASzt", ""), "-p -P -g", ""),
    tool(
        "fwupdmgr",
        gnu("", ""),
        "update upgrade install downgrade reinstall local-install activate disable-remote enable-remote unlock",
        "",
    ),
    tool(
        "flashrom",
        gnu("pcrwvElifN", "programmer= chip= read= write= verify= erase layout= image="),
        "-w -E -write -erase",
        "",
    ),
    tool("bless", single_dash("device= mount= folder= file=", true), "-device -mount -folder -setBoot -nextonly", ""),
    tool("nvram", gnu("f", ""), "-c -d -f", ""),
    tool(
        "update-alternatives alternatives",
        gnu(
            "",
            "set install remove remove-all auto config all set-selections altdir= admindir= log= display query list get-selections",
        ),
        "-set -install -remove -remove-all -auto -config -all -set-selections",
        "",
    ),
    tool("pivot_root switch_root", gnu("c", ""), "*", ""),
    tool("swapoff", gnu("LU", "all"), "* -a -all -L -U", ""),
    tool("fusermount fusermount3", gnu("o", "unmount"), "-u -z -unmount *", ""),
    tool("umount.nfs", gnu("", ""), "*", ""),
    tool("udisksctl", gnu("bpo", "block-device= object-path= options="), "unmount power-off loop-delete lock", ""),
    tool("udevil", gnu("o", ""), "umount unmount clean", ""),
    tool("eject", gnu("ixc", ""), "* -r -f -a -q", "n noop"),
    tool("quotaoff setquota edquota", gnu("uguFp", ""), "* -a -t", ""),
    tool(
        "hwclock",
        gnu("fd", "date= rtc= set systohc hctosys adjust"),
        "-w -s -a -set -systohc -hctosys -adjust",
        "test",
    ),
    tool("adjtimex", gnu("toFP", "tick= offset="), "-t -o -tick -offset -a", ""),
    tool("cpupower", gnu("c", ""), "frequency-set idle-set set", ""),
    tool("tuned-adm powerprofilesctl", gnu("", ""), "profile off set auto_profile", ""),
    tool(
        "nvidia-smi",
        gnu("idlfq", "gpu-reset power-limit= persistence-mode= compute-mode="),
        "-r -pl -gpu-reset -power-limit -persistence-mode",
        "",
    ),
    tool("zramctl", gnu("satr", "size= algorithm="), "-r -reset -f", ""),
    tool(
        "update-crypto-policies fips-mode-setup authselect",
        gnu("", "set= enable disable"),
        "select disable-feature enable-feature apply-changes -set -enable -disable",
        "",
    ),
    tool("criu", gnu("tD", "tree= images-dir="), "dump restore", ""),
];

const WHY: &str = "changes the kernel, the start or the protection of this host";

fn host(call: &mut Call<'_, '_>) {
    match call.name.as_str() {
        // These have no harmless use but their help.
        "setenforce" | "aa-teardown" | "aa-remove-unknown" | "lilo" | "update-grub" => {
            call.asks(Effect::Service, &call.arguments().join(" "), WHY);
        }
        "setsebool" => call.asks(Effect::Service, &call.arguments().join(" "), WHY),
        "grub-install" | "grub2-install" => {
            call.asks(Effect::Disk, &call.arguments().join(" "), "writes a boot loader");
        }
        "nvram" => {
            let options = call.options(&gnu("f", ""));
            let sets = options.operands.iter().any(|word| word.contains('='));
            if sets || asked(&options, "-c -d -f") != Asked::No {
                call.asks(Effect::Service, &options.operands.join(" "), WHY);
            }
        }
        "fusermount" | "fusermount3" => {
            if call.options(&gnu("o", "unmount")).has("u z unmount") {
                call.asks(Effect::Service, &call.arguments().join(" "), "unmounts a file system");
            }
        }
        _ => rows::judge(call, HOST, Effect::Service, WHY),
    }
}

/// `date` and `hostname` show, and set what they are given.
pub(super) fn clock_and_name(call: &mut Call<'_, '_>) {
    let (set, target) = if call.name == "hostname" {
        let options = call.options(&gnu("F", "file= boot help version"));
        (!options.operands.is_empty() || options.has("F file b boot"), "the name of the host")
    } else {
        let options = call
            .options(&gnu("dfrsIRv", "date= file= reference= set= iso-8601=? rfc-3339= utc universal help version"));
        let given = options.operands.iter().any(|word| {
            word.len() >= 8 && word.chars().all(|c| c.is_ascii_digit() || c == '.') && call.arguments().len() == 1
        });
        (options.has("s set") || given, "the clock")
    };
    if set {
        call.asks(Effect::Service, target, "changes settings of this host");
    }
}

fn modprobe(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "CdS",
        "config= dirname= set-version= dry-run show show-depends showconfig show-config dump-modversions resolve-alias \
         remove all use-blacklist help version",
    ));
    let looks = "n dry-run show D show-depends c showconfig show-config R resolve-alias dump-modversions V h";
    if options.asks_only() || options.has(looks) || options.operands.is_empty() {
        return;
    }
    call.asks(Effect::Service, &options.operands.join(" "), "loads or unloads a part of the kernel");
}

fn sysctl(call: &mut Call<'_, '_>) {
    let options =
        call.options(&gnu("pr?f?", "load=? pattern= write system all values names quiet ignore dry-run help version"));
    if options.asks_only() || options.has("dry-run") {
        return;
    }
    let sets = options.operands.iter().any(|word| word.contains('='));
    if sets || options.has("w write p load system f") {
        call.asks(Effect::Service, &options.operands.join(" "), "changes settings of the kernel");
    }
}

/// Without a place to mount it is a list.
fn mount(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu(
        "toOLUTN",
        "types= options= test-opts= label= uuid= source= target= namespace= all bind rbind move make-private \
         make-shared make-slave show-labels fake help version",
    ));
    if options.asks_only() || options.has("h V f fake") || options.operands.is_empty() && !options.has("a all source") {
        return;
    }
    call.asks(Effect::Service, &options.operands.join(" "), "changes what is mounted where");
}

fn umount(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("tON", "types= test-opts= namespace= all force lazy recursive fake help version"));
    if options.asks_only()
        || options.has("fake V h")
        || options.operands.is_empty() && !options.has("a all A all-targets")
    {
        return;
    }
    call.asks(Effect::Service, &options.operands.join(" "), "unmounts file systems");
}

fn swapon(call: &mut Call<'_, '_>) {
    let options = call.options(&gnu("LUpo", "priority= options= show=? all summary noheadings raw bytes help version"));
    if options.asks_only() || options.has("s show summary") || options.operands.is_empty() && !options.has("a all L U")
    {
        return;
    }
    call.asks(Effect::Service, &options.operands.join(" "), "changes the swap space of this host");
}

#[cfg(test)]
mod tests {
    use crate::Verdict::{self, Dangerous, Safe};
    use crate::{World, judge};

    fn verdict(command: &str) -> Verdict {
        judge(command, &World::new("/home/u", "/home/u/project")).verdict
    }

    #[test]
    fn changes_ask_and_looks_do_not() {
        for (asks, twin) in [
            ("modprobe -r ext4", "modprobe -n ext4"),
            ("insmod x.ko", "lsmod"),
            ("sysctl -w net.ipv4.ip_forward=1", "sysctl -a"),
            ("sysctl kernel.panic=1", "sysctl kernel.panic"),
            ("mount --bind a b", "mount -t ext4"),
            ("mount -o remount,ro /", "mount"),
            ("umount -l /mnt", "umount --help"),
            ("swapoff -a", "swapon --show"),
            ("setenforce 0", "getenforce"),
            ("update-alternatives --set editor /usr/bin/vim", "update-alternatives --list editor"),
            ("efibootmgr -b 0003 -B", "efibootmgr -v"),
            ("nvram boot-args=-v", "nvram -p"),
            ("csrutil disable", "csrutil status"),
            ("fusermount -u ~/x", "fusermount -V"),
            ("hwclock --systohc", "hwclock --show"),
            ("grub-install /dev/sda", "grub-install --version"),
        ] {
            assert_eq!(verdict(asks), Dangerous, "{asks}");
            assert_eq!(verdict(twin), Safe, "{twin}");
        }
    }
}
