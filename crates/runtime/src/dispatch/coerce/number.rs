//! Numbers out of texts, with all of their digits or not at all.
//!
//! A double keeps 15 decimal digits of anything and 17 of some things; reading `"9007199254740993"` through one would
//! silently change it. So a text is read as a decimal first, and becomes a double only if nothing gets lost.

use serde_json::{Number, Value};

/// Integers up to here survive a trip through a double (IEEE 754, 2^53).
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The number that `text` writes in decimal, blanks around it allowed: an integer if it is whole and JSON can hold it,
/// else, where `fractions` are wanted, a double that keeps all of its digits.
pub(super) fn read(text: &str, fractions: bool) -> Option<Number> {
    let text = text.trim();
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    // Most texts are no numbers; they end here, however long they are.
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return None;
    }
    let decimal = Decimal::read(text)?;
    if let Some(whole) = decimal.whole() {
        return Some(whole);
    }
    if !fractions {
        return None;
    }
    let number = Number::from_f64(text.parse().ok()?)?;
    // 17 digits are fine if they are what the tool will see. Asked of `Number`: others round ties differently.
    (decimal.fits_a_double() || number.to_string() == text).then_some(number)
}

/// The integer that a double like 4.0 stands for.
#[expect(clippy::cast_possible_truncation, reason = "the value is whole and at most 2^53")]
pub(super) fn whole(value: &Value) -> Option<Value> {
    let number = value.as_number().filter(|number| number.is_f64())?;
    let double = number.as_f64()?;
    (double.fract() == 0.0 && double.abs() <= EXACT).then(|| Value::from(double as i64))
}

/// A decimal number as it is written, before any of its digits can be lost.
struct Decimal {
    negative: bool,
    /// Without leading zeros.
    digits: String,
    /// How many of `digits` stand after the point; negative if zeros are missing.
    scale: i64,
}

impl Decimal {
    /// Reads `-12.50e3` and the like; `inf`, `nan`, `0x10`, `1,000` and `1_000` are texts.
    fn read(text: &str) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (rest, 0),
        };
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if (before.is_empty() && after.is_empty()) || !all_digits(before) || !all_digits(after) {
            return None;
        }
        let scale = i64::try_from(after.len()).ok()? - i64::from(exponent);
        let digits = format!("{before}{after}").trim_start_matches('0').to_owned();
        Some(Self { negative, digits, scale })
    }

    /// The same as an integer, if it is one and JSON can hold it.
    fn whole(&self) -> Option<Number> {
        /// More digits than the largest integer has.
        const MOST_DIGITS: i64 = 25;
        let digits = self.digits.trim_end_matches('0');
        let zeros = i64::try_from(self.digits.len() - digits.len()).ok()? - self.scale;
        if digits.is_empty() {
            return Some(0.into());
        }
        if !(0..=MOST_DIGITS).contains(&zeros) {
            return None;
        }
        let text = format!("{digits}{}", "0".repeat(usize::try_from(zeros).ok()?));
        if self.negative {
            format!("-{text}").parse::<i64>().ok().map(Number::from)
        } else {
            text.parse::<u64>().ok().map(Number::from)
        }
    }

    /// Whether a double keeps all of its digits: 15 always survive, in the range of normal numbers (IEEE 754).
    fn fits_a_double(&self) -> bool {
        let digits = self.digits.trim_end_matches('0');
        let magnitude = i64::try_from(self.digits.len()).unwrap_or(i64::MAX).saturating_sub(self.scale);
        digits.len() <= 15 && (-300..300).contains(&magnitude)
    }
}
