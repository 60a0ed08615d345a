//! Clusters: kubectl and what stands around it.

use super::options::{Grammar, leading};
use super::registries::is_bare_address;
use super::verbs::{self, Rule, Tool, asks, fine, is_dry, secret, tool};
use super::{Program, containers, environment, prints};
use crate::eval::{Call, Writing};
use crate::finding::Effect;
use crate::text::SECRET;

pub(super) const PROGRAMS: [Program; 27] = verbs::programs(&TOOLS, model);
pub(super) const KUBECTL: &[Program] =
    &[prints(&["kubectl", "oc", "k", "kubecolor"], kubectl), prints(&["k3s", "microk8s", "k0s", "rke2"], bundled)];

const CHANGES: Effect = Effect::CloudResource;
const DELETES: &str = "deletes what runs or is kept in a cluster";
const STOPS: &str = "stops or restarts what runs in a cluster";
const APPLIES: &str = "changes a cluster without a look at what changes";

const KUBE: &[Rule] = &[
    asks("delete", CHANGES, DELETES),
    asks("drain|cordon|evict", CHANGES, "takes a node out of service"),
    asks("adm drain|cordon|prune|evacuate", CHANGES, "takes a node out of service"),
    asks("scale", CHANGES, "scales to nothing").only("replicas=0"),
    asks("rollout restart|undo|pause|cancel|retry", CHANGES, STOPS),
    asks("replace", CHANGES, DELETES).only("force"),
    asks("apply", CHANGES, DELETES).only("prune force"),
    asks("config delete-context|delete-cluster|delete-user|unset", CHANGES, "deletes access to a cluster"),
    asks("config set-credentials", Effect::Persistence, "changes stored credentials"),
    asks("certificate approve|deny", Effect::Account, "decides who may enter a cluster"),
    asks("adm certificate", Effect::Account, "decides who may enter a cluster"),
    asks("adm policy", Effect::Privilege, "changes who may do what in a cluster"),
    asks("auth reconcile", Effect::Privilege, "changes who may do what in a cluster"),
    asks("policy add-role-to-user|add-scc-to-user|remove-*", Effect::Privilege, "changes who may do what in a cluster"),
    asks("idle|rollback|prune", CHANGES, STOPS),
    asks("plugin|krew install|uninstall|upgrade", Effect::Package, "installs code from elsewhere"),
    secret("create token"),
    secret("config view").only("raw"),
    secret("whoami").only("t show-token"),
    secret("sa|serviceaccounts get-token|new-token"),
    secret("extract secret/*").only("to=-"),
];

const KUBE_TOOL: Tool = tool(&["kubectl"], KUBE).valued(
    "nsfoLlcvpk",
    "namespace= context= cluster= kubeconfig= user= server= as= as-group= as-uid= token= request-timeout= cache-dir= \
     certificate-authority= client-certificate= client-key= tls-server-name= profile= profile-output= username= \
     password= \
     loglevel= filename= output= selector= container= replicas= grace-period= timeout= field-selector= \
     template= patch= \
     type= image= overrides= restart= env= port= to= dry-run=? force prune raw all all-namespaces cascade=? \
     min= max= \
     kustomize= field-manager= sort-by= current-replicas= resource-version= stdin tty privileged rm \
     cluster-role= clusterrole=",
);

/// Words and options before a command that runs in a pod.
const POD: Grammar = leading(
    "ncfsu",
    "namespace= context= container= filename= kubeconfig= pod-running-timeout= cluster= user= server= stdin tty \
        quiet shell=",
);

fn kubectl(call: &mut Call<'_, '_>) {
    let arguments = call.arguments().to_vec();
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    // What stands behind `--` belongs to the program in the pod.
    let before = std::mem::take(&mut call.words);
    call.words = before.iter().take(end + 1).cloned().collect();
    let options = KUBE_TOOL.judge(call);
    call.words = before;
    let Some(options) = options else { return };
    let operands: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    let behind = arguments.get(end + 1..).unwrap_or_default();
    match operands.as_slice() {
        ["exec" | "rsh" | "debug" | "run", ..] => {
            if operands[0] == "debug"
                && operands.get(1).is_some_and(|target| target.starts_with("node/") || target.starts_with("no/"))
            {
                call.asks(Effect::Privilege, operands[1], "opens the host of a node");
            }
            let overrides = options.value("overrides").unwrap_or_default();
            if options.has("privileged")
                || ["hostPID", "hostNetwork", "hostPath", "privileged"].iter().any(|key| overrides.contains(key))
            {
                call.asks(Effect::Privilege, "a pod", "gives a pod rights over its node");
            }
            let words = if behind.is_empty() && matches!(operands[0], "exec" | "rsh") {
                let at = arguments.iter().position(|word| word == operands[0]).map_or(arguments.len(), |at| at + 1);
                let given = POD.read(&arguments[at..]).operands;
                // `exec POD -c container command`: options may follow the pod.
                POD.read(given.get(1..).unwrap_or_default()).operands
            } else {
                behind.to_vec()
            };
            if operands[0] == "run" {
                // A pod of its own is gone afterwards with all that was changed in it.
                containers::confined(call, Vec::new(), "/", &[words]);
            } else {
                inside(call, words);
            }
        }
        ["get", kind, ..] => {
            let shown = options.value("o output").is_some_and(|format| !matches!(format, "name" | "wide"))
                || options.has("template");
            let secrets = kind
                .split(',')
                .chain(operands.get(2).copied())
                .any(|kind| matches!(kind.split('/').next().unwrap_or_default(), "secret" | "secrets"));
            if shown && secrets {
                call.print(&SECRET.to_string());
            }
        }
        ["apply" | "create" | "replace", ..] => {
            if let Some(file) =
                options.values("f filename k kustomize").find(|file| is_bare_address(file)).map(str::to_owned)
            {
                call.asks(Effect::ExecuteRemote, &file, "gives a cluster what lies at an address, unread");
            }
            let admin = operands.get(1).is_some_and(|kind| kind.contains("rolebinding"))
                && arguments.iter().any(|word| word.contains("cluster-admin"));
            if admin {
                call.asks(Effect::Privilege, "cluster-admin", "gives somebody all rights in a cluster");
            }
        }
        ["patch", ..] => {
            let patch: String = options.value("p patch").unwrap_or_default().split_whitespace().collect();
            if patch.contains("\"replicas\":0")
                || patch.contains("replicas:0")
                || patch.contains("\"finalizers\":null")
                || patch.contains("\"finalizers\":[]")
            {
                call.asks(CHANGES, &operands.join(" "), "scales to nothing, or lets go of what is kept");
            }
        }
        ["taint", ..] if operands.iter().any(|word| word.ends_with(":NoExecute")) => {
            call.asks(CHANGES, &operands.join(" "), "drives everything off a node");
        }
        ["cp", source, target, ..] => {
            let local = |word: &str| !word.contains(':');
            if local(target) {
                call.write(target, Writing::Replace);
            }
            if local(source) && call.place(source, true).class == crate::finding::TargetClass::Secret {
                call.read(source);
            }
            let path = source.split_once(':').map_or("", |(_, path)| path);
            if !path.is_empty()
                && (path.contains("/secrets/") || call.place(path, true).class == crate::finding::TargetClass::Secret)
            {
                call.print(&SECRET.to_string());
            }
        }
        _ => {}
    }
}

/// A command in a pod, away from the project.
fn inside(call: &mut Call<'_, '_>, words: Vec<String>) {
    call.machine.apart(|machine| {
        machine.state.set_text("PWD", "/");
        machine.run_program(words, &[]);
    });
}

/// `k3s kubectl …` and the verbs of the distributions themselves.
fn bundled(call: &mut Call<'_, '_>) {
    let Some((verb, rest)) = call.arguments().split_first() else { return };
    let (verb, rest) = (verb.clone(), rest.to_vec());
    match verb.as_str() {
        "kubectl" | "crictl" | "ctr" | "helm" | "helm3" => {
            let mut words = vec![verb];
            words.extend(rest);
            call.run(words);
        }
        "stop" | "reset" | "disable" | "leave" | "remove-node" | "delete" | "uninstall" | "refresh-certs"
        | "certificate" | "secrets-encrypt" | "etcd-snapshot"
            if !rest
                .iter()
                .any(|word| matches!(word.as_str(), "--help" | "-h" | "list" | "ls" | "status" | "save")) =>
        {
            call.asks(CHANGES, &rest.join(" "), STOPS);
        }
        _ => {}
    }
    call.print(&crate::text::HOLE.to_string());
}

const HELM: &[Rule] = &[
    asks("uninstall|delete|del|un", CHANGES, DELETES),
    asks("rollback", CHANGES, STOPS),
    asks("upgrade", CHANGES, STOPS).only("force recreate-pods reset-values"),
    asks("push", Effect::Package, "publishes a chart that others use"),
    asks("cm-push", Effect::Package, "publishes a chart that others use"),
    asks("install|upgrade * http*://*", Effect::ExecuteRemote, "installs what lies at an address"),
    asks("plugin install|update|uninstall", Effect::Package, "installs code from elsewhere"),
];
const ARGOCD: &[Rule] = &[
    asks(
        "app|appset|proj|project|cluster|repo|repocreds|cert|gpg|account delete*|rm|remove*|terminate-op|\
            rollback|unset",
        CHANGES,
        DELETES,
    ),
    asks("app sync", CHANGES, DELETES).only("prune force replace"),
    asks("app actions", CHANGES, STOPS).unless("help"),
    asks("admin import", CHANGES, DELETES),
    secret("account generate-token|get-user-info"),
    secret("admin initial-password"),
];
const FLUX: &[Rule] =
    &[asks("uninstall", CHANGES, DELETES), asks("delete", CHANGES, DELETES), asks("suspend", CHANGES, STOPS)];
const UNINSTALLS: &[Rule] = &[
    asks("uninstall|delete|remove|purge|destroy|down|reset|stop|pause|disable|clean|rm|disconnect", CHANGES, DELETES),
    asks("x|experimental uninstall", CHANGES, DELETES),
    asks(
        "clustermesh|hubble|dev|stack|manifest|instance|pipeline|addon|addons|env|environment|app|service|\
            namespace|space delete|disable|destroy|rm|remove|down|uninstall|pause|sleep",
        CHANGES,
        DELETES,
    ),
];
const LINKERD: &[Rule] = &[asks("multicluster unlink", CHANGES, DELETES)];
const VELERO: &[Rule] = &[
    asks("backup|restore|schedule|snapshot-location|backup-location|repo delete|pause", CHANGES, DELETES),
    asks("delete", CHANGES, DELETES),
    asks("uninstall", CHANGES, DELETES),
];
const NODES: &[Rule] = &[
    asks("delete|rm|stop|pause|reset|restart", CHANGES, DELETES),
    asks(
        "cluster|node|registry|profile|image|nodepool|fargateprofile|addon|image delete|rm|stop|remove|restart",
        CHANGES,
        DELETES,
    ),
    asks("addons disable", CHANGES, STOPS),
    asks("reset|remove", CHANGES, DELETES),
];
const EKSCTL: &[Rule] = &[
    asks("delete", CHANGES, DELETES),
    asks("scale", CHANGES, "scales to nothing").only("nodes=0 N=0 nodes-max=0"),
    asks("drain", CHANGES, "takes nodes out of service"),
    asks("upgrade|replace|deregister", CHANGES, APPLIES),
];
const KOPS: &[Rule] = &[
    fine("delete|update|rolling-update|replace|toolbox").unless("yes y force"),
    asks("delete|rolling-update|update|replace", CHANGES, DELETES),
];
const KUBEADM: &[Rule] =
    &[asks("reset", CHANGES, DELETES), asks("upgrade apply|node", CHANGES, APPLIES), secret("token create|list")];
const TALOS: &[Rule] = &[
    asks("reset|reboot|shutdown|upgrade|upgrade-k8s|rollback|restart|wipe", CHANGES, STOPS),
    asks("service * stop|restart", CHANGES, STOPS),
    asks("etcd leave|remove-member|forfeit-leadership", CHANGES, DELETES),
];
const HELMFILE: &[Rule] = &[asks("destroy|delete", CHANGES, DELETES), asks("apply|sync|charts", CHANGES, APPLIES)];
const CONTEXTS: &[Rule] = &[asks("*", CHANGES, "deletes access to a cluster").only("d")];
const TELEPRESENCE: &[Rule] = &[asks("uninstall", CHANGES, DELETES), asks("helm uninstall", CHANGES, DELETES)];
const KAPP: &[Rule] = &[asks("delete|app-group", CHANGES, DELETES), asks("deploy", CHANGES, APPLIES).only("y yes")];
const OPERATOR: &[Rule] = &[asks("cleanup|olm", CHANGES, DELETES).unless("status")];
const RANCHER: &[Rule] = &[
    asks("delete|rm|stop|restart|scale", CHANGES, DELETES),
    asks("clusters|nodes|projects|namespaces|apps|app delete|rm|remove|rollback", CHANGES, DELETES),
];

const TOOLS: [Tool; 27] = [
    tool(&["helm"], HELM).valued(
        "nfl",
        "namespace= kube-context= kubeconfig= kube-apiserver= kube-token= kube-as-user= registry-config= repository-cache= \
         repository-config= values= set= set-string= version= timeout= post-renderer= selector= dry-run=?",
    ),
    tool(&["kustomize"], &[]),
    tool(&["argocd"], ARGOCD).valued("Nol", "server= auth-token= config= grpc-web-root-path= app-namespace= \
        output= selector="),
    tool(&["flux"], FLUX).valued("n", "namespace= context= kubeconfig= timeout="),
    tool(&["istioctl"], UNINSTALLS).valued("nic", "namespace= istioNamespace= context= kubeconfig= revision="),
    tool(&["linkerd"], LINKERD).valued("nL", "namespace= linkerd-namespace= context="),
    tool(&["cilium", "consul-k8s", "dapr", "kn", "tkn", "calicoctl", "kubevirt", "virtctl"], UNINSTALLS).valued("n", "namespace= context= kubeconfig="),
    tool(&["velero"], VELERO).valued("n", "namespace= kubecontext= kubeconfig="),
    tool(&["kind", "ctlptl"], NODES).valued("n", "name= kubeconfig= verbosity="),
    tool(&["minikube"], NODES).valued("pn", "profile= node= driver= bootstrapper= alsologtostderr"),
    tool(&["k3d"], NODES),
    tool(&["k3sup", "rke"], NODES).valued("", "config= ip= user="),
    tool(&["eksctl"], EKSCTL).valued("nrpfvNmM", "name= cluster= region= profile= config-file= verbose= nodes= \
        nodes-min= nodes-max= timeout="),
    tool(&["kops"], KOPS).valued("v", "name= state= config= cloud= output="),
    tool(&["kubeadm"], KUBEADM).valued("v", "config= kubeconfig= rootfs="),
    tool(&["talosctl"], TALOS).valued("ne", "nodes= endpoints= context= talosconfig= cluster="),
    tool(&["helmfile"], HELMFILE).valued("feln", "file= environment= selector= namespace= kube-context= \
        helm-binary= state-values-file= chart="),
    tool(&["skaffold", "devspace", "garden", "okteto", "tilt", "draft", "werf", "nhctl"], UNINSTALLS)
        .valued("nfpm", "namespace= kube-context= filename= profile= module= context= port= host="),
    tool(&["kubectx", "kubens"], CONTEXTS),
    tool(&["telepresence"], TELEPRESENCE),
    tool(&["kapp"], KAPP).valued("anf", "app= namespace= file= kubeconfig="),
    tool(&["operator-sdk"], OPERATOR),
    tool(&["rancher"], RANCHER).valued("c", "config= debug"),
    tool(&["vcluster", "loft", "kamaji", "clusterctl", "gardenctl", "capi"], UNINSTALLS).valued("n", "namespace= context= kubeconfig="),
    tool(&["k9s", "stern", "kubetail", "popeye"], &[]).valued("nc", "context= namespace= command="),
    tool(&["kubeseal", "age-keygen"], &[]),
    tool(&["rook", "longhornctl", "mayastor"], UNINSTALLS),
];

fn model(call: &mut Call<'_, '_>) {
    let Some(tool) = verbs::find(&TOOLS, &call.name) else { return };
    let arguments = call.arguments().to_vec();
    match call.name.as_str() {
        "sops" => {
            let options = leading("d", "decrypt in-place output= extract= input-type= output-type=").read(&arguments);
            let verb = options.operands.first().map_or("", String::as_str);
            let decrypts = options.has("d decrypt") || verb == "decrypt" || arguments.iter().any(|word| word == "-d");
            if decrypts && !arguments.iter().any(|word| matches!(word.as_str(), "-i" | "--in-place" | "--output")) {
                call.print(&SECRET.to_string());
            }
            if verb == "exec-env" || verb == "exec-file" {
                let script = options.operands.get(2).cloned().unwrap_or_default();
                call.shell(&script);
            }
            return;
        }
        "minikube" if arguments.first().is_some_and(|verb| verb == "kubectl") => {
            let mut words = vec!["kubectl".to_owned()];
            words.extend(arguments[1..].iter().filter(|word| *word != "--").cloned());
            return call.run(words);
        }
        "minikube" if arguments.first().is_some_and(|verb| verb == "ssh") => {
            let rest: Vec<String> = arguments[1..].iter().filter(|word| *word != "--").cloned().collect();
            return call.shell(&rest.join(" "));
        }
        _ => {}
    }
    let Some(options) = tool.judge(call) else { return };
    if call.name == "helm"
        && let Some(program) = options.value("post-renderer").map(str::to_owned)
        && !is_dry(&options, "dry-run")
    {
        environment::side_door(call, &program);
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn clusters_are_changed_by_verbs_and_not_by_names() {
        pairs(&[
            ("kubectl --context prod delete pvc data-0", "kubectl logs delete-job-1"),
            ("kubectl delete pod web-0 --force", "kubectl delete pod web-0 --dry-run=client"),
            ("kubectl scale --replicas 0 statefulset/db -n prod", "kubectl scale --replicas 3 statefulset/db"),
            ("kubectl exec deploy/web -- rm -rf /data", "kubectl exec deploy/web -- ls /data"),
            ("kubectl exec -it web -c app -- sh -c 'rm -rf /data'", "kubectl exec -it web -c app -- sh"),
            ("kubectl get secret db -o yaml", "kubectl get secrets"),
            ("kubectl config view --raw", "kubectl config view"),
            ("kubectl apply -f https://x.example/a.yaml", "kubectl diff -f a.yaml"),
            ("k3s kubectl delete pod x", "k3s kubectl get pod x"),
            ("oc scale dc/web --replicas=0", "oc status"),
            ("helm --kube-context prod del web", "helm status uninstall"),
            ("argocd app sync shop --prune", "argocd app diff shop"),
            ("flux delete kustomization apps -s", "flux get all -A"),
            ("kops delete cluster --name x --yes", "kops delete cluster --name x"),
            ("minikube kubectl -- delete pod x", "minikube kubectl -- get pods"),
        ]);
    }
}
