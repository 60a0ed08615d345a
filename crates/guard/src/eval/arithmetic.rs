//! Integer expressions of the shell: `$((…))`, `((…))`, array indices, substring offsets.

/// A number as bash writes it: decimal, `0x…`, `0…` or `base#…`.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = if let Some((base, digits)) = digits.split_once('#') {
        in_base(base.parse().ok().filter(|base| (2..=64).contains(base))?, digits)?
    } else if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        i64::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(sign * value)
}

/// Digits past 9 are letters, small ones first; up to base 36 their size does not matter. Then follow `@` and `_`.
fn in_base(base: i64, digits: &str) -> Option<i64> {
    let mut value = 0_i64;
    for digit in digits.bytes() {
        let worth = i64::from(match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'z' => digit - b'a' + 10,
            b'A'..=b'Z' if base <= 36 => digit - b'A' + 10,
            b'A'..=b'Z' => digit - b'A' + 36,
            b'@' => 62,
            b'_' => 63,
            _ => return None,
        });
        value = value.wrapping_mul(base).wrapping_add(Some(worth).filter(|worth| *worth < base)?);
    }
    Some(value)
}

/// How many values of variables one expression may ask for.
const MOST_VALUES: usize = 500;

/// What an expression comes to, and which variables it assigns.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) value: Option<i64>,
    pub(crate) assigned: Vec<(String, Option<i64>)>,
}

/// Evaluates `expression`; `lookup` gives the text of a variable. Unknown is `None`, never a guess.
pub(crate) fn evaluate(expression: &str, lookup: &mut dyn FnMut(&str) -> Option<String>) -> Outcome {
    if expression.len() > 2_000 || !crate::text::is_literal(expression) {
        return Outcome::default();
    }
    if expression.trim().is_empty() {
        return Outcome { value: Some(0), assigned: Vec::new() };
    }
    let mut reader = Reader {
        bytes: expression.as_bytes(),
        source: expression,
        at: 0,
        depth: 0,
        fuel: MOST_VALUES,
        lookup,
        assigned: Vec::new(),
    };
    let value = reader.comma();
    reader.blanks();
    let value = if reader.at == reader.bytes.len() { value } else { None };
    Outcome { value, assigned: reader.assigned }
}

struct Reader<'a> {
    bytes: &'a [u8],
    source: &'a str,
    at: usize,
    depth: usize,
    /// How many more values may be asked for: a value is an expression again, and may name many others.
    fuel: usize,
    lookup: &'a mut dyn FnMut(&str) -> Option<String>,
    assigned: Vec<(String, Option<i64>)>,
}

/// Binary operators by strength, weakest first; longer ones before their prefixes.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Reader<'_> {
    fn blanks(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, text: &str) -> bool {
        self.blanks();
        let found = self.bytes[self.at..].starts_with(text.as_bytes());
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn comma(&mut self) -> Option<i64> {
        let mut value = self.ternary();
        while self.eat(",") {
            value = self.ternary();
        }
        value
    }

    fn ternary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > 40 {
            return None;
        }
        let condition = self.binary(0);
        let value = if self.eat("?") {
            let (before, runs) = (self.assigned.len(), condition);
            let yes = self.ternary();
            if runs == Some(0) {
                self.assigned.truncate(before);
            }
            let before = self.assigned.len();
            let no = if self.eat(":") { self.ternary() } else { None };
            if runs.is_some_and(|value| value != 0) {
                self.assigned.truncate(before);
            }
            condition.and_then(|condition| if condition != 0 { yes } else { no })
        } else {
            condition
        };
        self.depth -= 1;
        value
    }

    fn binary(&mut self, level: usize) -> Option<i64> {
        let Some(operators) = LEVELS.get(level) else { return self.power() };
        let mut left = self.binary(level + 1);
        loop {
            self.blanks();
            let rest = &self.bytes[self.at..];
            let Some(operator) = operators.iter().find(|operator| rest.starts_with(operator.as_bytes())) else {
                return left;
            };
            // `|` is not the first half of `||`, and `*=` assigns.
            let next = rest.get(operator.len());
            if matches!(
                (*operator, next),
                ("|", Some(b'|')) | ("&", Some(b'&')) | ("<", Some(b'<')) | (">", Some(b'>'))
            ) || (*operator == "*" && next == Some(&b'*'))
            {
                return left;
            }
            self.at += operator.len();
            let before = self.assigned.len();
            let right = self.binary(level + 1);
            // The right side of `0 && …` and `1 || …` is not looked at.
            if let Some(value) = left
                && (*operator == "&&" && value == 0 || *operator == "||" && value != 0)
            {
                self.assigned.truncate(before);
                left = Some(i64::from(value != 0));
                continue;
            }
            left = left.zip(right).and_then(|(a, b)| apply(operator, a, b));
        }
    }

    fn power(&mut self) -> Option<i64> {
        let base = self.unary();
        if self.eat("**") {
            let exponent = self.power();
            return base
                .zip(exponent)
                .and_then(|(base, exponent)| Some(base.wrapping_pow(u32::try_from(exponent).ok()?)));
        }
        base
    }

    fn unary(&mut self) -> Option<i64> {
        self.depth += 1;
        if self.depth > 40 {
            return None;
        }
        let value = if self.eat("++") {
            self.step(1, true)
        } else if self.eat("--") {
            self.step(-1, true)
        } else if self.eat("-") {
            self.unary().and_then(i64::checked_neg)
        } else if self.eat("+") {
            self.unary()
        } else if self.eat("!") {
            self.unary().map(|value| i64::from(value == 0))
        } else if self.eat("~") {
            self.unary().map(|value| !value)
        } else {
            self.primary()
        };
        self.depth -= 1;
        value
    }

    fn name(&mut self) -> Option<String> {
        self.blanks();
        let rest = &self.source[self.at..];
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        (length > 0 && !rest.as_bytes()[0].is_ascii_digit()).then(|| {
            self.at += length;
            rest[..length].to_owned()
        })
    }

    fn value_of(&mut self, name: &str) -> Option<i64> {
        if let Some((_, value)) = self.assigned.iter().rev().find(|(assigned, _)| assigned == name) {
            return *value;
        }
        self.fuel = self.fuel.checked_sub(1)?;
        let text = (self.lookup)(name)?;
        if text.trim().is_empty() {
            return Some(0);
        }
        if let Some(number) = integer(&text) {
            return Some(number);
        }
        // The text of a variable is an expression again.
        if self.depth >= 8 || text.len() > 200 || !crate::text::is_literal(&text) {
            return None;
        }
        let mut reader = Reader {
            bytes: text.as_bytes(),
            source: &text,
            at: 0,
            depth: self.depth + 2,
            fuel: self.fuel,
            lookup: &mut *self.lookup,
            assigned: Vec::new(),
        };
        let value = reader.comma();
        reader.blanks();
        let whole = reader.at == text.len();
        let assigned = std::mem::take(&mut reader.assigned);
        self.fuel = reader.fuel;
        self.assigned.extend(assigned);
        value.filter(|_| whole)
    }

    fn step(&mut self, by: i64, before: bool) -> Option<i64> {
        let name = self.name()?;
        let old = self.value_of(&name);
        let new = old.and_then(|old| old.checked_add(by));
        self.assigned.push((name, new));
        if before { new } else { old }
    }

    fn primary(&mut self) -> Option<i64> {
        self.blanks();
        if self.eat("(") {
            let value = self.comma();
            return if self.eat(")") { value } else { None };
        }
        let Some(name) = self.name() else {
            let rest = &self.source[self.at..];
            let length =
                rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'#' | b'_' | b'@')).count();
            let number = integer(&rest[..length]).filter(|_| rest.starts_with(|c: char| c.is_ascii_digit()));
            self.at += length.max(usize::from(!rest.is_empty() && length == 0 && rest.is_ascii()));
            return number;
        };
        let name = self.element(name)?;
        for operator in ["<<=", ">>=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "="] {
            self.blanks();
            let rest = &self.bytes[self.at..];
            if rest.starts_with(operator.as_bytes()) && !rest.starts_with(b"==") {
                self.at += operator.len();
                let right = self.ternary();
                let value = if operator == "=" {
                    right
                } else {
                    self.value_of(&name).zip(right).and_then(|(a, b)| apply(&operator[..operator.len() - 1], a, b))
                };
                self.assigned.push((name, value));
                return value;
            }
        }
        if self.eat("++") || self.eat("--") {
            let by = if self.bytes[self.at - 1] == b'+' { 1 } else { -1 };
            let old = self.value_of(&name);
            self.assigned.push((name, old.and_then(|old| old.checked_add(by))));
            return old;
        }
        self.value_of(&name)
    }

    /// The name with the index that follows it, if one does; nothing if the index is unknown.
    fn element(&mut self, name: String) -> Option<String> {
        if self.bytes.get(self.at) != Some(&b'[') {
            return Some(name);
        }
        self.at += 1;
        let index = self.comma();
        let closed = self.eat("]");
        index.filter(|_| closed).map(|index| format!("{name}[{index}]"))
    }
}

fn apply(operator: &str, a: i64, b: i64) -> Option<i64> {
    match operator {
        "||" => Some(i64::from(a != 0 || b != 0)),
        "&&" => Some(i64::from(a != 0 && b != 0)),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "&" => Some(a & b),
        "==" => Some(i64::from(a == b)),
        "!=" => Some(i64::from(a != b)),
        "<=" => Some(i64::from(a <= b)),
        ">=" => Some(i64::from(a >= b)),
        "<" => Some(i64::from(a < b)),
        ">" => Some(i64::from(a > b)),
        "<<" => a.checked_shl(u32::try_from(b).ok()?),
        ">>" => a.checked_shr(u32::try_from(b).ok()?),
        "+" => Some(a.wrapping_add(b)),
        "-" => Some(a.wrapping_sub(b)),
        "*" => Some(a.wrapping_mul(b)),
        "/" => a.checked_div(b),
        "%" => a.checked_rem(b),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_come_to_what_bash_says() {
        let value = |text: &str| evaluate(text, &mut |name| (name == "x").then(|| "5".to_owned())).value;
        for (text, expected) in [
            ("1+2*3", Some(7)),
            ("(1+2)*3", Some(9)),
            ("2**3**2", Some(512)),
            ("x>3?10:20", Some(10)),
            ("0x2f", Some(47)),
            ("057", Some(47)),
            ("16#2f", Some(47)),
            ("-x + 7 % 4", Some(-2)),
            ("1<<3|1", Some(9)),
            ("x++ + x", Some(11)),
            ("!0 && ~0", Some(1)),
            ("y", None),
            ("1/0", None),
            ("1 2", None),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
    }
}
