//! Rules of the configuration: which commands and arguments are allowed, asked about, denied, or read as commands.
//!
//! A rule may carry examples; they are checked when the rules are read, so that a rule that does not say what its author
//! meant is found before it is needed.

use serde_json::Value;

/// What a rule does with what it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// No question about it; never for what must not run at all.
    Allow,
    /// A person is asked even if it is safe.
    Ask,
    /// It does not run, whoever says yes.
    Deny,
    /// The argument is a command: it is judged like one of the terminal. For tools of others that run commands.
    Judge,
}

/// A text that a rule must match, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The command, or the value of the argument.
    pub text: String,
    /// Whether the rule is about it.
    pub matches: bool,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where it stands, for example `approvals.rules[2]`.
    pub place: String,
    /// A glob for the tool's name, for example `terminal` or `mcp__db__*`.
    pub tool: String,
    /// The argument whose value is matched; `None`: the simple commands of a command, or for other tools nothing more than
    /// the name.
    pub argument: Option<String>,
    /// A glob for the value; ` *` at its end stands for any number of words. `None` matches every value.
    pub pattern: Option<String>,
    /// What happens.
    pub action: Action,
    /// Why, for the person who reads about it.
    pub reason: Option<String>,
    /// What it must and must not match.
    pub examples: Vec<Example>,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct RuleProblem {
    /// Where it stands.
    pub place: String,
    /// What is wrong and what would be right.
    pub what: String,
}

/// All rules, in the order of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

impl Rules {
    /// Reads `rules` and `deny` of the `approvals` section.
    ///
    /// # Errors
    /// Everything that is wrong, not only the first thing.
    pub fn read(approvals: Option<&Value>) -> Result<Self, Vec<RuleProblem>> {
        let mut rules = Vec::new();
        let mut problems = Vec::new();
        let list = |key: &str| match approvals.and_then(|approvals| approvals.get(key)) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items.clone()),
            Some(_) => Err(RuleProblem { place: format!("approvals.{key}"), what: "must be a list".into() }),
        };
        match list("deny") {
            Ok(items) => {
                for (index, item) in items.iter().enumerate() {
                    let place = format!("approvals.deny[{index}]");
                    match item.as_str().filter(|pattern| !pattern.trim().is_empty()) {
                        Some(pattern) => rules.push(Rule {
                            place,
                            tool: "*".into(),
                            argument: None,
                            pattern: Some(pattern.to_owned()),
                            action: Action::Deny,
                            reason: None,
                            examples: Vec::new(),
                        }),
                        None => problems
                            .push(RuleProblem { place, what: "must be a pattern such as \"git push *\"".into() }),
                    }
                }
            }
            Err(problem) => problems.push(problem),
        }
        match list("rules") {
            Ok(items) => {
                for (index, item) in items.iter().enumerate() {
                    match Rule::read(&format!("approvals.rules[{index}]"), item) {
                        Ok(rule) => {
                            problems.extend(rule.failed_examples());
                            rules.push(rule);
                        }
                        Err(problem) => problems.push(problem),
                    }
                }
            }
            Err(problem) => problems.push(problem),
        }
        if problems.is_empty() { Ok(Self { rules }) } else { Err(problems) }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The first rule with this action that is about a simple command of a tool.
    pub fn about_command(&self, tool: &str, action: Action, command: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            rule.action == action
                && glob(&rule.tool, tool)
                && rule.argument.as_deref().is_none_or(|argument| argument == "command")
                && rule.pattern.as_deref().is_none_or(|pattern| fits(pattern, command, action == Action::Allow))
        })
    }

    /// The first rule with this action that is about a call with these arguments.
    pub fn about_call(&self, tool: &str, action: Action, arguments: &serde_json::Map<String, Value>) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            if rule.action != action || !glob(&rule.tool, tool) {
                return false;
            }
            match (&rule.argument, &rule.pattern) {
                (None, None) => true,
                // A pattern without an argument is about commands.
                (None, Some(_)) => false,
                (Some(argument), pattern) => arguments.get(argument).is_some_and(|value| {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    pattern.as_deref().is_none_or(|pattern| fits(pattern, &text, action == Action::Allow))
                }),
            }
        })
    }
}

impl Rule {
    fn read(place: &str, value: &Value) -> Result<Self, RuleProblem> {
        let wrong = |what: String| RuleProblem { place: place.to_owned(), what };
        let Value::Object(fields) = value else { return Err(wrong("must have tool, pattern and action".into())) };
        let known = ["tool", "argument", "pattern", "action", "reason", "examples"];
        if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(wrong(format!("{unknown} is not known here; known are {}", known.join(", "))));
        }
        let text = |key: &str| match fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
            Some(_) => Err(wrong(format!("{key} must be a text"))),
        };
        let action = match text("action")?.as_deref() {
            Some("allow") => Action::Allow,
            Some("ask") => Action::Ask,
            Some("deny") => Action::Deny,
            Some("judge") => Action::Judge,
            other => {
                let other = other.unwrap_or("nothing");
                return Err(wrong(format!("action is {other}; it must be allow, ask, deny or judge")));
            }
        };
        let rule = Self {
            tool: text("tool")?.unwrap_or_else(|| "terminal".into()),
            argument: text("argument")?,
            pattern: text("pattern")?,
            action,
            reason: text("reason")?,
            examples: examples(fields.get("examples")).map_err(wrong)?,
            place: place.to_owned(),
        };
        // What fits commands that have nothing in common fits every one.
        let everything =
            |pattern: &str| ["rm -rf x", "git push", "42", "Z a/b"].iter().all(|text| fits(pattern, text, true));
        if action == Action::Allow && rule.pattern.as_deref().is_none_or(everything) && glob(&rule.tool, "terminal") {
            let what = "would allow every command; name a pattern such as \"make *\" (approvals.mode off asks nothing)";
            return Err(wrong(what.into()));
        }
        if action == Action::Judge && rule.argument.is_none() {
            return Err(wrong("judge needs the argument that holds the command".into()));
        }
        Ok(rule)
    }

    /// Why it decides, and which one it is: its reason, else what it `does` (for example `forbids`).
    pub fn why(&self, does: &str) -> String {
        let place = &self.place;
        match &self.reason {
            Some(reason) => format!("{reason} ({place})"),
            None => format!("{place} {does} {}", self.pattern.as_deref().unwrap_or("it")),
        }
    }

    /// The examples that the rule gets wrong.
    pub fn failed_examples(&self) -> Vec<RuleProblem> {
        let Some(pattern) = &self.pattern else { return Vec::new() };
        self.examples
            .iter()
            .filter(|example| fits(pattern, &example.text, self.action == Action::Allow) != example.matches)
            .map(|example| RuleProblem {
                place: self.place.clone(),
                what: format!(
                    "its pattern {pattern:?} {} {:?}, and its example says otherwise",
                    if example.matches { "does not match" } else { "matches" },
                    example.text
                ),
            })
            .collect()
    }
}

fn examples(value: Option<&Value>) -> Result<Vec<Example>, String> {
    let mut examples = Vec::new();
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(examples) };
    let Value::Object(fields) = value else { return Err("examples must have the lists match and not".into()) };
    for (key, list) in fields {
        let matches = match key.as_str() {
            "match" => true,
            "not" => false,
            other => return Err(format!("examples.{other} is not known; known are match and not")),
        };
        let Value::Array(list) = list else { return Err(format!("examples.{key} must be a list")) };
        for text in list {
            let text = text.as_str().ok_or_else(|| format!("examples.{key} must hold texts"))?;
            examples.push(Example { text: text.to_owned(), matches });
        }
    }
    Ok(examples)
}

/// Whether a pattern is about a text: word by word, where ` *` at the end stands for any number of words. What is allowed
/// must match to the letter; what is restricted also in other letters, and in a text that holds more than one line.
pub(super) fn fits(pattern: &str, text: &str, exact: bool) -> bool {
    let (pattern, text) = if exact {
        (pattern.to_owned(), text.to_owned())
    } else {
        (pattern.to_lowercase(), text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase())
    };
    if let Some(start) = pattern.strip_suffix(" *")
        && glob(start, &text)
    {
        return true;
    }
    glob(&pattern, &text)
}

/// `*` is any text, `?` one character, `[…]` a set.
fn glob(pattern: &str, text: &str) -> bool {
    crate::text::matches(&crate::text::live(pattern), text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_at_the_end_is_any_number_of_words() {
        for (pattern, text, expected) in [
            ("pkill *", "pkill -f worker", true),
            ("pkill *", "pkill", true),
            ("pkill *", "pkillall", false),
            ("git push *", "git  push origin", false),
            ("git status", "git status -s", false),
            ("git *", "git status && rm -rf x", true),
        ] {
            assert_eq!(fits(pattern, text, true), expected, "{pattern} {text}");
        }
        assert!(fits("GIT push *", "git   push origin", false));
    }

    #[test]
    fn examples_are_checked_when_the_rules_are_read() {
        let rule = |matching: &str| json!({"rules": [{"pattern": "git push *", "action": "deny", "examples": {"match": [matching], "not": ["git pull"]}}]});
        assert!(Rules::read(Some(&rule("git push origin main"))).is_ok());
        let problems = Rules::read(Some(&rule("git pushy"))).unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            "approvals.rules[0]: its pattern \"git push *\" does not match \"git pushy\", and its example says otherwise"
        );
    }

    #[test]
    fn rules_that_mean_nothing_are_refused_with_the_right_way() {
        for (rule, says) in [
            (json!({"pattern": "x"}), "action is nothing"),
            (json!({"action": "permit"}), "allow, ask, deny or judge"),
            (json!({"tool": "*", "action": "allow"}), "would allow every command"),
            (json!({"pattern": "*", "action": "allow"}), "would allow every command"),
            (json!({"pattern": "?*", "action": "allow"}), "would allow every command"),
            (json!({"pattern": "[!x]*", "action": "allow"}), "would allow every command"),
            (json!({"tool": "term*", "pattern": "** *", "action": "allow"}), "would allow every command"),
            (json!({"tool": "mcp__s__exec", "action": "judge"}), "judge needs the argument"),
            (json!({"action": "ask", "patern": "x"}), "patern is not known"),
            (json!("x"), "must have tool"),
        ] {
            let problems = Rules::read(Some(&json!({"rules": [rule]}))).unwrap_err();
            assert!(problems[0].to_string().contains(says), "{problems:?}");
        }
        assert!(Rules::read(Some(&json!({"deny": "rm *"}))).is_err());
    }
}
