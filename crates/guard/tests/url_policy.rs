//! What may be fetched: forms of URLs, names, settings, redirects. Addresses are in `url_addresses.rs`.

use std::io;
use std::net::{IpAddr, SocketAddr};

use hermes_guard::url_policy::{MOST_REDIRECTS, Note, Refusal, RefusalKind, UrlPolicy};
use serde_json::{Value, json};

fn policy(section: &Value) -> UrlPolicy {
    UrlPolicy::from_section(Some(section), |path| {
        Err(io::Error::new(io::ErrorKind::NotFound, path.display().to_string()))
    })
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn refusal(policy: &UrlPolicy, url: &str) -> Refusal {
    let refusal = policy.check_url(url).map(|checked| checked.url().to_string()).expect_err(url);
    assert!(!refusal.to_string().contains('\n'), "{refusal}");
    refusal
}

#[test]
fn a_plain_url_passes_in_one_spelling() {
    let policy = UrlPolicy::default();
    for (written, read) in [
        ("https://Example.ORG./a?b#c", "https://example.org/a?b#c"),
        ("  https://example.org/a\n", "https://example.org/a"),
        ("HTTP://example.org", "http://example.org/"),
        ("https://example.org:443/", "https://example.org/"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("https://example.org/a b", "https://example.org/a%20b"),
        ("http://8.8.8.8/", "http://8.8.8.8/"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
    ] {
        assert_eq!(policy.check_url(written).expect(written).url().as_str(), read);
    }
}

#[test]
fn what_parsers_read_differently_is_refused() {
    for url in [
        "",
        "   ",
        "example.org",
        "example.org/a",
        "localhost:3000",
        "//example.org/",
        "http:example.org",
        "http:/example.org",
        "http:///example.org",
        "http://",
        "https://?q",
        "http://:80/",
        "http://./",
        "http://../",
        "http://a..b/",
        "http://.a/",
        "http://example.org../",
        "http:// example.org/",
        "http://example.org /",
        "http://safe.example @evil.example/",
        "http://exa\tmple.org/",
        "ht\ntp://example.org/",
        "http://example.org/a\r\nX: y",
        "http://example.org/\u{0}",
        "http://exam\u{200b}ple.org/",
        "http://example.org/\u{202e}gpj.exe",
        "http://safe.example\\@evil.example/",
        "http:\\\\example.org\\",
        "http://example.org:0/",
        "http://example.org:99999/",
        "http://[::1",
        "http://[fe80::1%25eth0]/",
        "http://1.2.3.256/",
        "file:///etc/passwd",
        "ftp://example.org/",
        "gopher://example.org/",
        "javascript:alert(1)",
        "data:text/html,x",
        "view-source:https://example.org",
    ] {
        assert_eq!(refusal(&UrlPolicy::default(), url).kind, RefusalKind::Malformed, "{url:?}");
    }
    assert!(UrlPolicy::default().check_url(&format!("https://example.org/{}", "a".repeat(9000))).is_err());
}

#[test]
fn a_scheme_that_is_not_fetched_is_named() {
    assert_eq!(
        refusal(&UrlPolicy::default(), "FILE:///etc/passwd").to_string(),
        "the scheme `file` cannot be fetched, only http and https; use another tool for it"
    );
}

#[test]
fn a_loopback_address_is_found_in_every_spelling() {
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0x7F.0X0.0.1",
        "127.255.255.254",
        "0",
        "0.0.0.0",
        "00000000",
        "１２７．０．０．１",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "%31%32%37.0.0.1",
        "127%2e0%2e0%2e1",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[2002:7f00:1::]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "app.localhost",
        "ｌｏｃａｌｈｏｓｔ",
        "user:pw@localhost",
        "example.org@127.0.0.1",
    ] {
        let url = format!("http://{host}:8080/x");
        assert_eq!(refusal(&UrlPolicy::default(), &url).kind, RefusalKind::Private, "{url}");
    }
}

#[test]
fn the_metadata_of_a_cloud_is_out_of_reach_whatever_is_allowed() {
    let open = policy(&json!({
        "allow_private_urls": true,
        "url_allowlist": ["169.254.169.254", "metadata.google.internal", "[fd00:ec2::254]", "100.100.100.200"],
    }));
    for policy in [UrlPolicy::default(), open] {
        for host in [
            "169.254.169.254",
            "0xa9fea9fe",
            "2852039166",
            "0251.0376.0251.0376",
            "169.254.170.2",
            "169.254.1.1",
            "168.63.129.16",
            "100.100.100.200",
            "[fd00:ec2::254]",
            "[::ffff:169.254.169.254]",
            "[::169.254.169.254]",
            "[2002:a9fe:a9fe::1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1:a9fe:a9:fe00::]",
            "[fe80::a9fe:a9fe]",
            "[fe80::5efe:169.254.169.254]",
            "metadata.google.internal",
            "Metadata.Google.Internal.",
            "x.metadata.goog",
            "metadata",
        ] {
            let refusal = refusal(&policy, &format!("http://{host}/latest/meta-data/"));
            assert_eq!(refusal.kind, RefusalKind::Forbidden, "{host}: {refusal}");
            assert!(refusal.to_string().ends_with("no setting allows it"), "{refusal}");
        }
    }
}

#[test]
fn a_refusal_says_what_where_and_what_next_and_shows_no_secret() {
    let text = refusal(&UrlPolicy::default(), "http://me:hunter2@10.0.0.1:81/a?token=t0psecret").to_string();
    assert_eq!(
        text,
        "10.0.0.1 is a private address; the user can allow it by adding \"10.0.0.1:81\" to security.url_allowlist, or all \
         private addresses by security.allow_private_urls: true"
    );
    let text = refusal(&UrlPolicy::default(), "http://[2002:a00:1::]/").to_string();
    assert!(text.starts_with("[2002:a00:1::] carries 10.0.0.1, a private address; "), "{text}");
    let checked = UrlPolicy::default().check_url("http://me:hunter2@example.org/a?token=t0psecret").expect("public");
    let shown = format!("{checked:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("t0psecret"), "{shown}");
}

#[test]
fn a_name_is_judged_by_what_it_resolves_to() {
    let nip = || UrlPolicy::default().check_url("http://127.0.0.1.nip.io/").expect("the name says nothing");
    let refused = nip().pin([ip("127.0.0.1")]).expect_err("loopback");
    assert_eq!(refused.kind, RefusalKind::Private);
    assert!(refused.to_string().starts_with("127.0.0.1.nip.io leads to 127.0.0.1, a loopback address"), "{refused}");
    let refused = nip().pin([ip("93.184.215.14"), ip("::ffff:10.0.0.1")]).expect_err("one bad address spoils all");
    assert_eq!(refused.kind, RefusalKind::Private);
    assert_eq!(nip().pin([]).expect_err("nothing").kind, RefusalKind::Unresolved);

    let pinned = nip().pin([ip("93.184.215.14"), ip("2606:4700::1111"), ip("93.184.215.14")]).expect("public");
    let addresses: Vec<String> = pinned.addresses().iter().map(SocketAddr::to_string).collect();
    assert_eq!(addresses, ["93.184.215.14:80", "[2606:4700::1111]:80"]);
    assert!(pinned.permits("[::ffff:93.184.215.14]:80".parse().expect("an address")));
    assert!(!pinned.permits("93.184.215.14:81".parse().expect("an address")));
    assert!(!pinned.permits("127.0.0.1:80".parse().expect("an address")));
}

#[test]
fn an_address_is_dialled_as_it_is_written() {
    let written = || UrlPolicy::default().check_url("http://8.8.8.8/").expect("public");
    assert_eq!(written().pin([]).expect("itself").addresses(), ["8.8.8.8:80".parse().expect("an address")]);
    assert_eq!(written().pin([ip("8.8.4.4")]).expect_err("another").kind, RefusalKind::Unresolved);
}

#[test]
fn the_allow_list_opens_one_host_on_one_port() {
    let policy = policy(
        &json!({ "url_allowlist": ["localhost:3000", "*.corp.example", "[::1]:8080", "::1", "http://10.0.0.5/"] }),
    );
    let local = policy.check_url("http://localhost:3000/app").expect("named");
    assert_eq!(local.pin([ip("127.0.0.1"), ip("::1")]).expect("loopback is meant").addresses().len(), 2);
    for url in ["http://[::1]:8080/", "http://[::1]/", "http://10.0.0.5:99/", "http://0xa000005/"] {
        policy.check_url(url).expect(url);
    }
    for url in [
        "http://localhost/",
        "http://localhost:3001/",
        "http://app.localhost:3000/",
        "http://127.0.0.1:3000/",
        "http://10.0.0.6/",
    ] {
        assert_eq!(refusal(&policy, url).kind, RefusalKind::Private, "{url}");
    }
    let pin = |host: &str, address: &str| policy.check_url(&format!("http://{host}/")).expect(host).pin([ip(address)]);
    pin("a.corp.example", "10.1.2.3").expect("below");
    pin("corp.example", "10.1.2.3").expect_err("not below");
    pin("evilcorp.example", "10.1.2.3").expect_err("not below");
    pin("a.corp.example", "169.254.169.254").expect_err("never");
    pin("a.corp.example", "::ffff:224.0.0.1").expect_err("never");
}

#[test]
fn private_addresses_can_be_allowed_as_a_whole() {
    let policy = policy(&json!({ "allow_private_urls": true, "redact_secrets": false }));
    for url in [
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://[fd12::1]/",
        "http://198.18.0.7/",
        "http://[::ffff:10.0.0.1]/",
    ] {
        policy.check_url(url).expect(url);
    }
    policy.check_address(ip("192.168.1.1")).expect("private");
    assert_eq!(policy.check_address(ip("255.255.255.255")).expect_err("never").kind, RefusalKind::Forbidden);
}

#[test]
fn a_block_rule_holds_for_the_site_and_what_is_below_it() {
    let section = json!({ "website_blocklist": {
        "enabled": true,
        "domains": ["https://www.Evil.example/path", "*.ads.example # adverts", "# all", "bücher.example", "203.0.113.9", "8.8.8.8"],
    }});
    let policy = policy(&section);
    for url in [
        "http://evil.example/",
        "http://EVIL.example./",
        "http://a.b.evil.example/",
        "http://x.ads.example/",
        "http://xn--bcher-kva.example/",
        "http://8.8.8.8/",
        "http://0x08080808/",
    ] {
        assert!(matches!(refusal(&policy, url).kind, RefusalKind::Blocked { .. }), "{url}");
    }
    for url in ["http://notevil.example/", "http://evil.example.org/", "http://ads.example/"] {
        policy.check_url(url).expect(url);
    }
    let hidden = policy.check_url("http://other.example/").expect("no rule").pin([ip("::ffff:8.8.8.8")]);
    assert!(matches!(hidden.expect_err("blocked address").kind, RefusalKind::Blocked { .. }));
    let rule = refusal(&policy, "http://x.ads.example/");
    assert_eq!(
        rule.to_string(),
        "x.ads.example is blocked by the rule `*.ads.example` in security.website_blocklist.domains; use another source, or \
         ask the user"
    );
}

#[test]
fn a_block_list_that_is_switched_off_blocks_nothing() {
    let off =
        policy(&json!({ "website_blocklist": { "domains": ["evil.example", "not a host"], "shared_files": ["/x"] } }));
    off.check_url("http://evil.example/").expect("switched off");
}

#[test]
fn shared_files_are_read_and_a_missing_one_closes_the_policy() {
    let section = json!({ "website_blocklist": { "enabled": true, "shared_files": ["/lists/a"], "domains": null } });
    let read =
        UrlPolicy::from_section(Some(&section), |_| Ok("\u{feff}evil.example\r\n\n# no\nbad.example # yes\n".into()));
    for url in ["http://evil.example/", "http://bad.example/"] {
        let kind = RefusalKind::Blocked { rule: url[7..url.len() - 1].into(), source: "/lists/a".into() };
        assert_eq!(refusal(&read, url).kind, kind);
    }
    read.check_url("http://good.example/").expect("no rule");
    assert_eq!(refusal(&policy(&section), "http://good.example/").kind, RefusalKind::PolicyUnreadable);
}

#[test]
fn a_policy_that_cannot_be_read_allows_nothing() {
    for section in [
        json!([]),
        json!("x"),
        json!({ "allow_private_urls": "yes please" }),
        json!({ "url_allowlist": "localhost" }),
        json!({ "url_allowlist": ["*"] }),
        json!({ "url_allowlist": [""] }),
        json!({ "url_allowlist": ["localhost:http"] }),
        json!({ "url_allowlist": ["localhost:0"] }),
        json!({ "url_allowlist": ["*.10.0.0.1"] }),
        json!({ "website_blocklist": { "enabled": true, "domains": ["ok.example", "a.*.example"] } }),
        json!({ "website_blocklist": { "enabled": true, "domains": [7] } }),
        json!({ "website_blocklist": [] }),
    ] {
        let policy = policy(&section);
        let refused = refusal(&policy, "https://example.org/");
        assert_eq!(refused.kind, RefusalKind::PolicyUnreadable, "{section}: {refused}");
        assert!(policy.check_address(ip("8.8.8.8")).is_err());
    }
    for section in [Value::Null, json!({}), json!({ "url_allowlist": null, "website_blocklist": null })] {
        policy(&section).check_url("https://example.org/").expect("nothing is set");
    }
    UrlPolicy::from_section(None, |_| Ok(String::new())).check_url("https://example.org/").expect("nothing is set");
}

#[test]
fn a_redirect_is_judged_like_a_url() {
    let start = UrlPolicy::default()
        .check_url("https://example.org/a/b?c")
        .expect("public")
        .pin([ip("8.8.8.8")])
        .expect("public");
    let to = |location: &str| start.redirect(location);
    for (location, target, notes) in [
        ("/x", "https://example.org/x", vec![]),
        ("d", "https://example.org/a/d", vec![]),
        ("?q", "https://example.org/a/b?q", vec![]),
        ("a b", "https://example.org/a/a%20b", vec![]),
        ("//other.example/x", "https://other.example/x", vec![Note::OtherOrigin]),
        ("http://example.org/", "http://example.org/", vec![Note::Downgraded, Note::OtherOrigin]),
        ("https://me@example.org/", "https://me@example.org/", vec![Note::UserInfo]),
    ] {
        let target_url = to(location).expect(location);
        assert_eq!(target_url.url().as_str(), target);
        assert_eq!(target_url.notes(), notes, "{location}");
        assert_eq!(target_url.redirects(), 1);
    }
    for (location, kind) in [
        ("http://127.0.0.1/", RefusalKind::Private),
        ("//localhost/", RefusalKind::Private),
        ("http://169.254.169.254/latest", RefusalKind::Forbidden),
        ("http://[::ffff:169.254.169.254]/", RefusalKind::Forbidden),
        ("file:///etc/passwd", RefusalKind::Malformed),
        ("javascript:x", RefusalKind::Malformed),
        ("\\\\evil.example", RefusalKind::Malformed),
        ("/a\r\nSet-Cookie: x", RefusalKind::Malformed),
        ("", RefusalKind::Malformed),
        ("http://", RefusalKind::Malformed),
    ] {
        let refused = to(location).expect_err(location);
        assert_eq!(refused.kind, kind, "{location}: {refused}");
        assert!(refused.to_string().starts_with("example.org redirects: "), "{refused}");
    }
}

#[test]
fn redirects_end_after_a_while() {
    let mut url = UrlPolicy::default().check_url("https://example.org/").expect("public");
    for _ in 0..MOST_REDIRECTS {
        url = url.redirect("/again").expect("not yet too many");
    }
    assert_eq!(url.redirect("/again").expect_err("too many").kind, RefusalKind::TooManyRedirects);
}

#[test]
fn credentials_in_parameters_are_named() {
    let names = |url: &str| UrlPolicy::default().check_url(url).expect(url).credential_parameters();
    assert_eq!(names("https://a.example/?q=1&Access_Token=x&x=2&API-KEY=y&apikey="), ["Access_Token", "API-KEY"]);
    assert_eq!(
        names("https://a.example/?X-Amz-Signature=1&X-Amz-Security-Token=2"),
        ["X-Amz-Signature", "X-Amz-Security-Token"]
    );
    assert_eq!(names("https://a.example/?%74oken=1&token=2"), ["token"]);
    assert_eq!(names("https://a.example/#access_token=1&state=2"), ["access_token"]);
    assert_eq!(names("https://a.example/token?key=1&code=2&sig=3&auth=4&tokens=5"), Vec::<String>::new());
}

#[test]
fn a_user_name_before_the_host_is_reported() {
    let url = UrlPolicy::default().check_url("https://bank.example@evil.example/").expect("public");
    assert_eq!((url.host(), url.port(), url.notes()), ("evil.example", 443, &[Note::UserInfo][..]));
}
