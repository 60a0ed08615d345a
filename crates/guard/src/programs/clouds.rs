//! Command lines of clouds and of places that run programs for others.
//!
//! Their verbs are regular, so most of them need no table at all: the first word that is a verb decides.

use super::Program;
use super::verbs::{self, Rule, Tool, asks, fine, secret, tool};
use crate::eval::{Call, Writing};
use crate::finding::{Effect, TargetClass};
use crate::text::{HOLE, REMOTE, SECRET};

pub(super) const PROGRAMS: [Program; 43] = verbs::programs(&TOOLS, model);

const CHANGES: Effect = Effect::CloudResource;
const DELETES: &str = "deletes what is kept in the cloud";
const STOPS: &str = "stops or restarts what runs in the cloud";
const NOTHING: &str = "scales to nothing";
const DEPLOYS: &str = "changes what runs in the cloud without a look at what changes";
const KEYS: &str = "changes stored credentials";
const ACCESS: &str = "changes who may do what in the cloud";

const AWS: &[Rule] = &[
    asks("s3 rm|rb", CHANGES, DELETES),
    asks("s3 mv s3://*", CHANGES, DELETES),
    asks("s3 sync", CHANGES, DELETES).only("delete"),
    asks("s3 cp|sync|mv", Effect::Permission, "opens what is stored to everybody")
        .only("acl=public-read acl=public-read-write"),
    secret("secretsmanager get-secret-value|batch-get-secret-value|get-random-password"),
    secret("ssm get-parameter|get-parameters|get-parameters-by-path|get-parameter-history").only("with-decryption"),
    secret("configure export-credentials"),
    asks("configure set *secret*|*token*|*key*|credential_process|*.credential_process", Effect::Persistence, KEYS),
    asks("configure import", Effect::Persistence, KEYS),
    secret("configure get *secret*|*token*|*key*"),
    secret("sts assume-role*|get-session-token|get-federation-token"),
    secret("ecr|ecr-public get-login-password|get-login|get-authorization-token"),
    secret("codeartifact get-authorization-token"),
    secret("iam create-access-key|create-service-specific-credential"),
    secret("ec2 get-password-data"),
    secret("rds generate-db-auth-token"),
    secret("eks get-token"),
    secret("cognito-idp describe-user-pool-client"),
    asks(
        "iam|organizations|sso-admin|identitystore create-*|put-*|attach-*|add-*|update-*|upload-*|set-*|\
            enable-*|detach-*",
        Effect::Account,
        ACCESS,
    ),
    asks(
        "* put-*-policy|put-*-acl|put-public-access-block|put-resource-policy|add-permission|set-*-policy|\
            create-grant|add-resource-permissions",
        Effect::Permission,
        ACCESS,
    ),
    asks(
        "ec2 authorize-security-group-*|revoke-security-group-*|modify-security-group-rules",
        Effect::Permission,
        ACCESS,
    ),
    asks(
        "ecs|autoscaling|application-autoscaling|elasticache|eks|emr|redshift update-*|set-*|register-*|modify-*",
        CHANGES,
        NOTHING,
    )
    .only("desired-count=0 desired-capacity=0 max-size=0 max-capacity=0 min-size=0 num-cache-nodes=0"),
    asks("ecs update-service", CHANGES, STOPS).only("force-new-deployment"),
    asks("cloudformation deploy|create-stack|update-stack|execute-change-set", CHANGES, DEPLOYS)
        .unless("no-execute-changeset"),
    asks("lambda put-function-concurrency", CHANGES, STOPS).only("reserved-concurrent-executions=0"),
    asks("kms schedule-key-deletion|disable-key|delete-*|revoke-grant", CHANGES, DELETES),
    asks(
        "* delete-*|terminate-*|stop-*|reboot-*|remove-*|purge-*|deregister-*|disassociate-*|detach-*|revoke-*|\
            disable-*|cancel-*|reset-*|release-*|schedule-*-deletion|force-*|restart-*|failover-*|\
            batch-delete-*|destroy-*|deactivate-*|suspend-*|abort-*|restore-*|rollback-*|reject-*|drop-*|\
            empty-*|unassign-*|leave-*|close-account|decrease-*|drain-*|rebuild-*|send-command",
        CHANGES,
        DELETES,
    ),
    asks("* delete|terminate|stop|reset", CHANGES, DELETES),
    asks("deploy push", CHANGES, DEPLOYS),
    asks("s3api put-bucket-versioning|put-bucket-lifecycle*", CHANGES, DELETES)
        .only("versioning-configuration=Status=Suspended"),
];
const GCLOUD: &[Rule] = &[
    secret("auth print-access-token|print-identity-token"),
    secret("auth application-default print-access-token"),
    secret("secrets versions access"),
    secret("config config-helper"),
    secret("iam service-accounts keys create"),
    fine("config|auth|info|help|version|topic|components list"),
    asks("components update|install|remove|restore|reinstall", Effect::Package, "installs or removes software"),
    asks("app|run|functions deploy", CHANGES, DEPLOYS),
    asks("run services|jobs replace|deploy", CHANGES, DEPLOYS),
    asks("storage rm", CHANGES, DELETES),
    asks("storage mv gs://*", CHANGES, DELETES),
    asks("storage rsync", CHANGES, DELETES).only("delete-unmatched-destination-objects"),
    asks("container clusters resize", CHANGES, NOTHING).only("num-nodes=0 size=0"),
    asks("compute instance-groups managed resize", CHANGES, NOTHING).only("size=0"),
    asks("* * * add-iam-policy-binding|set-iam-policy|remove-iam-policy-binding", Effect::Permission, ACCESS),
    asks("* * add-iam-policy-binding|set-iam-policy|remove-iam-policy-binding", Effect::Permission, ACCESS),
    asks("* add-iam-policy-binding|set-iam-policy|remove-iam-policy-binding", Effect::Permission, ACCESS),
    asks("sql instances patch", CHANGES, STOPS).only("activation-policy=NEVER no-backup"),
    asks("compute firewall-rules create|update", Effect::Permission, ACCESS),
    asks("compute instances simulate-maintenance-event", CHANGES, STOPS),
];
const GSUTIL: &[Rule] = &[
    asks("rm|rb", CHANGES, DELETES),
    asks("mv gs://*", CHANGES, DELETES),
    fine("rsync").only("n"),
    asks("rsync", CHANGES, DELETES).only("d"),
    asks("iam|acl|defacl|pap|ubla ch|set", Effect::Permission, ACCESS),
    asks("lifecycle|retention|versioning set|clear|off", CHANGES, DELETES),
];
const BQ: &[Rule] = &[
    asks("rm|cancel", CHANGES, DELETES),
    asks("load|query|cp", CHANGES, "replaces a table").only("replace"),
    asks("remove-iam-policy-binding|add-iam-policy-binding|set-iam-policy", Effect::Permission, ACCESS),
];
const AZ: &[Rule] = &[
    secret("keyvault secret|key|certificate show|download|backup"),
    secret("account get-access-token"),
    secret("storage account keys list"),
    secret("storage account show-connection-string"),
    secret("acr credential show"),
    secret("acr login").only("expose-token"),
    secret("ad sp create-for-rbac"),
    secret("cosmosdb keys list"),
    secret("redis list-keys"),
    secret("webapp|functionapp config appsettings list"),
    asks("role assignment|definition create|delete|update", Effect::Permission, ACCESS),
    asks("keyvault set-policy", Effect::Permission, ACCESS),
    asks("vmss|aks scale", CHANGES, NOTHING).only("new-capacity=0 node-count=0 c=0"),
    asks("aks nodepool scale", CHANGES, NOTHING).only("node-count=0 c=0"),
    asks("deployment group|sub|mg|tenant create", CHANGES, DEPLOYS).unless("w what-if confirm-with-what-if"),
    asks("storage blob|file|fs sync", CHANGES, DELETES).only("delete-destination"),
    asks("network nsg rule create|update|delete", Effect::Permission, ACCESS),
    asks("upgrade", Effect::Package, "installs or removes software"),
    asks("extension add|remove|update", Effect::Package, "installs or removes software"),
    fine("config|configure|login|logout|account set|find|feedback"),
];
const DEEP: &[Rule] = &[secret("auth|account|token token|print-token|show-token"), secret("iam api-key get")];
const DOCTL: &[Rule] = &[
    asks(
        "compute droplet-action power-off|power-cycle|shutdown|reboot|rebuild|restore|password-reset|resize",
        CHANGES,
        STOPS,
    ),
    asks("compute droplet|firewall|image delete|d|rm|remove-*", CHANGES, DELETES),
    secret("auth token"),
    secret("kubernetes cluster kubeconfig show"),
    secret("databases connection"),
    asks("kubernetes cluster node-pool update", CHANGES, NOTHING).only("count=0"),
];
const FLY: &[Rule] = &[
    asks("deploy|launch", CHANGES, DEPLOYS),
    asks("scale count 0|*=0", CHANGES, NOTHING),
    asks("destroy", CHANGES, DELETES),
    asks(
        "apps|app|volumes|volume|vol|machine|machines|m|postgres|pg|redis|ips|certs|secrets|wireguard|orgs|\
            tokens|extensions|mysql|storage|mpg|consul destroy|delete|remove|rm|stop|restart|unset|release|\
            revoke|suspend|kill|cordon|failover|detach|move",
        CHANGES,
        DELETES,
    ),
    asks("suspend|restart|stop", CHANGES, STOPS),
    secret("auth token"),
    secret("tokens create"),
];
const HEROKU: &[Rule] = &[
    asks(
        "*:destroy|*:remove|*:unset|*:stop|*:kill*|*:reset|*:delete|*:clear|*:revoke|*:detach|*:disable|\
            *:rollback|*:restart|*:promote|*:transfer|*:uninstall|*:leave|*:wipe|*:rotate|*:unfollow|\
            *:deprovision|pg:upgrade|maintenance:on|*:reassign",
        CHANGES,
        DELETES,
    ),
    asks("restart|destroy|rollback|leave|unlink", CHANGES, STOPS),
    asks("ps:scale|scale *=0", CHANGES, NOTHING),
    asks("ps:scale|scale * *=0", CHANGES, NOTHING),
    asks("access:add|keys:add|members:add|authorizations:create", Effect::Account, ACCESS),
    asks("plugins:install", Effect::Package, "installs code from elsewhere"),
    asks("container:release|container:push", CHANGES, DEPLOYS),
    secret("auth:token|config|config:get|redis:credentials|authorizations:info"),
    secret("pg:credentials:url"),
];
const VERCEL: &[Rule] = &[
    asks("remove|rm|rollback|promote", CHANGES, DELETES),
    asks(
        "project|projects|env|domains|dns|certs|alias|aliases|secrets|teams|integration|blob|cron|redirects|\
            edge-config|git|store rm|remove|del|delete|disconnect",
        CHANGES,
        DELETES,
    ),
    asks("deploy", CHANGES, DEPLOYS),
    asks("*", CHANGES, DEPLOYS).only("prod"),
];
const NETLIFY: &[Rule] = &[
    asks("*:delete|*:unset|*:remove|*:disable|*:clear|*:wipe", CHANGES, DELETES),
    asks("env|sites|blobs|functions delete|unset", CHANGES, DELETES),
    asks("deploy", CHANGES, DEPLOYS).only("p prod prodIfUnlocked"),
    secret("env:get|env:list"),
];
const WRANGLER: &[Rule] = &[
    asks("delete|rollback", CHANGES, DELETES),
    asks("deploy|publish", CHANGES, DEPLOYS),
    asks("kv:*|r2:* delete", CHANGES, DELETES),
    asks(
        "kv|r2|d1|queues|secret|pages|hyperdrive|vectorize|workflows|versions|dispatch-namespace|certs|\
            mtls-certificate|pubsub|triggers|containers|secrets-store|tail delete|remove|purge|terminate|pause",
        CHANGES,
        DELETES,
    ),
    asks(
        "kv|r2|d1|queues|pages|vectorize|secrets-store|workflows namespace|key|bulk|bucket|object|consumer|\
            project|deployment|secret|time-travel|store|instances|domain delete|remove|restore|terminate|purge",
        CHANGES,
        DELETES,
    ),
    asks("pages deploy|publish", CHANGES, DEPLOYS),
];
const FIREBASE: &[Rule] = &[
    asks("*:delete|*:disable|*:remove|*:unset|*:destroy|*:prune|*:uninstall|*:rollback|*:clear", CHANGES, DELETES),
    asks("*:*:delete|*:*:destroy|*:*:disable|*:*:prune|*:*:remove", CHANGES, DELETES),
    asks("deploy|hosting:clone", CHANGES, DEPLOYS),
    asks("database:set|database:update|database:push|database:import", Effect::Database, "changes data in the cloud"),
    secret("functions:secrets:access|functions:config:get|login:ci"),
];
const SUPABASE: &[Rule] = &[
    asks("db reset", Effect::Database, "drops a database"),
    asks("db push|remote", Effect::Database, "changes a database without a look at what changes").unless("dry-run"),
    asks(
        "projects|functions|secrets|storage|branches|domains|sso|orgs|vanity-subdomains|network-bans|\
            ssl-enforcement|backups delete|unset|rm|remove|restore|pause|disable",
        CHANGES,
        DELETES,
    ),
    asks("storage rm|mv", CHANGES, DELETES),
    asks("functions deploy", CHANGES, DEPLOYS),
    asks("stop", CHANGES, STOPS),
    asks("migration repair|squash|down", Effect::Database, "changes a database"),
    secret("projects api-keys"),
];
const RAILWAY: &[Rule] = &[
    asks("down|delete|redeploy|restart|remove|rm", CHANGES, DELETES),
    asks("up|deploy", CHANGES, DEPLOYS),
    asks("environment|volume|service|project|domain delete|remove|rm|detach", CHANGES, DELETES),
    secret("variables"),
];
const RENDER: &[Rule] = &[
    asks("deploys|services|jobs|psql create|cancel|delete|restart|suspend", CHANGES, STOPS),
    asks("restart", CHANGES, STOPS),
];
const EB: &[Rule] = &[asks("terminate|abort|restore|restart|swap|scale|deploy|upgrade|labs", CHANGES, STOPS)];
const COPILOT: &[Rule] = &[
    asks("app|env|svc|job|task|pipeline|secret|service delete|pause|deploy|run", CHANGES, DELETES),
    asks("deploy", CHANGES, DEPLOYS),
];
const AMPLIFY: &[Rule] = &[
    asks("delete|remove|uninstall", CHANGES, DELETES),
    asks("env|hosting|function remove|delete", CHANGES, DELETES),
    asks("push|publish", CHANGES, DEPLOYS),
    asks("sandbox delete", CHANGES, DELETES),
];
const CF: &[Rule] = &[
    asks(
        "delete*|stop|restart*|restage|unbind-*|unshare-*|purge-*|remove-*|unset-*|disable-*|rollback|\
            terminate-task|cancel-deployment|unmap-route|d|sp|rs|rg|ds",
        CHANGES,
        DELETES,
    ),
    asks("push|p", CHANGES, DEPLOYS),
    asks("scale", CHANGES, NOTHING).only("i=0"),
    secret("oauth-token|env|service-key"),
];
const DOKKU: &[Rule] = &[
    asks(
        "*:destroy|*:stop|*:restart|*:remove|*:unset|*:clear|*:delete|*:unlink|*:disable|*:rebuild|*:uninstall|\
            *:purge*|*:reset|*:rollback|*:kill|*:unmount|ps:stopall|*:cleanup",
        CHANGES,
        DELETES,
    ),
    asks("cleanup", CHANGES, DELETES),
    asks("ps:scale * *=0", CHANGES, NOTHING),
    secret("config|config:show|config:get|config:export"),
];
const KAMAL: &[Rule] = &[
    asks("remove|rollback|redeploy|deploy|setup", CHANGES, STOPS),
    asks(
        "app|proxy|traefik|accessory|registry|prune|lock|server|env stop|remove|reboot|restart|all|images|\
            containers|release|delete|live|maintenance",
        CHANGES,
        STOPS,
    ),
    secret("secrets print"),
];
const SHORT: &[Rule] = &[
    asks(
        "delete|destroy|remove|rm|terminate|stop|restart|down|suspend|undeploy|rollback|unset|purge|teardown",
        CHANGES,
        DELETES,
    ),
    asks("deploy|up|publish", CHANGES, DEPLOYS),
    asks(
        "* delete|destroy|remove|rm|terminate|stop|restart|suspend|cancel|unset|purge|revoke|reset|disable",
        CHANGES,
        DELETES,
    ),
    asks("* * delete|destroy|remove|rm|terminate|revoke", CHANGES, DELETES),
    secret("auth token"),
];

const AWS_VALUED: &str = "profile= region= endpoint-url= output= query= ca-bundle= cli-read-timeout= cli-connect-timeout= color= \
     cli-binary-format= desired-count= desired-capacity= max-size= min-size= max-capacity= num-cache-nodes= \
     acl= parameters= \
     document-name= exclude= include= storage-class= reserved-concurrent-executions= versioning-configuration= \
     function-name= \
     cluster= service= bucket= key= delete force-new-deployment no-execute-changeset with-decryption recursive \
     dryrun force";

const TOOLS: [Tool; 43] = [
    tool(&["aws", "awslocal", "aws2"], AWS).valued("", AWS_VALUED).dry("dryrun dry-run generate-cli-skeleton"),
    tool(&["gcloud"], GCLOUD)
        .valued(
            "q?",
            "project= account= configuration= format= filter= impersonate-service-account= \
            billing-project= zone= region= num-nodes= size= command= activation-policy= quiet",
        )
        .deep(),
    tool(&["gsutil"], GSUTIL).valued("hoiux", "").dry("dry-run"),
    tool(&["bq"], BQ).valued("n", "project_id= dataset_id= location= format= api=").dry("dry_run"),
    tool(&["az"], AZ)
        .valued(
            "gnsocl",
            "resource-group= name= subscription= output= query= ids= new-capacity= node-count= \
            location= scripts= command-id= account-name= vault-name=",
        )
        .deep(),
    tool(&["doctl"], DOCTL).valued("tuco", "access-token= context= config= api-url= output= format= count=").deep(),
    tool(&["hcloud"], DEEP).valued("o", "context= config= endpoint= output=").deep(),
    tool(&["linode-cli", "linode"], DEEP).valued("", "as-user= format=").deep(),
    tool(&["vultr-cli", "vultr"], DEEP).valued("o", "config= output=").deep(),
    tool(&["scw"], DEEP).valued("pco", "profile= config= output=").deep(),
    tool(&["openstack", "nova", "cinder", "neutron"], DEEP)
        .valued("fc", "os-cloud= os-project-name= os-region-name= os-auth-url=")
        .deep(),
    tool(&["oci"], DEEP)
        .valued("c", "profile= config-file= region= compartment-id= output= query= instance-id=")
        .deep(),
    tool(&["ibmcloud", "bx", "bluemix"], DEEP).valued("grc", "output=").deep(),
    tool(&["yc"], DEEP).valued("", "profile= folder-id= cloud-id= format= id= name=").deep(),
    tool(&["exo", "exoscale"], DEEP).valued("AOCz", "use-account= output-format= config= zone=").deep(),
    tool(
        &[
            "upctl",
            "civo",
            "kamatera",
            "cloudscale",
            "packet",
            "metal",
            "ionosctl",
            "gridscale",
            "ovhcloud",
            "stackit",
            "tencent",
            "tccli",
            "hwcloud",
        ],
        DEEP,
    )
    .deep(),
    tool(&["aliyun"], AWS).valued("pr", "profile= region=").dry("dryrun"),
    tool(&["fly", "flyctl"], FLY).valued("actg", "app= config= access-token= org= region= process-group="),
    tool(&["heroku"], HEROKU).valued("artp", "app= remote= team= confirm= pipeline="),
    tool(&["vercel", "now", "vc"], VERCEL).valued("SQtA", "scope= token= local-config= global-config= cwd= target="),
    tool(&["netlify", "ntl"], NETLIFY).valued("dsam", "dir= site= auth= message= filter= context="),
    tool(&["wrangler"], WRANGLER).valued("ce", "config= env= name= namespace-id= cwd= env-file=").dry("dry-run"),
    tool(&["firebase"], FIREBASE).valued("Pc", "project= config= account= token= only="),
    tool(&["supabase"], SUPABASE).valued("", "workdir= project-ref= profile= network-id= db-url="),
    tool(&["railway"], RAILWAY).valued("ses", "service= environment= project="),
    tool(&["render"], RENDER).valued("o", "output="),
    tool(&["eb"], EB).valued("re", "region= profile="),
    tool(&["copilot"], COPILOT).valued("ane", "app= name= env="),
    tool(&["amplify", "ampx"], AMPLIFY),
    tool(&["cf", "cf7", "cf8"], CF).valued("isbup", ""),
    tool(&["dokku"], DOKKU),
    tool(&["kamal", "mrsk"], KAMAL).valued("cdhrpv", "config-file= destination= hosts= roles= version="),
    tool(
        &[
            "caprover",
            "clever",
            "scalingo",
            "platform",
            "upsun",
            "koyeb",
            "northflank",
            "porter",
            "zeabur",
            "deta",
            "deta-space",
        ],
        SHORT,
    )
    .valued("aen", "app= alias= env= name= project= environment="),
    tool(&["deployctl"], SHORT),
    tool(&["surge"], &[asks("teardown", CHANGES, DELETES), asks("*", CHANGES, DEPLOYS)]),
    tool(&["modal", "beam", "replicate", "runpodctl", "vastai", "sky"], SHORT),
    tool(&["databricks"], DEEP).valued("po", "profile= output=").deep(),
    tool(&["snow"], DEEP).valued("c", "connection= format=").deep(),
    tool(&["pscale", "turso", "neonctl", "neon", "xata", "upstash", "astra", "atlas"], DEEP)
        .valued("p", "org= project-id= api-key=")
        .deep(),
    tool(&["confluent", "aiven", "avn", "elastic-cloud", "ecctl"], DEEP)
        .valued("", "project= environment= cluster=")
        .deep(),
    tool(&["stripe"], &[asks("* delete|cancel|deactivate", CHANGES, DELETES), asks("delete", CHANGES, DELETES)])
        .valued("dp", "data= project-name= api-key="),
    tool(
        &["cloudflared", "ngrok"],
        &[
            asks("tunnel delete|cleanup", CHANGES, DELETES),
            asks("service uninstall|install", Effect::Service, "changes services of this host"),
        ],
    ),
    tool(&["sentry-cli", "datadog-ci", "newrelic", "pd", "ld", "ldcli"], DEEP).deep(),
];

fn model(call: &mut Call<'_, '_>) {
    let Some(tool) = verbs::find(&TOOLS, &call.name) else { return };
    let Some(options) = tool.judge(call) else { return };
    if matches!(call.name.as_str(), "vercel" | "now" | "vc") && options.operands.is_empty() && options.has("prod") {
        call.asks(CHANGES, "production", DEPLOYS);
    }
    let operands: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    match (call.name.as_str(), operands.as_slice()) {
        ("aws" | "awslocal" | "aws2", ["s3", "cp" | "mv" | "sync", source, target, ..])
        | ("gsutil", ["cp" | "mv" | "rsync", source, target, ..])
        | ("gcloud", ["storage", "cp" | "mv" | "rsync", source, target, ..]) => transfer(call, source, target),
        ("aws" | "awslocal", ["ssm", "send-command", ..]) => {
            let parameters = options.value("parameters").unwrap_or_default().to_owned();
            if let Some((_, script)) = parameters.split_once("commands=") {
                call.shell(script.trim_matches(['[', ']', '"', '\'']));
            }
        }
        ("bq", ["query", statements @ ..]) => {
            for statement in statements.iter().map(|statement| (*statement).to_owned()).collect::<Vec<_>>() {
                super::sql::script(call, super::sql::Dialect::Other, &statement);
            }
        }
        ("gcloud", ["compute", "ssh", ..]) => {
            if let Some(script) = options.value("command").map(str::to_owned) {
                call.shell(&script);
            }
        }
        ("az", ["vm", "run-command", "invoke", ..]) => {
            if let Some(script) = options.value("scripts").map(str::to_owned) {
                call.shell(&script);
            }
        }
        ("heroku", ["run" | "run:detached", words @ ..])
        | ("railway", ["run" | "ssh" | "shell", words @ ..])
        | ("dokku", ["run" | "enter", _, words @ ..]) => {
            call.shell(&words.join(" "));
        }
        ("fly" | "flyctl", ["ssh", "console", ..]) => {
            // Here `-C` is the command.
            let script = call.arguments().iter().position(|word| word == "-C" || word == "--command").map(|at| at + 2);
            if let Some(script) = script.and_then(|at| call.words.get(at)).cloned() {
                call.shell(&script);
            }
        }
        ("surge", ["list" | "login" | "logout" | "whoami" | "token", ..]) => {}
        ("vercel" | "now" | "vc", [_, "pull", file, ..]) => {
            call.write(file, Writing::Replace);
        }
        _ => {}
    }
}

/// A copy between here and a bucket: secrets do not leave, and what arrives is not known.
fn transfer(call: &mut Call<'_, '_>, source: &str, target: &str) {
    let remote = |word: &str| word.contains("://");
    if remote(source) && !remote(target) {
        if target == "-" {
            return call.print(&REMOTE.to_string());
        }
        let path = call.write(target, Writing::Replace);
        call.now_foreign(&path);
    } else if !remote(source) && source != "-" && call.place(source, true).class == TargetClass::Secret {
        call.asks(Effect::NetworkSend, source, "sends secrets away");
    } else if source == "-" && call.input().is_some_and(|text| text.contains(SECRET)) {
        call.asks(Effect::NetworkSend, target, "sends secrets away");
    } else {
        call.print(&HOLE.to_string());
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn the_first_verb_decides() {
        pairs(&[
            ("aws --profile prod ec2 stop-instances --instance-ids i-0a", "aws ec2 reboot-instances help"),
            ("aws s3 sync empty/ s3://bucket --delete", "aws s3 sync --dryrun empty/ s3://bucket --delete"),
            (
                "aws ecs update-service --service web --desired-count 0",
                "aws ecs describe-services --services delete-me",
            ),
            ("aws secretsmanager get-secret-value --secret-id x", "aws secretsmanager list-secrets"),
            ("aws ecr get-login-password", "aws ecr get-login-password | docker login --password-stdin x"),
            ("aws s3 cp .env s3://b/", "aws s3 cp dist.zip s3://b/"),
            ("aws s3 cp s3://b/i.sh - | bash", "aws s3 cp s3://b/i.sh i.sh"),
            ("gcloud --project p run services delete api", "gcloud compute instances describe delete"),
            ("gcloud logging logs delete x", "gcloud logging read x"),
            ("gsutil rsync -d -r dist gs://b", "gsutil rsync -n -d -r dist gs://b"),
            ("az vm deallocate -g rg -n vm2", "az vm show -g rg -n stop"),
            ("az keyvault secret show --name db", "az keyvault list"),
            ("hcloud server poweroff web2", "hcloud server list"),
            ("heroku ps:scale web=0 -a app", "heroku info destroy"),
            ("heroku run 'rm -rf data' -a app", "heroku ps -a app"),
            ("flyctl scale count 0 --yes", "flyctl scale count 2"),
            ("wrangler kv namespace delete --namespace-id n", "wrangler kv namespace list"),
            ("firebase firestore:delete --all-collections", "firebase projects:list"),
        ]);
    }
}
