//! What plugins and MCP servers bring into a selection: on because it is there, off as soon as somebody says so, and never
//! a way around what was said about other tools.
#![allow(clippy::unwrap_used, reason = "the helpers of a test are tests too")]

mod selecting;

use std::collections::BTreeSet;

use hermes_runtime::toolset::{self, Origin};
use hermes_runtime::{OwnerKind, Registry, Selection, Verdict};
use selecting::*;

/// A plugin `post` with one set of its own and one tool that joins `web`, and the servers `github` and `web`.
fn with_sources() -> Registry {
    let registry = usual();
    offer(&registry, OwnerKind::Plugin, "post", &["mail post", "web_archive web"]);
    offer(&registry, OwnerKind::Mcp, "github", &["mcp__github__issues mcp-github"]);
    offer(&registry, OwnerKind::Mcp, "web", &["mcp__web__fetch mcp-web"]);
    registry
}

#[test]
fn what_a_plugin_or_a_server_brings_is_on_where_a_platform_decides_and_not_in_a_list_for_one_run() {
    let registry = with_sources();
    let all = ["mail", "mcp__github__issues", "mcp__web__fetch"];
    let with_files: BTreeSet<&str> = FILE.into_iter().chain(all).collect();
    assert_eq!(on(&registry, &stored(&["file"])), with_files.into_iter().collect::<Vec<_>>());
    let default = on(&registry, &Selection::default());
    assert!(all.iter().all(|name| default.contains(&name.to_string())), "{default:?}");
    assert_eq!(on(&registry, &exactly(&["file"])), FILE);
    // Where it comes from is the reason; the same for what was named.
    let why = |selection: &Selection, tool: &str| verdict(&registry, selection, tool);
    assert_eq!(why(&stored(&["file"]), "mail"), Verdict::On("post (plugin post)".into()));
    assert_eq!(why(&stored(&["file"]), "mcp__web__fetch"), Verdict::On("mcp-web (MCP server web)".into()));
    assert_eq!(why(&exactly(&["post"]), "mail"), Verdict::On("post".into()));
    assert_eq!(why(&exactly(&["file"]), "mail"), Verdict::NotSelected);
    // Disabled is disabled, by the set or by the tool.
    for off in ["post", "mail"] {
        let selection = without(stored(&["file"]), &[off]);
        assert_eq!(why(&selection, "mail"), Verdict::Removed(format!("disabled: {off}")));
    }
}

#[test]
fn a_tool_that_joins_a_set_of_ours_is_on_exactly_when_the_set_is() {
    let registry = with_sources();
    assert_eq!(on(&registry, &exactly(&["web"])), ["web_archive", "web_extract", "web_search"]);
    assert!(!on(&registry, &stored(&["file"])).contains(&"web_archive".to_owned()));
    assert!(on(&registry, &exactly(&["debugging"])).contains(&"web_archive".to_owned()), "also through an include");
    assert!(on(&registry, &without(exactly(&["all"]), &["web"])).iter().all(|name| name != "web_archive"));
    // A tool that joins a bundle is not CORE, so it goes with the bundle.
    offer(&registry, OwnerKind::Plugin, "chat", &["poll hermes-telegram"]);
    let telegram = exactly(&["hermes-telegram"]);
    assert!(on(&registry, &telegram).contains(&"poll".to_owned()));
    assert_eq!(on(&registry, &without(telegram, &["hermes-telegram"])), USUAL_CORE);
}

#[test]
fn a_set_that_only_tools_speak_of_is_a_set_and_goes_with_them() {
    let registry = with_sources();
    let post = info(&registry, "post");
    assert_eq!((post.origin, post.about.as_str()), (Origin::Plugin, "the tools of plugin post"));
    assert_eq!((&post.tools, &post.resolved), (&strings(&["mail"]), &strings(&["mail"])));
    let other = offer(&registry, OwnerKind::Plugin, "other", &["fax post"]);
    assert_eq!(on(&registry, &exactly(&["post"])), ["fax", "mail"]);
    registry.withdraw(&other);
    assert_eq!(on(&registry, &exactly(&["post"])), ["mail"]);
    let gone = offer(&registry, OwnerKind::Plugin, "gone", &["brief letters"]);
    assert_eq!(on(&registry, &exactly(&["letters"])), ["brief"]);
    registry.withdraw(&gone);
    assert_eq!(refused(&registry, &exactly(&["letters"])).name, "letters");
    // Of ours there are such sets too; they are listed, and nobody turns them on unasked.
    offer(&registry, OwnerKind::BuiltIn, "ours", &["browser_cdp browser-cdp"]);
    assert_eq!(
        (info(&registry, "browser-cdp").origin, on(&registry, &exactly(&["browser-cdp"])).len()),
        (Origin::Table, 1)
    );
    assert!(!on(&registry, &stored(&["file"])).contains(&"browser_cdp".to_owned()));
}

#[test]
fn a_server_goes_by_its_own_name_and_by_that_of_its_toolset() {
    let registry = with_sources();
    for name in ["github", "mcp-github"] {
        assert_eq!(on(&registry, &exactly(&[name])), ["mcp__github__issues"]);
        let github = info(&registry, name);
        assert_eq!((github.origin, github.about.as_str()), (Origin::Mcp, "the tools of MCP server github"));
        assert_eq!(on(&registry, &without(exactly(&["github", "x_search"]), &[name])), ["x_search"]);
    }
    let names = toolset::names(&registry.snapshot());
    assert!(names.contains("github") && !names.contains("mcp-github"), "shown under the short name: {names:?}");
    custom(&registry, "both", &[], &["github", "mcp-web"]);
    assert_eq!(on(&registry, &exactly(&["both"])), ["mcp__github__issues", "mcp__web__fetch"]);
}

#[test]
fn a_server_is_known_while_it_is_connected_with_or_without_tools() {
    let registry = with_sources();
    let server = offer(&registry, OwnerKind::Mcp, "quiet", &[]);
    for name in ["quiet", "mcp-quiet"] {
        assert!(on(&registry, &exactly(&[name])).is_empty());
        assert_eq!(info(&registry, name).origin, Origin::Mcp);
        assert_eq!(on(&registry, &without(exactly(&["x_search"]), &[name])), ["x_search"]);
    }
    assert!(toolset::names(&registry.snapshot()).contains("quiet"));
    // Naming it means exactly it, although it has nothing now.
    assert_eq!(on(&registry, &stored(&["quiet"])), ["mail"]);
    registry.offer(&server, vec![tool("mcp__quiet__a", "mcp-quiet")]).unwrap();
    assert_eq!(on(&registry, &exactly(&["quiet"])), ["mcp__quiet__a"]);
    registry.withdraw(&server);
    assert_eq!(refused(&registry, &exactly(&["quiet"])).name, "quiet");
    assert_eq!(refused(&registry, &exactly(&["mcp-quiet"])).name, "mcp-quiet");
}

#[test]
fn a_server_that_is_called_like_a_set_of_ours_takes_nothing_over_and_is_reached_by_its_toolset() {
    let registry = with_sources();
    assert_eq!(on(&registry, &exactly(&["web"])), ["web_archive", "web_extract", "web_search"]);
    assert_eq!(on(&registry, &exactly(&["mcp-web"])), ["mcp__web__fetch"]);
    let names = toolset::names(&registry.snapshot());
    assert!(names.contains("web") && names.contains("mcp-web"));
    assert_eq!(info(&registry, "web").origin, Origin::Table);
    // Off is off for the one that was named, and for it alone.
    let off = |name| on(&registry, &without(exactly(&["web", "mcp-web"]), &[name]));
    assert_eq!(off("web"), ["mcp__web__fetch"]);
    assert_eq!(off("mcp-web"), ["web_archive", "web_extract", "web_search"]);
    // Naming our set is not naming the server, so the other servers stay.
    let stored = on(&registry, &stored(&["web"]));
    assert!(stored.contains(&"mcp__github__issues".to_owned()) && stored.contains(&"mcp__web__fetch".to_owned()));
}

#[test]
fn naming_one_server_means_exactly_the_named_ones() {
    let registry = with_sources();
    for github in ["github", "mcp-github"] {
        assert_eq!(on(&registry, &stored(&["x_search", github])), ["mail", "mcp__github__issues", "x_search"]);
    }
    assert_eq!(on(&registry, &stored(&["github", "mcp-web"])), ["mail", "mcp__github__issues", "mcp__web__fetch"]);
    // Naming the set of a plugin is not naming a server, and neither is taking one away.
    assert_eq!(on(&registry, &stored(&["post"])), ["mail", "mcp__github__issues", "mcp__web__fetch"]);
    assert_eq!(on(&registry, &stored(&["x_search", "-github"])), ["mail", "mcp__web__fetch", "x_search"]);
}

#[test]
fn no_mcp_leaves_out_the_tools_of_servers_whatever_else_names_them() {
    let registry = with_sources();
    assert_eq!(on(&registry, &stored(&["x_search", "no_mcp"])), ["mail", "x_search"]);
    let why = verdict(&registry, &stored(&["x_search", "no_mcp"]), "mcp__github__issues");
    assert_eq!(why, Verdict::Removed("no_mcp".into()));
    custom(&registry, "mine", &["mcp__web__fetch", "patch"], &[]);
    for list in [["all", "no_mcp"], ["github", "no_mcp"], ["no_mcp", "mcp__web__fetch"], ["mine", "no_mcp"]] {
        let names = on(&registry, &exactly(&list));
        assert!(names.iter().all(|name| !name.starts_with("mcp__")), "{list:?}: {names:?}");
    }
    assert_eq!(on(&registry, &exactly(&["mine", "no_mcp"])), ["patch"]);
}

#[test]
fn who_offered_a_tool_decides_and_not_what_it_says_about_itself() {
    let registry = usual();
    // A server whose tool claims our set switches on neither the set nor, with `no_mcp`, itself.
    offer(&registry, OwnerKind::Mcp, "liar", &["aaa web"]);
    // A plugin whose tool claims the toolset of a server does not bring the server along.
    offer(&registry, OwnerKind::Plugin, "p", &["aab mcp-github"]);
    offer(&registry, OwnerKind::Mcp, "github", &["mcp__github__issues mcp-github"]);
    // A plugin whose tool claims a set that ours are in, and that is off, does not turn ours on.
    offer(&registry, OwnerKind::BuiltIn, "ours", &["browser_cdp browser-cdp"]);
    offer(&registry, OwnerKind::Plugin, "q", &["aac browser-cdp"]);
    assert_eq!(on(&registry, &stored(&["x_search"])), ["aaa", "aab", "aac", "mcp__github__issues", "x_search"]);
    assert_eq!(on(&registry, &stored(&["x_search", "no_mcp"])), ["aab", "aac", "x_search"]);
}

#[test]
fn a_set_or_a_server_that_is_called_like_a_tool_does_not_get_the_tool_out_of_a_restriction() {
    let registry = usual();
    offer(&registry, OwnerKind::Plugin, "p", &["mail write_file"]);
    offer(&registry, OwnerKind::Mcp, "patch", &["mcp__patch__a mcp-patch"]);
    let selection = without(Selection::default(), &["write_file", "patch"]);
    let names = on(&registry, &selection);
    assert!(["write_file", "mail", "patch", "mcp__patch__a"].iter().all(|off| !names.contains(&off.to_string())));
    assert_eq!(verdict(&registry, &selection, "write_file"), Verdict::Removed("disabled: write_file".into()));
    assert_eq!(on(&registry, &exactly(&["file", "-patch"])), ["read_file", "search_files", "write_file"]);
}

#[test]
fn a_source_with_an_odd_name_hides_no_tool_and_is_not_shown_under_a_name_that_means_something_else() {
    let registry = usual();
    for server in ["web_tools", "all", "no_mcp", "-x", "hermes-cli", "coding"] {
        let name = format!("t_{}", server.replace(|c: char| !c.is_alphanumeric(), "_"));
        let toolset = format!("mcp-{server}");
        offer(&registry, OwnerKind::Mcp, server, &[&format!("{name} {toolset}")]);
        assert!(toolset::names(&registry.snapshot()).contains(&toolset), "{server}");
        assert_eq!(on(&registry, &exactly(&[&toolset])), [name]);
    }
    for (n, toolset) in ["all", "*", "no_mcp", "-x", "web_tools", ""].into_iter().enumerate() {
        offer(&registry, OwnerKind::Plugin, &format!("p{n}"), &[&format!("p{n} {toolset}")]);
    }
    let everything: Vec<String> = registry.snapshot().names().map(ToString::to_string).collect();
    assert_eq!(on(&registry, &exactly(&["all"])), everything);
}

#[test]
fn nobody_gets_a_server_out_of_a_restriction_by_using_its_name() {
    let registry = with_sources();
    let off = || without(Selection::default(), &["github"]);
    assert!(!on(&registry, &off()).contains(&"mcp__github__issues".to_owned()));
    // A plugin whose harmless tool claims the name, and a set of one's own that is called so.
    offer(&registry, OwnerKind::Plugin, "helper", &["harmless github"]);
    let now = on(&registry, &off());
    assert!(!now.contains(&"mcp__github__issues".to_owned()) && !now.contains(&"harmless".to_owned()), "{now:?}");
    custom(&registry, "github", &["mail"], &[]);
    let now = on(&registry, &off());
    assert!(!now.contains(&"mcp__github__issues".to_owned()) && !now.contains(&"mail".to_owned()), "{now:?}");
}
