//! Command lines of places that keep repositories: what they delete there, what they show and what they run.

use super::verbs::{self, Rule, Tool, asks, fine, secret, tool};
use super::{Program, environment};
use crate::eval::Call;
use crate::finding::{Effect, TargetClass};

pub(super) const PROGRAMS: [Program; 4] = verbs::programs(&TOOLS, model);

const LOSES: Effect = Effect::VersionControl;
const DELETES: &str = "deletes what is kept on the server";
const TRUST: &str = "lets somebody else in";

const GH: &[Rule] = &[
    asks(
        "repo|gist|issue|label|release|secret|variable|cache|run|codespace|cs|project|ssh-key|gpg-key|extension|\
            ruleset delete*|remove",
        LOSES,
        DELETES,
    ),
    asks("pr|issue|repo|discussion delete|lock|transfer|archive", LOSES, DELETES),
    asks("repo deploy-key|autolink delete", LOSES, DELETES),
    asks("repo deploy-key add", Effect::Persistence, TRUST),
    asks("ssh-key|gpg-key add", Effect::Persistence, TRUST),
    asks("repo sync", LOSES, "overwrites history").only("force"),
    asks("repo edit", LOSES, "changes who may see the repository").only("visibility"),
    asks("repo rename|archive", LOSES, "changes the repository for everybody"),
    asks("release create", Effect::Package, "publishes a version that others use").unless("d draft"),
    asks("pr checkout|co", LOSES, "overwrites a branch that is here").only("f force"),
    asks("pr close", LOSES, "deletes a branch that is not merged").only("d delete-branch"),
    asks("pr merge", LOSES, "merges past what protects the branch").only("admin"),
    asks("run cancel|delete", Effect::CloudResource, "stops or deletes runs"),
    asks("workflow disable", Effect::CloudResource, "disables a workflow"),
    asks("codespace|cs stop|rebuild|delete", Effect::CloudResource, "stops or deletes a machine"),
    secret("auth token"),
    secret("auth status").only("t show-token"),
    asks("auth setup-git", Effect::Persistence, "changes the settings of git for all repositories"),
    asks("auth logout", Effect::SecretRead, "takes stored credentials away"),
    asks("extension|extensions|ext install|upgrade", Effect::Package, "installs code from elsewhere"),
];
const GLAB: &[Rule] = &[
    asks(
        "repo|project|mr|issue|release|label|snippet|variable|schedule|ssh-key|token|milestone|ci|pipeline|\
            cluster|iteration|runner|deploy-key|securefile delete|remove|revoke|rotate|del|archive|transfer",
        LOSES,
        DELETES,
    ),
    asks("ssh-key|deploy-key add", Effect::Persistence, TRUST),
    asks("release create", Effect::Package, "publishes a version that others use"),
    asks("ci|pipe|pipeline cancel", Effect::CloudResource, "stops pipelines"),
    secret("auth status").only("t show-token"),
    secret("config get token"),
];
const HUB: &[Rule] = &[asks("delete", LOSES, DELETES), asks("release|gist delete", LOSES, DELETES)];
const TEA: &[Rule] = &[fine("* list|ls"), asks("* delete|rm|archive", LOSES, DELETES)];

const TOOLS: [Tool; 4] = [
    tool(&["gh"], GH).valued(
        "RXHfFqtmbBDOp",
        "repo= method= header= field= raw-field= jq= template= input= hostname= cache= title= body= notes= \
         visibility= dir= output= pattern= codespace= force forge",
    ),
    tool(&["glab"], GLAB).valued("RXHfFgm", "repo= method= header= field= raw-field= hostname= input= group="),
    tool(&["hub"], HUB).valued("X", "method="),
    tool(&["tea"], TEA).valued("rlo", "repo= login= output="),
];

fn model(call: &mut Call<'_, '_>) {
    let Some(tool) = verbs::find(&TOOLS, &call.name) else { return };
    let Some(options) = tool.judge(call) else { return };
    let operands: Vec<&str> = options.operands.iter().map(String::as_str).collect();
    match operands.as_slice() {
        ["api", rest @ ..] => {
            let method = options.value("X method").unwrap_or_default().to_owned();
            let graphql = options.values("f F field raw-field").any(|field| {
                field.strip_prefix("query=").is_some_and(|query| {
                    query.trim_start().starts_with("mutation") && query.to_ascii_lowercase().contains("delete")
                })
            });
            if method.eq_ignore_ascii_case("delete") || (graphql && rest.first() == Some(&"graphql")) {
                call.asks(LOSES, rest.first().unwrap_or(&""), DELETES);
            }
        }
        ["alias", "set", _, value] => {
            let script = value.strip_prefix('!').map(str::to_owned);
            let shell = script.or_else(|| options.has("s shell").then(|| (*value).to_owned()));
            match shell {
                Some(script) => call.shell(&script),
                None => {
                    let mut words = vec![call.name.clone()];
                    words.extend(crate::shell::split(value));
                    call.run(words);
                }
            }
        }
        ["config", "set", "editor" | "pager" | "browser" | "glamour", value] => {
            environment::side_door(call, value);
        }
        ["codespace" | "cs", "ssh", rest @ ..] if !rest.is_empty() => call.shell(&rest.join(" ")),
        ["repo" | "gist" | "project", "clone", source, rest @ ..] => {
            let name = source.rsplit('/').next().unwrap_or_default();
            let directory = rest.first().map_or(name, |directory| directory).to_owned();
            call.now_foreign(&directory);
        }
        ["release" | "run" | "artifact", "download", ..] => {
            let places: Vec<String> = options.values("D dir O output p pattern").map(str::to_owned).collect();
            for place in places.iter().filter(|place| *place != "." && *place != "-") {
                call.now_foreign(place);
            }
            if options.value("O output") == Some("-") {
                call.print(&crate::text::REMOTE.to_string());
            }
        }
        ["gist" | "snippet", "create", files @ ..] | ["release", "create" | "upload", _, files @ ..] => {
            for file in files {
                if call.place(file, true).class == TargetClass::Secret {
                    call.asks(Effect::NetworkSend, file, "sends secrets away");
                }
            }
        }
        ["ext" | "extension" | "extensions", "exec", rest @ ..] => {
            let words = rest.iter().map(|word| (*word).to_owned()).collect();
            call.run(words);
        }
        [verb, ..] if call.name == "hub" && *verb != "api" && *verb != "delete" => {
            let mut words = vec!["git".to_owned()];
            words.extend_from_slice(call.arguments());
            call.run(words);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::programs::verbs::tests::pairs;

    #[test]
    fn what_is_on_the_server_counts() {
        pairs(&[
            ("gh repo delete acme/app --yes", "gh repo view acme/delete"),
            ("gh api -XDELETE repos/acme/app", "gh api --method=GET repos/acme/app"),
            ("gh release delete-asset v1 a.zip", "gh release list"),
            ("gh auth token", "gh auth status"),
            ("gh gist create .env", "gh gist create notes.md"),
            ("gh alias set x '!rm -rf data'", "gh alias set co 'pr checkout'"),
            ("gh repo clone acme/x && make -C x", "gh repo clone acme/x && ls x"),
            ("glab repo delete acme/app -y", "glab repo view acme/app"),
            ("hub push --force", "hub push"),
        ]);
    }
}
