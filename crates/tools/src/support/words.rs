//! Numbers as people write them.

use std::time::Duration;

use hermes_core::grouped;

/// `1 line`, `2 lines`, `1,234 matches`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        noun if noun.ends_with("ch") || noun.ends_with("ss") => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", grouped(count as u64))
}

/// `5s`, `0.4s`: without a fraction where there is none.
pub(crate) fn duration(duration: Duration) -> String {
    if duration.subsec_millis() == 0 {
        format!("{}s", duration.as_secs())
    } else {
        format!("{:.1}s", duration.as_secs_f32())
    }
}

/// Every line of a text for the approval prompt, each after `sign`: what is approved must be there to be seen.
pub(crate) fn quoted(sign: char, text: &str) -> impl Iterator<Item = String> {
    text.lines().map(move |line| format!("{sign} {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!(plural(1, "line"), "1 line");
        assert_eq!(plural(0, "match"), "0 matches");
        assert_eq!(plural(1_234_567, "line"), "1,234,567 lines");
        assert_eq!(duration(Duration::from_millis(1_500)), "1.5s");
        assert_eq!(duration(Duration::from_secs(180)), "180s");
    }
}
