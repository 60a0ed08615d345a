//! Times and texts as people write them.

use std::time::Duration;

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
    fn a_whole_number_of_seconds_has_no_fraction() {
        assert_eq!(duration(Duration::from_millis(1_500)), "1.5s");
        assert_eq!(duration(Duration::from_secs(180)), "180s");
    }
}
