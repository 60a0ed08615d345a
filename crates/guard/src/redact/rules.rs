//! Secrets that show by their shape what they are. To hide another kind, add a row here, with a text that holds one and
//! a harmless twin; both are run as tests.
//!
//! Expressions run on one line at a time and must not look beyond the secret's end: what follows may be cut off or masked.
//! The secret is the last group, or all of the match. The bodies of the examples are invented; each is split after its
//! prefix, so that nobody's scanner takes this file for a leak.

use Check::{Login, Password, Random, Run, Shape};

/// What must be true of a match besides its shape.
#[derive(Clone, Copy, Debug)]
pub(super) enum Check {
    /// It is no stand-in such as `xxxx` or `your-key`.
    Shape,
    /// In addition, it holds so many letters and digits in a row, a digit among them.
    Run(usize),
    /// It may be a password.
    Password,
    /// It looks as if drawn by a machine.
    Random,
    /// It is the password of a login that is not simply its name (group `user`).
    Login,
}

/// A kind of secret.
#[derive(Debug)]
pub(super) struct Rule {
    /// What the mask says.
    pub(super) label: &'static str,
    /// One of these is in every match; in lower case, matched in any case.
    pub(super) words: &'static [&'static str],
    pub(super) pattern: &'static str,
    pub(super) check: Check,
    /// A text that holds one.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by a test"))]
    pub(super) hit: &'static str,
    /// A text that only seems to.
    #[cfg_attr(not(test), expect(dead_code, reason = "read by a test"))]
    pub(super) twin: &'static str,
}

const fn rule(
    label: &'static str,
    words: &'static [&'static str],
    pattern: &'static str,
    check: Check,
    hit: &'static str,
    twin: &'static str,
) -> Rule {
    Rule { label, words, pattern, check, hit, twin }
}

/// The kinds, the more telling ones first: the first one names a secret that several match.
#[rustfmt::skip]
pub(super) const RULES: &[Rule] = &[
    // Model providers.
    rule("anthropic key", &["sk-ant-"], r"(?-u:\b)sk-ant-[A-Za-z0-9_\-]{20,}", Run(12),
        concat!("key sk", "-ant-api03-EXAMPLE0example0EXAMPLE0"), "set sk-ant-your-key-goes-here-please"),
    rule("api key", &["sk-"], r"(?-u:\b)sk-[A-Za-z0-9_\-]{16,}", Run(16),
        concat!("sk", "-test-EXAMPLE0000000000000000"), "class=\"sk-fading-circle sk-circle12-with-a-long-name\""),
    rule("hugging face token", &["hf_"], r"(?-u:\b)hf_[A-Za-z0-9]{30,}", Run(30),
        concat!("hf", "_EXAMPLE0example0EXAMPLE0example0EX"), "hf_hub_download hf_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    rule("api key", &["gsk_", "xai-", "pplx-", "tvly-", "fw_", "r8_", "nvapi-", "csk-", "fc-", "ntn_", "lin_api_"],
        r"(?-u:\b)(?:gsk_|xai-|pplx-|tvly-(?:dev-)?|fw_|r8_|nvapi-|csk-|fc-|ntn_|lin_api_)[A-Za-z0-9_\-]{20,}", Run(20),
        concat!("gsk", "_EXAMPLE0example0EXAMPLE0example0"), "fc-match-the-font-by-its-family-name xai-1"),
    // Code hosts and package registries.
    rule("github token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(?-u:\b)(?:gh[oprsu]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})", Shape,
        concat!("ghp", "_EXAMPLE0example0EXAMPLE0example0EXA"), "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    rule("gitlab token", &["glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-", "glagent-"],
        r"(?-u:\b)gl(?:pat|ptt|dt|rt|cbt|soat|agent)-[A-Za-z0-9_.\-]{16,}", Run(8),
        concat!("glpat", "-EXAMPLE0example0EXAM"), "glpat-your-token-goes-here"),
    rule("npm token", &["npm_"], r"(?-u:\b)npm_[A-Za-z0-9]{30,}", Run(30),
        concat!("npm", "_EXAMPLE0example0EXAMPLE0example0EXA"), "npm_config_registry npm_package_version_with_long_name1"),
    rule("pypi token", &["pypi-"], r"(?-u:\b)pypi-[A-Za-z0-9_\-]{40,}", Run(20),
        concat!("pypi", "-EXAMPLE0example0EXAMPLE0example0EXAMPLE0example0"), "pypi-a-package-name-that-is-very-long-but-only-a-name"),
    rule("registry token", &["dckr_pat_", "rubygems_", "pul-", "atlasv1."],
        r"(?-u:\b)(?:dckr_pat_[A-Za-z0-9_\-]{20,}|rubygems_[a-f0-9]{40,}|pul-[a-f0-9]{40,}|[A-Za-z0-9]{10,20}\.atlasv1\.[A-Za-z0-9_\-]{40,})", Shape,
        concat!("dckr", "_pat_EXAMPLE0example0EXAMPLE"), "rubygems_version pul-request"),
    // Clouds.
    rule("aws key id", &["akia", "asia"], r"(?-u:\b)A(?:KI|SI)A[A-Z0-9]{16,}", Shape,
        concat!("AKI", "A0000EXAMPLE00000"), "AKIA and ASIA are prefixes; ASIAPACIFIC is a region"),
    rule("google key", &["aiza", "ya29.", "gocspx-", "1//0"],
        r"(?-u:\b)(?:AIza[A-Za-z0-9_\-]{30,}|ya29\.[A-Za-z0-9_.\-]{20,}|GOCSPX-[A-Za-z0-9_\-]{20,}|1//0[A-Za-z0-9_\-]{30,})", Run(8),
        concat!("AIz", "aEXAMPLE0example0EXAMPLE0example0EX"), "AIzawa; ya29.x; 1//0 is a division"),
    rule("digitalocean token", &["dop_v1_", "doo_v1_", "dor_v1_"], r"(?-u:\b)do[opr]_v1_[a-f0-9]{40,}", Shape,
        concat!("dop", "_v1_00e0a0b1e0a0b1e0a0b1e0a0b1e0a0b1e0a0b1e0a0b1"), "dop_v1_tokens are hexadecimal"),
    rule("cloud token", &["hvs.", "hvb.", "dapi", "sbp_", "dp.pt.", "tskey-", "flyv1", "fo1_", "nrak-", "pmak-", "glsa_", "sntrys_", "sntryu_"],
        r"(?-u:\b)(?:hv[bs]\.[A-Za-z0-9_\-]{24,}|dapi[a-f0-9]{32,}|sbp_[a-f0-9]{40,}|dp\.pt\.[A-Za-z0-9]{40,}|tskey-[a-z]+-[A-Za-z0-9\-]{16,}|fo1_[A-Za-z0-9_\-]{40,}|NRAK-[A-Z0-9]{27,}|PMAK-[a-f0-9\-]{50,}|glsa_[A-Za-z0-9_]{32,}|sntry[su]_[A-Za-z0-9+/=_\-]{40,})", Run(8),
        concat!("hvs", ".EXAMPLE0example0EXAMPLE0"), "dapi is Databricks; hvs.client.read_secret_version_by_name"),
    rule("age key", &["age-secret-key-1"], r"AGE-SECRET-KEY-1[A-Z0-9]{40,}", Shape,
        concat!("AGE", "-SECRET-KEY-1EXAMPLE0EXAMPLE0EXAMPLE0EXAMPLE0EXAMPLE0"), "it begins with AGE-SECRET-KEY-1"),
    // Chat and mail.
    rule("slack token", &["xox", "xapp-"], r"(?-u:\b)(?:xox[abceoprs]-[A-Za-z0-9\-]{10,}|xapp-[0-9]-[A-Za-z0-9\-]{20,})", Run(8),
        concat!("xoxb", "-0000000000-EXAMPLE0example0"), "xoxb-your-token and xoxp-"),
    rule("webhook", &["hooks.slack.com", "api/webhooks/"],
        r"(?:hooks\.slack\.com/(?:services|workflows)/|/api/webhooks/[0-9]{10,}/)([A-Za-z0-9_/\-]{20,})", Run(8),
        concat!("https://hooks.slack.com/services", "/T00000000/B00000000/EXAMPLE0example0EXAMPLE0"), "https://hooks.slack.com/services/T00/B00/xxx"),
    rule("telegram token", &[":a"], r"(?-u:\b)[0-9]{8,10}:A[A-Za-z0-9_\-]{32,}", Shape,
        concat!("bot0123456789 0123456789", ":AAEXAMPLE0example0EXAMPLE0example0"), "12345678:Abbreviated"),
    rule("telegram token", &["/bot"], r"/bot([0-9]{8,10}:A[A-Za-z0-9_\-]{32,})", Shape,
        concat!("https://api.telegram.org/bot0123456789", ":AAEXAMPLE0example0EXAMPLE0example0/getMe"), "https://api.telegram.org/bot<token>/getMe"),
    rule("discord token", &["."], r"(?-u:\b)[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,}", Run(20),
        concat!("MEXAMPLE0example0EXAMPLE0", ".EXAMPL.EXAMPLE0example0EXAMPLE0example0"), "Module.method.another_name_that_is_long_enough"),
    rule("sendgrid key", &["sg."], r"(?-u:\b)SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}", Shape,
        concat!("SG", ".EXAMPLE0example0EXAM.EXAMPLE0example0EXAMPLE0example0EXAMPLE0"), "SG.example.com"),
    rule("mail key", &["key-"], r"(?-u:\b)key-[a-f0-9]{32,}", Shape,
        concat!("key", "-00e0a0b1e0a0b1e0a0b1e0a0b1e0a0b1"), "key-value monkey-0 key-deadbeef"),
    // Payment and shops.
    rule("stripe key", &["sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"],
        r"(?-u:\b)(?:[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{20,})", Shape,
        concat!("sk_live", "_EXAMPLE0example0EXAMPLE0"), "pk_live_ is public; sk_buff_head_init(); sk_test_mode"),
    rule("shopify token", &["shpat_", "shpca_", "shppa_", "shpss_"], r"(?-u:\b)shp(?:at|ca|pa|ss)_[A-Za-z0-9]{28,}", Run(16),
        concat!("shpat", "_00e0a0b1e0a0b1e0a0b1e0a0b1e0a0b1"), "shpat_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    // Whoever made it.
    rule("jwt", &["eyj"], r"(?-u:\b)eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*){0,3}", Run(8),
        concat!("eyJ", "EXAMPLE0example0.eyJEXAMPLE0example0.EXAMPLE0example0"), "every JWT begins with eyJ, eyJhbGciOi is a header"),
    rule("authorization", &["authorization"],
        r#"(?i)authorization\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?(?:(?:bearer|basic|token|digest|negotiate|apikey|bot)[ \t]{1,4})([A-Za-z0-9._~+/=:\-]{6,})"#, Shape,
        "curl -H 'Authorization: Basic ZXhhbXBsZTpleGFtcGxl'", "curl -H 'Authorization: Bearer YOUR_API_KEY' -H \"Authorization: Bearer $TOKEN\""),
    rule("authorization", &["authorization"],
        r#"(?i)authorization\\?["']?[ \t]{0,4}[:=][ \t]{0,4}\\?["']?([A-Za-z0-9._~+/=:\-]{16,})"#, Random,
        "Authorization: a8F3kE0examPLE9x7Qm2Zt", "Authorization: required-for-every-request"),
    rule("bearer token", &["bearer"], r"(?i)(?-u:\b)bearer[ \t]{1,4}([A-Za-z0-9._~+/=\-]{20,})", Random,
        "sent `Bearer a8F3kE0examPLE9x7Qm2Zt`", "a bearer authentication-scheme-of-oauth is used"),
    rule("url password", &["://"], r#"(?i)(?-u:\b)[a-z][a-z0-9+.\-]{1,20}://(?P<user>[^\s/?#:@"'<>\\`]{0,100}):(?P<secret>[^\s/"'<>\\`?#]{1,300})@"#, Login,
        "DATABASE_URL=postgres://app:hunter2@db.example/app", "postgres://user:password@localhost/db redis://:${PASSWORD}@host"),
    rule("url token", &["://"], r"(?i)(?-u:\b)[a-z][a-z0-9+.\-]{1,20}://([A-Za-z0-9_\-]{20,300})@", Random,
        "git clone https://a8F3kE0examPLE9x7Qm2Zt@git.example/x", "ssh://git@git.example/x https://a-very-long-user-name-2@host"),
    rule("signature", &["signature=", "sig="], r"(?i)(?:x-amz-signature|x-goog-signature|[?&;]sig)=([A-Za-z0-9%+/=]{30,})", Run(12),
        "https://x.example/?sv=1&sig=EXAMPLE0example0EXAMPLE0example0%3D", "https://x.example/?sig=none&signature=v4"),
    rule("session cookie", &["cookie"], r#"(?i)(?-u:\b)(?:set-)?cookie["']?[ \t]{0,4}:[ \t]{0,4}["']?[A-Za-z0-9_.\-]{1,60}=([A-Za-z0-9%._~+/=:\-]{16,})"#, Random,
        "Set-Cookie: sid=a8F3kE0examPLE9x7Qm2Zt; HttpOnly", "Set-Cookie: theme=dark-and-easy-on-the-eyes"),
    rule("password", &["machine"], r"(?-u:\b)machine\s+\S{1,255}\s+login\s+\S{1,255}\s+password\s+(\S{1,255})", Password,
        "machine git.example login me password hunter2", "machine HOST login NAME password PASSWORD"),
    rule("password", &["curl"], r#"(?-u:\b)curl(?-u:\b).{0,400}?\s(?:-u|--user)[ =]{0,2}["']?[^\s:"'<>$]{1,100}:([^\s"'<>$]{1,200})"#, Password,
        "curl -u me:hunter2 https://x.example", "curl -u user:password https://x.example; curl -u \"$USER:$PASS\""),
    rule("password", &["</"], r"(?i)<(?:[A-Za-z0-9]{1,30}[.:_\-])?(?:password|passphrase|secret|token|apikey|api_key)>([^<>\s]{6,500})</", Password,
        "<password>hunter2</password>", "<password>${env.PASSWORD}</password> <token>string</token>"),
];
