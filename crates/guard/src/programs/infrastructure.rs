//! Infrastructure as code, remote execution, stores of files and backups, and managers of secrets.

use super::options::leading;
use super::verbs::{self, Rule, Tool, asks, fine, is_dry, secret, tool};
use super::{Program, builds, shells};
use crate::eval::{Call, Extent, Writing};
use crate::finding::{Effect, TargetClass};
use crate::text::{HOLE, REMOTE, SECRET};

pub(super) const PROGRAMS: [Program; 39] = verbs::programs(&TOOLS, model);

const CHANGES: Effect = Effect::CloudResource;
const APPLIES: &str = "changes infrastructure";
const DELETES: &str = "deletes what is kept there";
const STOPS: &str = "stops what runs there";
const ACCESS: &str = "changes who may do what";

const TERRAFORM: &[Rule] = &[
    asks("apply|destroy|taint|untaint|force-unlock|import", CHANGES, APPLIES),
    asks("state rm|mv|push|replace-provider", CHANGES, "changes what is known of the infrastructure"),
    asks("workspace delete", CHANGES, DELETES),
    asks("run-all|run apply|destroy", CHANGES, APPLIES),
    asks("run --all apply|destroy", CHANGES, APPLIES),
    asks("run-all apply|destroy", CHANGES, APPLIES),
    asks("apply-all|destroy-all", CHANGES, APPLIES),
    asks("stack run|generate apply|destroy", CHANGES, APPLIES),
    secret("state pull"),
];
const PULUMI: &[Rule] = &[
    asks("up|update|destroy|refresh|cancel|import", CHANGES, APPLIES).unless("preview-only"),
    asks("stack rm|import|rename", CHANGES, DELETES),
    asks("state delete|move|rename|unprotect|repair", CHANGES, "changes what is known of the infrastructure"),
    asks("config|env rm|remove|rm-all", CHANGES, DELETES),
    secret("config|stack get|output").only("show-secrets"),
    secret("config").only("show-secrets"),
    secret("stack export").only("show-secrets"),
];
const CDK: &[Rule] = &[asks("deploy|destroy|import|rollback|gc|watch|bootstrap|migrate|apply", CHANGES, APPLIES)];
const SERVERLESS: &[Rule] =
    &[asks("deploy|remove|rollback", CHANGES, APPLIES), asks("deploy function|list", CHANGES, APPLIES)];
const SAM: &[Rule] = &[
    asks("deploy|delete|sync", CHANGES, APPLIES).unless("no-execute-changeset"),
    asks("publish", Effect::Package, "publishes versions that others use"),
];
const PACKER: &[Rule] = &[];
const VAULT: &[Rule] = &[
    asks("delete|destroy", CHANGES, DELETES),
    asks("kv delete|destroy|undelete|rollback", CHANGES, DELETES),
    asks("kv metadata delete", CHANGES, DELETES),
    asks("secrets|auth|audit|plugin disable|deregister|move|tune", CHANGES, DELETES),
    asks("policy|namespace|lease|token delete|revoke", CHANGES, DELETES),
    asks("operator seal|rekey|rotate|step-down|raft|migrate|generate-root|init|rotate-keys", CHANGES, STOPS),
    asks("lease revoke", CHANGES, DELETES),
    asks("policy write", Effect::Permission, ACCESS),
    fine("kv metadata"),
    secret("kv get"),
    fine("read sys/*"),
    secret("read"),
    secret("token create"),
    secret("unwrap"),
    secret("print token"),
];
const CONSUL: &[Rule] = &[
    asks("leave|force-leave", CHANGES, STOPS),
    asks("config|services|acl|namespace|partition|peering|intention delete|deregister|destroy", CHANGES, DELETES),
    asks("acl policy|token|role|auth-method|binding-rule delete|update", CHANGES, DELETES),
    asks("operator raft remove-peer|transfer-leader", CHANGES, STOPS),
    asks("snapshot restore", CHANGES, "replaces all data of the cluster"),
    asks("maint", CHANGES, STOPS).only("enable"),
];
const NOMAD: &[Rule] = &[
    asks("job stop|revert|restart|scale|dispatch|promote", CHANGES, STOPS),
    asks("stop", CHANGES, STOPS),
    asks("alloc stop|restart|signal", CHANGES, STOPS),
    asks("node drain|eligibility|purge", CHANGES, "takes a node out of service").only("enable disable"),
    asks("node-drain", CHANGES, "takes a node out of service").only("enable"),
    asks("system gc|reconcile", CHANGES, DELETES),
    asks(
        "namespace|volume|var|acl|quota|sentinel|deployment delete|deregister|purge|detach|fail|cancel",
        CHANGES,
        DELETES,
    ),
    asks("acl policy|token|role delete", CHANGES, DELETES),
    asks("server force-leave", CHANGES, STOPS),
    asks("operator raft|snapshot|autopilot|root remove-peer|restore|transfer-leadership", CHANGES, STOPS),
    secret("var get"),
];
const BOUNDARY: &[Rule] = &[asks("* delete|remove-*|cancel", CHANGES, DELETES)];
const RCLONE: &[Rule] = &[
    asks("delete|deletefile|purge|sync|move|moveto|bisync|cleanup|rmdirs|dedupe", CHANGES, DELETES).unless("n dry-run"),
    asks("config delete|disconnect", Effect::SecretRead, "takes stored credentials away"),
    secret("config show|dump|file_content"),
    secret("reveal"),
];
const S3: &[Rule] = &[
    asks("del|rm|rb|delete|expire|remove|mv|fixbucket|dellifecycle|delpolicy", CHANGES, DELETES),
    asks("sync", CHANGES, DELETES).only("delete-removed delete"),
    asks("setacl|setpolicy", Effect::Permission, ACCESS),
];
const MINIO: &[Rule] = &[
    asks("rm|rb|mv", CHANGES, DELETES),
    asks("mirror", CHANGES, DELETES).only("remove overwrite force"),
    asks(
        "admin service|user|group|policy|bucket|config|prometheus|decommission|heal|cluster|replicate stop|\
            restart|remove|rm|disable|detach|reset|unfreeze|freeze|start",
        CHANGES,
        STOPS,
    ),
    asks(
        "ilm|tag|version|replicate|event|quota|retention|legalhold|encrypt|undo|batch rm|remove|suspend|clear|cancel",
        CHANGES,
        DELETES,
    ),
    asks("anonymous|policy set", Effect::Permission, ACCESS),
    asks("undo", CHANGES, DELETES),
];
const B2: &[Rule] = &[
    asks("delete-*|rm|hide-file|cancel-*|clear-account", CHANGES, DELETES),
    asks("bucket|file|key|account delete|hide|clear|rm", CHANGES, DELETES),
    asks("sync", CHANGES, DELETES).only("delete"),
];
const RESTIC: &[Rule] = &[
    asks("forget|prune|repair|rewrite|migrate|rebuild-index", CHANGES, "deletes backups"),
    asks("key remove|passwd", CHANGES, "takes access to backups away"),
];
const BORG: &[Rule] = &[
    asks("delete|prune|compact|recreate|break-lock|rdelete|repo-delete|undelete", CHANGES, "deletes backups"),
    asks("check", CHANGES, "changes backups").only("repair"),
    asks("key change-passphrase|remove", CHANGES, "takes access to backups away"),
    secret("key export"),
];
const DUPLICITY: &[Rule] = &[asks("remove-*|cleanup|collection-remove", CHANGES, "deletes backups").only("force")];
const KOPIA: &[Rule] = &[
    asks("snapshot delete|expire", CHANGES, "deletes backups"),
    asks("blob|content|index|maintenance|policy|manifest delete|rm|run|drop|gc", CHANGES, "deletes backups"),
];
const RSNAPSHOT: &[Rule] = &[];
const DOPPLER: &[Rule] = &[
    asks("secrets|projects|environments|configs delete|rollback", CHANGES, DELETES),
    asks("configs tokens revoke", CHANGES, DELETES),
    fine("secrets").only("only-names"),
    secret("secrets"),
    secret("configs tokens"),
    secret("configure get token"),
];
const OP: &[Rule] = &[
    asks(
        "item|vault|document|user|group|account|connect|service-account|events-api delete|forget|suspend|archive",
        CHANGES,
        DELETES,
    ),
    asks("vault user|group grant|revoke", Effect::Permission, ACCESS),
    asks("user confirm|provision|reactivate", Effect::Account, ACCESS),
    secret("read"),
    secret("item|document get"),
    secret("inject").unless("o out-file"),
    secret("signin").only("raw"),
    secret("service-account create"),
];
const PASS: &[Rule] = &[
    asks("rm|remove|delete", CHANGES, "deletes stored secrets"),
    asks("mv|rename", CHANGES, "moves stored secrets").only("f force"),
    asks("recipients remove|rm", Effect::Permission, ACCESS),
    fine(
        "ls|list|find|search|git|init|insert|add|generate|edit|cp|copy|mv|rename|version|help|sync|fsck|audit|\
            completion|config|mounts|setup|clone|history|sum|update|recipients",
    ),
    fine("otp append|insert|uri|validate"),
    fine("show").only("c clip C q qrcode u unsafe_none"),
    fine("otp").only("c clip"),
    secret("show|otp|grep|cat|fscopy|env|process|generate|code"),
    secret("*").unless("c clip"),
];
const BITWARDEN: &[Rule] = &[
    asks("delete|restore|logout", CHANGES, "deletes stored secrets"),
    secret("get password|item|notes|totp|attachment|exposed|username|uri|template"),
    secret("list items|send"),
    secret("export").unless("output"),
    secret("unlock|login").only("raw"),
    asks("secret|project delete", CHANGES, "deletes stored secrets"),
    secret("secret get|list"),
];
const CHAMBER: &[Rule] = &[asks("delete", CHANGES, "deletes stored secrets"), secret("read|export|env|find")];
const INFISICAL: &[Rule] = &[asks("secrets delete", CHANGES, "deletes stored secrets"), secret("secrets|export")];
const LASTPASS: &[Rule] =
    &[asks("rm|delete", CHANGES, "deletes stored secrets"), fine("show").only("c clip"), secret("show|export")];
const KEYRING: &[Rule] =
    &[secret("lookup|get"), secret("search").only("all unlock"), asks("clear|del", CHANGES, "deletes stored secrets")];
const MACOS_KEYCHAIN: &[Rule] = &[
    asks("delete-*", CHANGES, "deletes stored secrets"),
    asks(
        "add-trusted-cert|authorizationdb|set-key-partition-list|unlock-keychain",
        Effect::Privilege,
        "changes what this system trusts",
    ),
    secret("find-generic-password|find-internet-password").only("w g"),
    secret("dump-keychain").only("d"),
    secret("export"),
];
const ANSIBLE_VAULT: &[Rule] = &[secret("view"), secret("decrypt").only("output=-")];
const CHEF: &[Rule] = &[
    asks("node|client|role|cookbook|environment|data|user|tag delete|bulk|purge", CHANGES, DELETES),
    asks("data bag delete", CHANGES, DELETES),
    asks("ssh|winrm", CHANGES, APPLIES),
    asks("cookbook upload", CHANGES, APPLIES),
];
const APPLY_ANY: &[Rule] = &[];

const TOOLS: [Tool; 39] = [
    tool(&["terraform", "tofu", "terragrunt", "terramate"], TERRAFORM).single_dash(
        "chdir= var= var-file= target= out= state= backup= lock-timeout= parallelism= replace= refresh= terragrunt-config= \
         terragrunt-working-dir= working-dir= backend-config= raw json help version",
    ),
    tool(&["pulumi"], PULUMI).valued("sCtm", "stack= cwd= target= message= config-file= color= parallel= \
        policy-pack="),
    tool(&["cdk", "cdktf"], CDK).valued("acpro", "app= context= profile= require-approval= output= role-arn= \
        toolkit-stack-name= outputs-file= method=").dry("dry-run no-execute"),
    tool(&["serverless", "sls", "sst", "osls"], SERVERLESS).valued("srfcp", "stage= region= function= config= \
        package= aws-profile=").dry("noDeploy"),
    tool(&["sam", "samlocal"], SAM).valued("tsb", "template-file= template= stack-name= region= profile= \
        config-file= config-env= s3-bucket= capabilities="),
    tool(&["packer"], PACKER),
    tool(&["vault", "bao"], VAULT).single_dash("address= namespace= ns= format= field= mount= versions= \
        version= path= policy= ttl= no-print token-only help"),
    tool(&["consul"], CONSUL).single_dash("http-addr= token= datacenter= namespace= ca-file= name= id= service= \
        reason= enable disable"),
    tool(&["nomad"], NOMAD).single_dash("address= region= namespace= token= job= deadline= task= enable disable \
        purge"),
    tool(&["boundary"], BOUNDARY).single_dash("addr= token= id= scope-id="),
    tool(&["rclone"], RCLONE).valued("P?v?", "config= min-age= max-age= include= exclude= filter= transfers= \
        checkers= bwlimit= log-file= log-level= backup-dir=").dry("dry-run n"),
    tool(&["s3cmd"], S3).valued("c", "config= access_key= secret_key= region= host=").dry("dry-run n"),
    tool(&["s5cmd"], S3).valued("r", "endpoint-url= profile= numworkers= exclude= include= credentials-file=").dry("dry-run"),
    tool(&["mc", "mcli"], MINIO).valued("C", "config-dir= older-than= newer-than= version-id=").dry("dry-run fake"),
    tool(&["b2", "b2v4"], B2).valued("", "profile="),
    tool(&["restic", "rustic"], RESTIC).valued("rpoHldwmyn?", "repo= password-file= password-command= option= \
        keep-last= keep-daily= keep-weekly= keep-monthly= tag= host= path= keep-within=").dry("dry-run n"),
    tool(&["borg", "borgmatic"], BORG).valued("rPacg", "repo= glob-archives= prefix= keep-daily= keep-weekly= \
        keep-monthly= remote-path= rsh=").dry("dry-run n"),
    tool(&["duplicity", "duply"], DUPLICITY).valued("", "encrypt-key= archive-dir= name="),
    tool(&["kopia"], KOPIA).valued("", "config-file= password="),
    tool(&["rsnapshot", "tarsnap", "duplicati-cli", "bup"], RSNAPSHOT),
    tool(&["doppler"], DOPPLER).valued("pct", "project= config= token= scope= format= only-names"),
    tool(&["op"], OP).valued("", "vault= account= session= format= fields= env-file= config= out-file= o="),
    tool(&["pass", "gopass", "passage", "pa"], PASS),
    tool(&["bw", "bws", "rbw"], BITWARDEN).valued("t", "session= access-token= output= organizationid= itemid= \
        format= password="),
    tool(&["chamber"], CHAMBER).valued("b", "backend= format="),
    tool(&["infisical", "teller", "berglas", "akeyless", "conjur"], INFISICAL).valued("", "env= path= \
        projectId= format="),
    tool(&["lpass"], LASTPASS),
    tool(&["secret-tool", "keyring", "kwallet-query"], KEYRING),
    tool(&["security"], MACOS_KEYCHAIN).valued("asDlk", ""),
    tool(&["ansible-vault"], ANSIBLE_VAULT).valued("", "vault-id= vault-password-file= output= encrypt-vault-id="),
    tool(&["knife", "chef-client", "chef-solo"], CHEF).valued("cEzsu", "config= environment= server-url="),
    tool(&["puppet"], &[asks("apply|agent|resource", CHANGES, APPLIES).unless("noop"), asks("node|cert|ca clean|\
        purge|deactivate|revoke|destroy", CHANGES, DELETES)]).valued("e", "execute= environment=").dry("noop"),
    tool(&["salt", "salt-call", "salt-ssh", "salt-key"], APPLY_ANY).valued("GLCENc", "out= timeout= config-dir= \
        file-root= pillar-root=").dry("test"),
    tool(&["ansible"], APPLY_ANY).valued("imauMfteBPlTcKk", "inventory= module-name= args= user= module-path= \
        forks= limit= extra-vars= become-user= become-method= private-key= ssh-common-args= \
        vault-password-file= connection= timeout= check list-hosts syntax-check"),
    tool(&["ansible-playbook", "ansible-pull"], APPLY_ANY).valued("iueltMfTcUdC", "inventory= user= extra-vars= \
        limit= tags= skip-tags= module-path= forks= private-key= vault-password-file= url= directory= checkout= \
        check list-hosts list-tasks list-tags syntax-check"),
    tool(&["fab", "pyinfra", "bolt"], APPLY_ANY).valued("HiutDn", "hosts= identity= user= targets= nodes="),
    tool(&["crossplane", "waypoint", "atlantis", "spacectl", "env0"], &[
        asks("destroy|delete|apply|deploy|uninstall|unlock", CHANGES, APPLIES),
        asks("* destroy|delete|apply|confirm|discard", CHANGES, APPLIES),
    ]),
    tool(&["aztfexport", "driftctl", "former2"], &[]),
    tool(&["nixops", "colmena", "deploy-rs"], &[asks("destroy|delete|reboot|stop|deploy|apply|backup", CHANGES, APPLIES)]).valued("d", "deployment="),
];

fn model(call: &mut Call<'_, '_>) {
    let Some(tool) = verbs::find(&TOOLS, &call.name) else { return };
    let arguments = call.arguments().to_vec();
    match call.name.clone().as_str() {
        "ansible" => return ansible(call, tool),
        "ansible-playbook" | "ansible-pull" => return playbook(call, tool),
        "salt" | "salt-call" | "salt-ssh" | "salt-key" => return salt(call, tool),
        "doppler" | "op" | "chamber" | "infisical" | "teller" | "bws" if runs_behind(call, &arguments) => return,
        "pass" | "gopass" | "passage" | "pa" if arguments.is_empty() => return call.print(&HOLE.to_string()),
        "terragrunt" if arguments.iter().any(|word| word == "--all") => {
            if arguments.iter().any(|word| word == "apply" || word == "destroy") {
                call.asks(CHANGES, "all modules", APPLIES);
            }
            return call.print(&HOLE.to_string());
        }
        "rsnapshot" | "tarsnap" | "duplicati-cli" | "bup" => {
            let deletes = arguments
                .iter()
                .any(|word| matches!(word.as_str(), "-d" | "--nuke" | "delete" | "rm" | "gc" | "prune-older"));
            if deletes && !arguments.iter().any(|word| word == "--dry-run" || word == "-n") {
                call.asks(CHANGES, "backups", "deletes backups");
            }
            return call.print(&HOLE.to_string());
        }
        _ => {}
    }
    let Some(options) = tool.judge(call) else { return };
    let operands: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    match (call.name.as_str(), operands.as_slice()) {
        ("terraform" | "tofu", [verb, ..]) if matches!(*verb, "init" | "plan" | "apply" | "validate") => {
            let place = options.value("chdir").unwrap_or(".").to_owned();
            builds::project_code(call, &place);
        }
        ("rclone", [verb, source, target, ..])
            if matches!(*verb, "copy" | "copyto" | "sync" | "move" | "moveto") && !is_dry(&options, "dry-run n") =>
        {
            transfer(call, source, target);
        }
        ("terraform" | "tofu", ["output", name, ..]) if crate::eval::is_secret_name(&name.to_ascii_uppercase()) => {
            call.print(&SECRET.to_string());
        }
        ("rclone", ["purge" | "delete" | "deletefile", path]) if !path.contains(':') => {
            call.delete(path, Extent::Bulk);
        }
        ("rclone", ["cat", ..]) => call.print(&REMOTE.to_string()),
        ("s3cmd", ["get", _, target, ..]) => {
            let path = call.write(target, Writing::Replace);
            call.now_foreign(&path);
        }
        ("s3cmd", ["put", sources @ .., _]) => {
            for source in sources {
                sends(call, source);
            }
        }
        ("mc" | "mcli" | "s5cmd", ["cp", source, ..]) => sends(call, source),
        ("nomad", ["alloc", "exec", _, words @ ..]) => {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            call.run(words);
        }
        ("consul", ["exec", words @ ..] | ["lock", _, words @ ..]) => call.shell(&words.join(" ")),
        ("knife", ["ssh" | "winrm", _, script, ..]) => call.shell(script),
        ("restic" | "rustic", _) => {
            if let Some(script) = options.value("password-command").map(str::to_owned) {
                call.shell(&script);
            }
        }
        _ => {}
    }
}

fn sends(call: &mut Call<'_, '_>, source: &str) {
    if call.place(source, true).class == TargetClass::Secret {
        call.asks(Effect::NetworkSend, source, "sends secrets away");
    }
}

/// `rclone copy here there:`; a name before a colon is another place.
fn transfer(call: &mut Call<'_, '_>, source: &str, target: &str) {
    let remote = |word: &str| word.split_once(':').is_some_and(|(name, _)| !name.contains('/'));
    if !remote(source) {
        sends(call, source);
    }
    if !remote(target) {
        let path = call.write(target, Writing::Replace);
        if remote(source) {
            call.now_foreign(&path);
        }
    }
}

/// `op run -- program`, `doppler run --command text`, `chamber exec service -- program`.
fn runs_behind(call: &mut Call<'_, '_>, arguments: &[String]) -> bool {
    let Some(verb) = arguments.iter().position(|word| !word.starts_with('-')) else { return false };
    if !matches!(arguments[verb].as_str(), "run" | "exec") {
        return false;
    }
    let rest = &arguments[verb + 1..];
    if let Some(at) = rest.iter().position(|word| word == "--") {
        call.run(rest[at + 1..].to_vec());
        return true;
    }
    let script = rest.iter().position(|word| word == "--command" || word == "-c").and_then(|at| rest.get(at + 1));
    let attached = rest.iter().find_map(|word| word.strip_prefix("--command=")).map(str::to_owned);
    if let Some(script) = script.cloned().or(attached) {
        call.shell(&script);
    }
    true
}

/// `ansible hosts -m module -a arguments`: what the module does there.
fn ansible(call: &mut Call<'_, '_>, tool: &Tool) {
    let options = tool.read(call.arguments());
    call.print(&HOLE.to_string());
    if options.has("help h version list-hosts C check syntax-check") || options.operands.is_empty() {
        return;
    }
    let module = options.value("m module-name").unwrap_or("command");
    let module = module.rsplit('.').next().unwrap_or(module).to_owned();
    let arguments = options.value("a args").unwrap_or_default().to_owned();
    let mut fields = arguments.split_whitespace().filter_map(|word| word.split_once('='));
    let state = fields.clone().find(|(name, _)| *name == "state").map_or("", |(_, value)| value).to_owned();
    let path = fields
        .find(|(name, _)| matches!(*name, "path" | "dest" | "name" | "src"))
        .map_or("", |(_, value)| value)
        .to_owned();
    let target = options.operands.join(" ");
    match module.as_str() {
        "command" | "shell" | "raw" | "win_shell" | "win_command" => {
            let directory = HOLE.to_string();
            call.machine.apart(|machine| {
                // Where it runs nobody knows here, but not in the project.
                machine.state.set_text("PWD", if arguments.contains("chdir=") { directory } else { "/".to_owned() });
                machine.evaluate_apart("ansible", &arguments, Vec::new());
            });
        }
        "ping" | "setup" | "debug" | "stat" | "find" | "fetch" | "gather_facts" | "assert" | "getent"
        | "package_facts" | "service_facts" | "wait_for" | "uri" | "slurp" | "win_ping" => {}
        "file" if state == "absent" => {
            let place = call.place(&path, true);
            let bulk = Extent::Bulk;
            call.delete_place(&place, bulk);
            call.asks(Effect::Delete, &path, "deletes files on other machines");
        }
        "service" | "systemd" | "win_service" | "sysvinit"
            if !matches!(state.as_str(), "" | "started")
                || arguments.contains("enabled=")
                || arguments.contains("masked=") =>
        {
            call.asks(Effect::Service, &path, "stops or restarts services of other machines");
        }
        "reboot" | "win_reboot" => call.asks(Effect::Power, &target, "restarts other machines"),
        "apt" | "yum" | "dnf" | "package" | "pip" | "apk" | "pacman" | "zypper" | "homebrew" | "snap" | "npm"
        | "gem"
            if arguments.contains("name=") || arguments.contains("upgrade=") || arguments.contains("autoremove=") =>
        {
            call.asks(Effect::Package, &path, "changes what is installed on other machines");
        }
        "user" | "group" | "authorized_key" => call.asks(Effect::Account, &path, "changes accounts of other machines"),
        "cron" | "at" | "copy" | "template" | "lineinfile" | "blockinfile" | "replace" | "unarchive" | "get_url"
        | "git" | "synchronize" | "script" | "mount" | "lvol" | "filesystem" | "parted" | "iptables" | "ufw"
        | "firewalld" | "sysctl" | "hostname" | "selinux" => {
            call.asks(CHANGES, &target, "changes files or settings of other machines");
        }
        _ => {}
    }
}

fn playbook(call: &mut Call<'_, '_>, tool: &Tool) {
    let options = tool.read(call.arguments());
    call.print(&HOLE.to_string());
    let looks = options.has("help h version list-hosts list-tasks list-tags syntax-check check");
    if call.name == "ansible-pull" {
        if let Some(url) = options.value("U url").map(str::to_owned).filter(|_| !options.has("help h version")) {
            call.asks(Effect::ExecuteRemote, &url, "fetches tasks and carries them out, unread");
        }
        return;
    }
    // Here `-C` is `--check`.
    let checks = looks || call.arguments().iter().any(|word| word == "-C" || word == "-CD" || word == "-DC");
    if !checks && !options.operands.is_empty() {
        call.asks(CHANGES, &options.operands.join(" "), APPLIES);
    }
}

/// `salt target module.function arguments`
fn salt(call: &mut Call<'_, '_>, tool: &Tool) {
    let options = tool.read(call.arguments());
    call.print(&HOLE.to_string());
    if options.has("help h version") {
        return;
    }
    if call.name == "salt-key" {
        if options.has("d delete D delete-all a accept A accept-all r reject R reject-all") {
            call.asks(Effect::Account, "keys", ACCESS);
        }
        return;
    }
    let skip = usize::from(call.name != "salt-call");
    let Some((function, rest)) = options.operands.get(skip..).and_then(<[String]>::split_first) else { return };
    if rest.iter().any(|word| word.eq_ignore_ascii_case("test=true")) {
        return;
    }
    match function.as_str() {
        "system.reboot" | "system.shutdown" | "system.poweroff" | "system.halt" | "system.init" => {
            call.never(Effect::Power, function, "switches machines off or restarts them");
        }
        "cmd.run" | "cmd.shell" | "cmd.run_all" | "cmd.script" => {
            let words = leading("", "").read(rest).operands;
            call.shell(&shells::joined(&words));
        }
        function
            if [
                "state.",
                "service.stop",
                "service.restart",
                "service.disable",
                "pkg.install",
                "pkg.remove",
                "pkg.purge",
                "pkg.upgrade",
                "system.",
                "file.remove",
                "file.write",
                "user.",
                "group.",
                "ps.kill",
                "ps.pkill",
                "cp.get",
            ]
            .iter()
            .any(|start| function.starts_with(start))
                && !function.starts_with("state.show") =>
        {
            call.asks(CHANGES, function, APPLIES);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn infrastructure_is_planned_before_it_is_changed() {
        pairs(&[
            ("terraform -chdir=prod destroy", "terraform plan -target=module.destroy"),
            ("terraform apply -destroy -auto-approve", "terraform plan -destroy"),
            ("terragrunt run-all destroy", "terragrunt run-all plan"),
            ("terragrunt run --all apply", "terragrunt run --all plan"),
            ("pulumi up --yes", "pulumi preview"),
            ("npx cdk deploy", "npx cdk synth"),
            ("ansible db -m shell -a 'rm -rf /srv/db/*'", "ansible db -m shell -a 'df -h'"),
            (
                "ansible web -m service -a 'name=nginx state=stopped'",
                "ansible web -m service -a 'name=nginx state=started' -C",
            ),
            ("ansible-playbook site.yml", "ansible-playbook --check site.yml"),
            ("ansible-pull -U https://x.example/p.git", "ansible-pull --help"),
            ("nomad node drain -enable -yes -self", "nomad node status"),
            ("salt '*' cmd.run 'rm -rf /srv/x'", "salt '*' test.ping"),
        ]);
    }

    #[test]
    fn stores_lose_files_and_show_secrets() {
        pairs(&[
            ("rclone sync empty remote:data", "rclone sync --dry-run empty remote:data"),
            ("rclone copy .env remote:x", "rclone copy dist remote:x"),
            ("s5cmd rm 's3://b/old/*'", "s5cmd ls 's3://b/old/*'"),
            ("restic forget --keep-last 1 --prune", "restic forget --keep-last 1 -n"),
            ("borg delete /srv/repo::monday", "borg list /srv/repo"),
            ("vault kv get secret/app", "vault kv list secret/"),
            ("pass show prod/db", "pass ls"),
            ("pass prod/db", "pass -c prod/db"),
            ("op read op://dev/db/password", "op vault list"),
            ("op run -- rm -rf data", "op run -- npm test"),
            ("doppler secrets", "doppler run -- npm start"),
            ("bw get password github", "bw sync"),
        ]);
    }
}
