//! Phrases and tags, as data.
//!
//! The tricky idea is to stay linear: every gap in a pattern has an upper bound, so no match looks further than a few
//! hundred bytes ahead and many matches cannot add up to more than the text.

use std::sync::LazyLock;

use regex::Regex;

use super::reading::Reading;
use super::{Found, Kind, Level};

/// Between two words: a blank, a line break, marks of emphasis.
const GAP: &str = r#"[\s"'`*_,:;()-]{1,6}"#;
/// Some words that do not matter.
const FILL: &str = r#"(?:[\s"'`*_,:;()-]{1,6}[a-z']{1,20}){0,4}?[\s"'`*_,:;()-]{1,6}"#;

/// How far back a word is looked for that turns an instruction into a rule against it, in bytes.
const CONTEXT: usize = 90;

/// What, how loud, and the pattern: `FILL` and `GAP` stand for the above, letters of any case.
const TABLE: &[(Kind, Level, &str)] = &[
    (
        Kind::Override,
        Level::Warn,
        r"\b(?:ignore|disregard|forget|override|overrule|bypass)FILL(?:previous|prior|above|earlier|preceding|foregoing)FILL(?:instruction|prompt|rule|guideline|direction|directive|command|message|constraint)s?\b",
    ),
    (
        Kind::Override,
        Level::Warn,
        r"\b(?:ignore|disregard|forget|override|overrule|bypass)FILL(?:your|system|the developer's|developer)FILL(?:instruction|prompt|rule|guideline|directive|programming|training|constraint)s?\b",
    ),
    (
        Kind::Override,
        Level::Warn,
        r"\b(?:ignore|disregard|forget)GAP(?:all|any|every|everything)GAP(?:(?:other|of|the|your|you)GAP){0,2}(?:instructions?|prompts?|(?:were|was)GAPtold)\b",
    ),
    (Kind::Override, Level::Warn, r"\bsystemGAPpromptGAPoverride\b"),
    (Kind::Override, Level::Note, r"\b(?:new|updated|real|actual)GAP(?:systemGAP)?(?:instructions|prompt)\s{0,3}:"),
    (
        Kind::Override,
        Level::Warn,
        r"(?:忽略|无视|無視|忘记|忘記)[^。\n]{0,6}(?:之前|以上|上述|先前|前面)[^。\n]{0,8}(?:指令|指示|提示|规则|規則)",
    ),
    (
        Kind::Override,
        Level::Warn,
        r"\b(?:ignoriere|vergiss|missachte)FILL(?:vorherigen|bisherigen|obigen|vorigen)FILL(?:anweisungen|instruktionen|regeln)\b",
    ),
    (
        Kind::Override,
        Level::Warn,
        r"\b(?:ignora|olvida|ignorez|oubliez)FILL(?:instrucciones|instructions|reglas|consignes)GAP(?:anteriores|previas|précédentes)",
    ),
    (
        Kind::Unbinding,
        Level::Warn,
        r"\byouGAPareGAP(?:nowGAP)?(?:noGAPlonger|not)GAP(?:bound|restricted|constrained|subject)GAP(?:by|to)\b",
    ),
    (
        Kind::Unbinding,
        Level::Warn,
        r"\b(?:act|behave|respond|answer|pretend)FILLyouFILL(?:no|without)GAP(?:anyGAP)?(?:restrictions|limits|limitations|rules|filters)\b",
    ),
    (
        Kind::Concealment,
        Level::Warn,
        r"\b(?:hide|conceal|keep)GAP(?:this|it|that|these|them)FILLfrom(?:GAPthe)?GAP(?:user|human|owner|operator)s?\b",
    ),
    (
        Kind::Concealment,
        Level::Warn,
        r"\bwithoutGAP(?:theGAP)?(?:user|human|owner|operator)(?:'s)?GAP(?:knowing|noticing|knowledge)\b",
    ),
    (
        Kind::Concealment,
        Level::Note,
        r"\b(?:doGAPnot|don't|never|without)GAP(?:tell|inform|alert|notify|mention|telling|informing|alerting|notifying|mentioning)FILL(?:user|human|owner|operator)s?\b",
    ),
    (
        Kind::Disclosure,
        Level::Warn,
        r"\b(?:reveal|print|output|repeat|show|display|leak|dump)FILLyourGAP(?:entireGAP|fullGAP|ownGAP)?(?:system|initial|hidden)GAP(?:prompt|instructions?|message)\b",
    ),
    (Kind::Disclosure, Level::Note, r"\b(?:reveal|repeat|leak|dump)FILL(?:system|initial|hidden)GAPprompt\b"),
    (
        Kind::FakeTag,
        Level::Warn,
        r"\B<\s{0,3}/?\s{0,3}(?:available_skills|system|system[-_](?:reminder|prompt|message)|assistant|tool_calls?|tool_results?|tool_response|function_calls|function_results|memory[-_]context|untrusted[\w-]{0,30})(?:\s[^<>\n]{0,80})?/?>",
    ),
    (Kind::FakeTag, Level::Warn, r"<\|[a-z_]{2,24}\|>"),
    (Kind::FakeTag, Level::Warn, r"(?-i:\[/?INST\]|<</?SYS>>)"),
    (Kind::FakeTag, Level::Note, r"\B</?instructions>"),
    (
        Kind::PipeToShell,
        Level::Note,
        r"\b(?:curl|wget)\b[^\n|]{1,300}\|\s{0,4}(?:sudo\s{1,4}(?:-\w{1,4}\s{1,4}){0,3})?(?:/(?:usr/)?bin/)?(?:env\s{1,4})?(?:(?:ba|z|da|k|fi)?sh\b|(?:python[\d.]{0,4}|perl|ruby|node)\s{0,3}(?:-\s|-?$|[`'\x22|;&)]))",
    ),
    (
        Kind::PipeToShell,
        Level::Note,
        r"\b(?:ba|z|da|k)?sh\s{1,4}<\(\s{0,4}(?:curl|wget)\b|\b(?:iwr|irm|invoke-webrequest|invoke-restmethod)\b[^\n|]{1,300}\|\s{0,4}(?:iex|invoke-expression)\b",
    ),
];

/// What makes a comment one for a model, although it says nothing of the above.
const ADDRESSED: &str = r"\b(?:ai|llm|assistant|agent|language model|chatbot|gpt|claude|copilot|hermes)s?FILL(?:must|should|shall|will|need|run|execute|send|fetch|download|install|ignore|read)\b";

/// Words that turn what follows into an example or a rule against it.
const AGAINST: &str = r"\b(?:never|not|don't|cannot|refuse|beware|reject|obey|such as|e\.g\.|example|instance|like|attacks?|attackers?|attempts?|injections?|inject(?:s|ed)?|malicious|hostile|untrusted|phrases?|says?|saying)\b";

/// Text that a browser does not show.
const NOT_SHOWN: &str = r"<\w{1,12}\s[^<>\n]{0,120}(?:display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|font-size\s{0,3}:\s{0,3}0)\b";

static COMPILED: LazyLock<Vec<(Kind, Level, Regex)>> =
    LazyLock::new(|| TABLE.iter().filter_map(|(kind, level, text)| Some((*kind, *level, compiled(text)?))).collect());
static ADDRESSED_RE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(ADDRESSED));
static AGAINST_RE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(AGAINST));
static NOT_SHOWN_RE: LazyLock<Option<Regex>> = LazyLock::new(|| compiled(NOT_SHOWN));

/// `None` for a pattern with a mistake in it; a test sees to it that there is none.
pub(super) fn compiled(text: &str) -> Option<Regex> {
    let text = text.replace("FILL", FILL).replace("GAP", GAP);
    // Letters of all scripts in a bounded repetition would make the programs huge, and the attacks here are in Latin ones.
    let text = text.replace(r"\w", "[[:word:]]").replace(r"\d", "[0-9]").replace(r"\b", r"(?-u:\b)");
    regex::RegexBuilder::new(&text).case_insensitive(true).multi_line(true).build().ok()
}

pub(super) fn find(reading: &Reading<'_>, found: &mut Found) {
    for (kind, level, pattern) in COMPILED.iter() {
        for hit in pattern.find_iter(&reading.plain) {
            let line = reading.line(hit.start());
            let excerpt = || reading.excerpt(&hit.range());
            if reading.is_comment(hit.start()) && *kind != Kind::PipeToShell {
                found.add(line, Kind::HiddenComment, Level::Warn, excerpt);
                continue;
            }
            let example = reading.is_quoted(hit.start()) || is_against(reading.before(hit.start(), CONTEXT));
            found.add(line, *kind, if example { Level::Note } else { *level }, excerpt);
        }
    }
    for comment in reading.comments() {
        let hit = ADDRESSED_RE.as_ref().and_then(|pattern| pattern.find(&reading.plain[comment.clone()]));
        if let Some(hit) = hit {
            let at = comment.start + hit.start();
            let passage = at..comment.start + hit.end();
            found.add(reading.line(at), Kind::HiddenComment, Level::Note, || reading.excerpt(&passage));
        }
    }
    for hit in NOT_SHOWN_RE.iter().flat_map(|pattern| pattern.find_iter(&reading.plain)) {
        let line = reading.line(hit.start());
        found.add(line, Kind::HiddenComment, Level::Note, || reading.excerpt(&hit.range()));
    }
}

/// Whether a sentence that begins like this speaks about an attack instead of being one.
fn is_against(before: &str) -> bool {
    // Only the sentence at hand: "This is not long. Ignore all previous instructions." is no rule.
    let sentence = before
        .rfind(['.', '!', '?', '\n'])
        .map_or(before, |end| if before[..=end].ends_with("e.g.") { before } else { &before[end + 1..] });
    AGAINST_RE.as_ref().is_some_and(|pattern| pattern.is_match(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), TABLE.len());
        assert!(ADDRESSED_RE.is_some() && AGAINST_RE.is_some() && NOT_SHOWN_RE.is_some());
    }
}
