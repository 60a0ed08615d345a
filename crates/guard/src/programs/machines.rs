//! Virtual machines and system containers of one host.

use super::Program;
use super::verbs::{self, Rule, Tool, asks, fine, tool};
use crate::eval::Call;
use crate::finding::Effect;

pub(super) const PROGRAMS: [Program; 16] = verbs::programs(&TOOLS, model);

const CHANGES: Effect = Effect::CloudResource;
const STOPS: &str = "stops or restarts a machine";
const DELETES: &str = "deletes a machine or what it keeps";

const VIRSH: &[Rule] = &[
    asks("destroy|shutdown|reboot|reset|suspend|managedsave|save|dompmsuspend|migrate|stop", CHANGES, STOPS),
    asks(
        "undefine|vol-delete|vol-wipe|pool-destroy|pool-delete|pool-undefine|net-destroy|net-undefine|\
            iface-destroy|iface-undefine|iface-unbridge|nwfilter-undefine|secret-undefine|snapshot-delete|\
            snapshot-revert|checkpoint-delete|detach-*|managedsave-remove|blockcommit|blockpull|nodedev-destroy|\
            nodedev-detach|nodesuspend",
        CHANGES,
        DELETES,
    ),
];
const VBOX: &[Rule] = &[
    asks("unregistervm", CHANGES, DELETES),
    asks("controlvm * poweroff|reset|acpipowerbutton|savestate|pause|reboot|shutdown|acpisleepbutton", CHANGES, STOPS),
    asks("snapshot * delete|restore|restorecurrent", CHANGES, DELETES),
    asks("closemedium", CHANGES, DELETES).only("delete"),
    asks("discardstate|adoptstate", CHANGES, DELETES),
    asks("hostonlyif|natnetwork|dhcpserver|hostonlynet remove|stop", CHANGES, DELETES),
    asks("extpack install|uninstall|cleanup", Effect::Package, "installs or removes software of the whole system"),
];
const VAGRANT: &[Rule] = &[
    asks("destroy|halt|suspend|reload", CHANGES, STOPS),
    asks("box remove|prune", CHANGES, DELETES),
    asks("snapshot delete|restore|pop", CHANGES, DELETES),
    asks("plugin uninstall|install|expunge|repair", Effect::Package, "installs or removes software"),
    asks("cloud publish", Effect::Package, "publishes a box that others use"),
    asks("cloud box|provider|version delete|release|revoke", Effect::Package, "withdraws what others use"),
];
const MULTIPASS: &[Rule] = &[asks("delete|purge|stop|suspend|restart|restore|umount", CHANGES, STOPS)];
const LXC: &[Rule] = &[
    asks("delete|rm|stop|restart|pause|restore|rebuild|move|mv", CHANGES, STOPS),
    asks("storage volume|bucket delete|detach*|restore", CHANGES, DELETES),
    asks(
        "storage|network|profile|project|image|cluster|remote|config|snapshot|warning|auth|file delete|rm|\
            remove|detach*|unset|restore",
        CHANGES,
        DELETES,
    ),
    asks("network acl|forward|zone|peer|load-balancer delete|remove", CHANGES, DELETES),
    asks("config trust remove|revoke-token", CHANGES, DELETES),
    asks("config set", Effect::Privilege, "gives a container rights over its host").only("security.privileged=true"),
    asks("config set * security.privileged=true", Effect::Privilege, "gives a container rights over its host"),
    asks("config set * security.privileged true", Effect::Privilege, "gives a container rights over its host"),
    asks("cluster|admin evacuate|shutdown|recover", CHANGES, STOPS),
];
const LIMA: &[Rule] = &[
    asks("delete|remove|rm|stop|factory-reset|prune|unprotect|restart", CHANGES, STOPS),
    asks("disk|snapshot delete|apply|rm", CHANGES, DELETES),
];
const PROXMOX: &[Rule] = &[
    asks("stop|shutdown|destroy|reboot|reset|suspend|rollback|delsnapshot|unlink|migrate|template", CHANGES, STOPS),
    asks("snapshot|disk rollback|unlink|delete", CHANGES, DELETES),
];
const SIMPLE: &[Rule] = &[asks("*", CHANGES, STOPS)];
const XE: &[Rule] = &[asks(
    "*-destroy|*-shutdown|*-reboot|*-uninstall|*-forget|*-suspend|*-disable|*-evacuate|*-delete|*-revert",
    CHANGES,
    STOPS,
)];
const XL: &[Rule] = &[asks("destroy|shutdown|reboot|pause|save|migrate|reset|*-detach", CHANGES, STOPS)];
const VZ: &[Rule] = &[
    asks("stop|restart|destroy|delete|suspend|umount|uninstall", CHANGES, STOPS),
    asks("snapshot-delete|snapshot-switch|unregister|reset|pause", CHANGES, DELETES),
];
const VMRUN: &[Rule] = &[asks(
    "stop|reset|suspend|pause|deleteVM|deleteSnapshot|revertToSnapshot|killProcessInGuest|deleteFileInGuest|\
        deleteDirectoryInGuest",
    CHANGES,
    STOPS,
)];
const WSL: &[Rule] = &[];
const TART: &[Rule] = &[
    asks("delete|stop|prune|suspend", CHANGES, STOPS),
    asks("push", Effect::Package, "publishes a machine that others use"),
];
const MACHINECTL: &[Rule] = &[
    fine("list|status|show|image-status|list-images|show-image"),
    asks("terminate|poweroff|reboot|kill|stop|remove|disable|clean|read-only|rename|set-limit", CHANGES, STOPS),
];
const AVD: &[Rule] = &[asks("delete avd", CHANGES, DELETES)];

const TOOLS: [Tool; 16] = [
    tool(&["virsh"], VIRSH).valued("cdke", "connect= domain="),
    tool(&["VBoxManage", "vboxmanage"], VBOX),
    tool(&["vagrant"], VAGRANT).valued("c", "command= machine-readable provider="),
    tool(&["multipass"], MULTIPASS),
    tool(&["lxc", "incus"], LXC).valued("", "project= remote="),
    tool(&["limactl", "colima", "orb", "orbctl", "finch", "rdctl"], LIMA).valued("p", "profile= workdir= shell="),
    tool(&["qm", "pct", "pvesh", "pveum"], PROXMOX),
    tool(&["lxc-stop", "lxc-destroy", "lxc-freeze"], SIMPLE).valued("nP", "name= lxcpath="),
    tool(&["xe"], XE),
    tool(&["xl", "xm"], XL),
    tool(&["prlctl", "vzctl", "utmctl"], VZ),
    tool(&["vmrun"], VMRUN).valued("Tugp", ""),
    tool(&["wsl"], WSL),
    tool(&["tart"], TART),
    tool(&["machinectl"], MACHINECTL).valued("HMpnos", "host= machine= property= lines= signal="),
    tool(&["avdmanager"], AVD).valued("n", "name="),
];

fn model(call: &mut Call<'_, '_>) {
    let Some(tool) = verbs::find(&TOOLS, &call.name) else { return };
    let arguments = call.arguments().to_vec();
    if call.name == "wsl" {
        return wsl(call, &arguments);
    }
    // `virsh "destroy vm1; net-destroy x"` is a script of its own.
    if call.name == "virsh"
        && let Some(script) = arguments.iter().find(|word| word.contains(' '))
    {
        for command in script.split(';') {
            let mut words = vec!["virsh".to_owned()];
            words.extend(crate::shell::split(command));
            if words.len() > 1 {
                call.run(words);
            }
        }
        return;
    }
    let behind = arguments.iter().position(|word| word == "--").map(|at| at + 1);
    let Some(options) = tool.judge(call) else { return };
    let operands = options.operands.as_slice();
    match (call.name.as_str(), operands.first().map_or("", String::as_str)) {
        ("vagrant", "ssh") => {
            if let Some(script) = options.value("c command").map(str::to_owned) {
                call.shell(&script);
            }
        }
        (
            "lxc" | "incus" | "multipass" | "limactl" | "pct" | "colima" | "orb" | "orbctl",
            "exec" | "shell" | "ssh" | "run",
        ) => {
            let words = match behind {
                Some(at) => arguments[at..].to_vec(),
                None => operands.get(2..).unwrap_or_default().to_vec(),
            };
            inside(call, words);
        }
        ("limactl", "start" | "copy") | ("qm", "guest") => {
            let words = behind.map(|at| arguments[at..].to_vec()).unwrap_or_default();
            inside(call, words);
        }
        _ => {}
    }
}

/// A command in a machine, away from the project.
fn inside(call: &mut Call<'_, '_>, words: Vec<String>) {
    call.machine.apart(|machine| {
        machine.state.set_text("PWD", "/");
        machine.run_program(words, &[]);
    });
}

/// `wsl --unregister name`, `wsl [-d name] program …`
fn wsl(call: &mut Call<'_, '_>, arguments: &[String]) {
    let options = super::options::leading(
        "du",
        "distribution= user= cd= shell-type= unregister= terminate= \
        exec shutdown list set-default= export= import= install update status version help",
    )
    .read(arguments);
    if options.has("unregister") {
        return call.asks(CHANGES, "a distribution", DELETES);
    }
    if options.has("shutdown terminate t") {
        return call.asks(CHANGES, "a distribution", STOPS);
    }
    if options.has("install update unmount mount uninstall") {
        return call.asks(Effect::Package, "wsl", "changes what is installed on the host");
    }
    call.run(options.operands);
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn machines_stop_by_many_names() {
        pairs(&[
            ("virsh -c qemu:///system shutdown vm2", "virsh dominfo destroy"),
            ("virsh 'destroy vm1'", "virsh 'list --all'"),
            ("VBoxManage controlvm vm1 poweroff", "VBoxManage showvminfo poweroff"),
            ("vagrant ssh -c 'rm -rf data'", "vagrant ssh -c 'ls data'"),
            ("incus storage volume delete default data", "incus storage volume list default"),
            ("lxc exec web -- rm -rf /srv", "lxc exec web -- ls /srv"),
            ("wsl --unregister Ubuntu", "wsl --list --verbose"),
            ("wsl rm -rf /srv/x", "wsl ls"),
            ("qm stop 100", "qm status 100"),
        ]);
    }
}
