//! Integer expressions of the shell: `$((…))`, `((…))`, array indices, substring offsets.

/// A number as bash writes it: decimal, `0x…`, `0…` or `base#…`.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = if let Some((base, digits)) = digits.split_once('#') {
        i64::from_str_radix(digits, base.parse().ok().filter(|base| (2..=36).contains(base))?).ok()?
    } else if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        i64::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        i64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    Some(sign * value)
}

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
    let mut reader =
        Reader { bytes: expression.as_bytes(), source: expression, at: 0, depth: 0, lookup, assigned: Vec::new() };
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
            let yes = self.ternary();
            let no = if self.eat(":") { self.ternary() } else { None };
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
            let right = self.binary(level + 1);
            left = left.zip(right).and_then(|(a, b)| apply(operator, a, b));
        }
    }

    fn power(&mut self) -> Option<i64> {
        let base = self.unary();
        if self.eat("**") {
            let exponent = self.power();
            return base.zip(exponent).and_then(|(base, exponent)| base.checked_pow(u32::try_from(exponent).ok()?));
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
        let text = (self.lookup)(name)?;
        if text.is_empty() { Some(0) } else { integer(&text) }
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
            let number = integer(&rest[..length]);
            self.at += length.max(usize::from(!rest.is_empty() && length == 0 && rest.is_ascii()));
            return number;
        };
        for operator in ["+=", "-=", "*=", "/=", "%=", "="] {
            self.blanks();
            let rest = &self.bytes[self.at..];
            if rest.starts_with(operator.as_bytes()) && !rest.starts_with(b"==") {
                self.at += operator.len();
                let right = self.ternary();
                let value = if operator == "=" {
                    right
                } else {
                    self.value_of(&name).zip(right).and_then(|(a, b)| apply(&operator[..1], a, b))
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
        if self.eat("[") {
            // An element: its value is not followed.
            let _ = self.comma();
            let _ = self.eat("]");
            return None;
        }
        self.value_of(&name)
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
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
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
