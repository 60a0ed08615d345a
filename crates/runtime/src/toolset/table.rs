//! The toolsets that everybody has, as data (spec core §4.2, §4.3, §4.8).
//!
//! To give a tool to every platform, add it to [`CORE`]; to one of them, to its line in [`PLATFORMS`]. Nothing else lists
//! tools a second time. A name in `plus` or `minus` may be a toolset or a tool.

/// What every platform starts from.
pub(super) const CORE: &[&str] = &[
    "web_search",
    "web_extract",
    "terminal",
    "process",
    "read_terminal",
    "close_terminal",
    "read_file",
    "write_file",
    "patch",
    "search_files",
    "vision_analyze",
    "image_generate",
    "skills_list",
    "skill_view",
    "skill_manage",
    "browser_navigate",
    "browser_snapshot",
    "browser_click",
    "browser_type",
    "browser_scroll",
    "browser_back",
    "browser_press",
    "browser_get_images",
    "browser_vision",
    "browser_console",
    "browser_cdp",
    "browser_dialog",
    "text_to_speech",
    "todo",
    "memory",
    "session_search",
    "clarify",
    "execute_code",
    "delegate_task",
    "cronjob",
    "ha_list_entities",
    "ha_get_state",
    "ha_list_services",
    "ha_call_service",
    "kanban_show",
    "kanban_list",
    "kanban_complete",
    "kanban_block",
    "kanban_heartbeat",
    "kanban_comment",
    "kanban_create",
    "kanban_link",
    "kanban_unblock",
    "kanban_attach",
    "kanban_attach_url",
    "kanban_attachments",
    "computer_use",
    "calculate",
];

/// A platform that starts from nothing.
pub(super) const NONE: &[&str] = &[];

/// A named set of tools.
#[derive(Debug)]
pub(super) struct Toolset {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) tools: &'static [&'static str],
    pub(super) includes: &'static [&'static str],
}

/// A surface: what is on there unless the user says otherwise.
#[derive(Debug)]
pub(super) struct Platform {
    /// Its toolset.
    pub(super) name: &'static str,
    /// What `platform_toolsets` and `--platform` call it.
    pub(super) keys: &'static [&'static str],
    pub(super) about: &'static str,
    pub(super) from: &'static [&'static str],
    pub(super) plus: &'static [&'static str],
    pub(super) minus: &'static [&'static str],
}

pub(super) const TOOLSETS: &[Toolset] = &[
    set("web", "search the web and read pages", &["web_search", "web_extract"], &[]),
    set("search", "search the web, without reading pages", &["web_search"], &[]),
    set("x_search", "search X (Twitter)", &["x_search"], &[]),
    set("vision", "look at pictures", &["vision_analyze"], &[]),
    set("video", "watch videos", &["video_analyze"], &[]),
    set("image_gen", "make pictures", &["image_generate"], &[]),
    set("video_gen", "make, change and extend videos", &["video_generate", "xai_video_edit", "xai_video_extend"], &[]),
    set("computer_use", "use the desktop: screen, mouse, keyboard", &["computer_use"], &[]),
    set("terminal", "run commands and look after processes", &["terminal", "process"], &[]),
    set("skills", "list, read and maintain skills", &["skills_list", "skill_view", "skill_manage"], &[]),
    set(
        "browser",
        "drive a web browser",
        &[
            "browser_navigate",
            "browser_snapshot",
            "browser_click",
            "browser_type",
            "browser_scroll",
            "browser_back",
            "browser_press",
            "browser_get_images",
            "browser_vision",
            "browser_console",
            "browser_cdp",
            "browser_dialog",
            "web_search",
        ],
        &[],
    ),
    set("cronjob", "jobs that run by the clock", &["cronjob"], &[]),
    set("file", "read, write, patch and search files", &["read_file", "write_file", "patch", "search_files"], &[]),
    set("tts", "turn text into speech", &["text_to_speech"], &[]),
    set("todo", "the list of things to do", &["todo"], &[]),
    set("memory", "notes that outlive the conversation", &["memory"], &[]),
    set("context_engine", "whatever the active context engine offers", &[], &[]),
    set("session_search", "search earlier conversations", &["session_search"], &[]),
    set("project", "workspaces of the desktop app", &["project_list", "project_create", "project_switch"], &[]),
    set("clarify", "ask the user", &["clarify"], &[]),
    set("code_execution", "run Python that can call tools", &["execute_code"], &[]),
    set("delegation", "hand work to sub-agents", &["delegate_task"], &[]),
    set(
        "homeassistant",
        "control a home through Home Assistant",
        &["ha_list_entities", "ha_get_state", "ha_list_services", "ha_call_service"],
        &[],
    ),
    set(
        "kanban",
        "the task board of several agents",
        &[
            "kanban_show",
            "kanban_list",
            "kanban_complete",
            "kanban_block",
            "kanban_heartbeat",
            "kanban_comment",
            "kanban_create",
            "kanban_link",
            "kanban_unblock",
            "kanban_attach",
            "kanban_attach_url",
            "kanban_attachments",
        ],
        &[],
    ),
    set("discord", "read and take part in Discord", &["discord"], &[]),
    set("discord_admin", "administer a Discord server", &["discord_admin"], &[]),
    set(
        "yuanbao",
        "groups, messages and stickers of Yuanbao",
        &["yb_query_group_info", "yb_query_group_members", "yb_send_dm", "yb_search_sticker", "yb_send_sticker"],
        &[],
    ),
    set("feishu_doc", "read Feishu (Lark) documents", &["feishu_doc_read"], &[]),
    set(
        "feishu_drive",
        "comments on Feishu (Lark) documents",
        &[
            "feishu_drive_list_comments",
            "feishu_drive_list_comment_replies",
            "feishu_drive_reply_comment",
            "feishu_drive_add_comment",
        ],
        &[],
    ),
    set(
        "spotify",
        "play music and keep a library on Spotify",
        &[
            "spotify_playback",
            "spotify_devices",
            "spotify_queue",
            "spotify_search",
            "spotify_playlists",
            "spotify_albums",
            "spotify_library",
        ],
        &[],
    ),
    set("debugging", "shell, files and the web, to find a fault", &["terminal", "process"], &["web", "file"]),
    set("safe", "nothing that changes this machine", &[], &["web", "vision", "image_gen"]),
    set("math", "exact arithmetic", &["calculate"], &[]),
    set(
        "hermes-gateway",
        "everything that a chat platform has",
        &[],
        &[
            "hermes-telegram",
            "hermes-discord",
            "hermes-whatsapp",
            "hermes-slack",
            "hermes-signal",
            "hermes-bluebubbles",
            "hermes-homeassistant",
            "hermes-email",
            "hermes-sms",
            "hermes-mattermost",
            "hermes-matrix",
            "hermes-dingtalk",
            "hermes-feishu",
            "hermes-wecom",
            "hermes-wecom-callback",
            "hermes-weixin",
            "hermes-qqbot",
            "hermes-webhook",
            "hermes-yuanbao",
        ],
    ),
];

pub(super) const PLATFORMS: &[Platform] = &[
    platform(
        "hermes-acp",
        &[],
        "editors (ACP): nothing that needs a chat window",
        CORE,
        &[],
        &[
            "read_terminal",
            "close_terminal",
            "image_gen",
            "tts",
            "clarify",
            "cronjob",
            "homeassistant",
            "kanban",
            "computer_use",
        ],
    ),
    platform(
        "hermes-api-server",
        &["api_server"],
        "the HTTP API: nothing that needs a person at a screen",
        CORE,
        &[],
        &["read_terminal", "close_terminal", "tts", "clarify", "kanban", "computer_use"],
    ),
    platform("hermes-cli", &["cli"], "the conversation in a terminal", CORE, &[], &[]),
    platform("hermes-cron", &["cron"], "runs by the clock", CORE, &[], &[]),
    platform("hermes-telegram", &["telegram"], "Telegram", CORE, &[], &[]),
    platform("hermes-discord", &["discord"], "Discord", CORE, &["discord", "discord_admin"], &[]),
    platform("hermes-whatsapp", &["whatsapp", "whatsapp_cloud"], "WhatsApp", CORE, &[], &[]),
    platform("hermes-slack", &["slack"], "Slack", CORE, &[], &[]),
    platform("hermes-signal", &["signal"], "Signal", CORE, &[], &[]),
    platform("hermes-bluebubbles", &["bluebubbles"], "iMessage, through BlueBubbles", CORE, &[], &[]),
    platform("hermes-homeassistant", &["homeassistant"], "events of Home Assistant", CORE, &[], &[]),
    platform("hermes-email", &["email"], "e-mail", CORE, &[], &[]),
    platform("hermes-mattermost", &["mattermost"], "Mattermost", CORE, &[], &[]),
    platform("hermes-matrix", &["matrix"], "Matrix", CORE, &[], &[]),
    platform("hermes-dingtalk", &["dingtalk"], "DingTalk", CORE, &[], &[]),
    platform("hermes-feishu", &["feishu"], "Feishu (Lark)", CORE, &["feishu_doc", "feishu_drive"], &[]),
    platform("hermes-weixin", &["weixin"], "personal WeChat", CORE, &[], &[]),
    platform("hermes-qqbot", &["qqbot"], "QQ", CORE, &[], &[]),
    platform("hermes-wecom", &["wecom"], "WeCom", CORE, &[], &[]),
    platform("hermes-wecom-callback", &["wecom_callback"], "WeCom, for apps of one's own", CORE, &[], &[]),
    platform("hermes-yuanbao", &["yuanbao"], "Yuanbao", CORE, &["yuanbao"], &[]),
    platform("hermes-sms", &[], "text messages", CORE, &[], &[]),
    platform(
        "hermes-webhook",
        &["webhook"],
        "webhooks: restricted on purpose",
        NONE,
        &["web", "vision", "clarify"],
        &[],
    ),
];

/// A set for a kind of work rather than a place. Switching it off takes away only what no platform has anyway.
pub(super) const CODING: Platform = platform(
    "coding",
    &[],
    "work on a code base",
    CORE,
    &[],
    &["image_gen", "tts", "cronjob", "homeassistant", "kanban", "computer_use"],
);

/// Toolsets that work on one surface alone.
pub(super) const NATIVE: &[(&str, &str)] = &[("discord", "hermes-discord"), ("discord_admin", "hermes-discord")];

/// Names of earlier versions, and what they are called today.
pub(super) const LEGACY: &[(&str, &str)] = &[
    ("browser_tools", "browser"),
    ("cronjob_tools", "cronjob"),
    ("file_tools", "file"),
    ("image_tools", "image_gen"),
    ("skills_tools", "skills"),
    ("terminal_tools", "terminal"),
    ("tts_tools", "tts"),
    ("vision_tools", "vision"),
    ("web_tools", "web"),
];

const fn set(
    name: &'static str,
    about: &'static str,
    tools: &'static [&'static str],
    includes: &'static [&'static str],
) -> Toolset {
    Toolset { name, about, tools, includes }
}

const fn platform(
    name: &'static str,
    keys: &'static [&'static str],
    about: &'static str,
    from: &'static [&'static str],
    plus: &'static [&'static str],
    minus: &'static [&'static str],
) -> Platform {
    Platform { name, keys, about, from, plus, minus }
}
