//! `calculate`: arithmetic for models that should not do it in their heads.
//!
//! fend evaluates numbers and units, exactly where that is possible, and reaches nothing outside of itself. What may take
//! long (`9^9^9`) is stopped by a clock that it looks at. It descends into expressions recursively, and a stack that
//! overflows would end the whole process: so expressions are short, cannot define functions (which could call
//! themselves), and are evaluated on a thread whose stack has room for the deepest expression of that length.

use std::time::{Duration, Instant};

use fend_core::{Context, Interrupt};

use crate::prelude::*;

/// Longer than any sum a person would write, shorter than a person would wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// Characters of an expression; the deepest nesting is as many parentheses.
const LONGEST: usize = 1_000;
/// Measured: the worst expression of that length needs less than a tenth of it. Only what is touched takes memory.
const STACK: usize = 256 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Arithmetic expression, for example `2 * (3 + 4) ^ 2`, `17% of 340` or `5 km / 20 minutes`.
    expression: String,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("calculate", calculate)
        .also_known_as(&["calculator", "calc", "math", "evaluate_expression"])
        .toolset("math")
        .emoji("🧮")
        .effect(Effect::None)
        .about("Evaluate an arithmetic expression exactly: + - * / ^ %, parentheses, functions such as sqrt, units.")
        .parallel()
        .headline(|args: &Args| args.expression.clone())
        .example(r#"{"expression": "1 + 2 * 3"}"#, gives(r#"{"result": 7}"#))
        .example(r#"{"expression": "2 * (3 + 4) ^ 2"}"#, gives(r#"{"result": 98}"#))
        .example(r#"{"expression": "0.1 + 0.2"}"#, gives(r#"{"result": 0.3}"#))
        .example(r#"{"expression": "1 / 3"}"#, gives(r#"{"result": 0.3333333333, "exact": false}"#))
        .example(r#"{"expression": "3 km + 200 m"}"#, gives(r#"{"result": "3.2 km"}"#))
        .example(r#"{"expression": "1 / 0"}"#, fails("division by zero"))
        .example(r#"{"expression": "9^9^9^9"}"#, fails("cannot evaluate"))
        .example(r#"{"expression": "(x: x x) (x: x x)"}"#, fails("cannot be defined"))
}

async fn calculate(args: Args, _cx: ToolCx) -> ToolResult {
    let expression = args.expression;
    let chars = expression.chars().count();
    if chars > LONGEST {
        let message = format!("calculate: the expression has {chars} characters, more than {LONGEST}");
        return Err(ToolError::tell(message));
    }
    if [":", "=>", "\\"].iter().any(|sign| expression.contains(sign)) {
        return Err(ToolError::tell(
            "calculate: `:`, `=>` and `\\` make functions of your own, which cannot be defined here; write a division as `/`",
        ));
    }
    let (send, receive) = tokio::sync::oneshot::channel();
    let evaluate = move || {
        let mut context = Context::new();
        context.disable_rng();
        let answer = fend_core::evaluate_with_interrupt(&expression, &mut context, &Until(Instant::now() + PATIENCE));
        // Nobody listens any more if the call was stopped.
        let _ = send.send(answer.map_err(|why| format!("cannot evaluate `{expression}`: {}", why.to_lowercase())));
    };
    let broken = |error: &dyn std::fmt::Display| ToolError::tell(format!("calculate: cannot evaluate: {error}"));
    std::thread::Builder::new().stack_size(STACK).spawn(evaluate).map_err(|error| broken(&error))?;
    let answer = receive.await.map_err(|error| broken(&error))?.map_err(ToolError::tell)?;
    let text = answer.get_main_result();
    let (value, exact) = match text.strip_prefix("approx. ") {
        Some(value) => (value, false),
        None => (text, true),
    };
    let mut result = json!({ "result": number_or_text(value) });
    if !exact {
        result["exact"] = Value::Bool(false);
    }
    Ok(ToolOutput::json(result).with_summary(format!("= {value}")))
}

/// A JSON number where JSON can hold the number, else the text (a unit, a very long integer).
fn number_or_text(value: &str) -> Value {
    match serde_json::from_str::<Value>(value) {
        Ok(Value::Number(number)) if number.to_string() == value => Value::Number(number),
        _ => Value::String(value.to_owned()),
    }
}

struct Until(Instant);

impl Interrupt for Until {
    fn should_interrupt(&self) -> bool {
        Instant::now() >= self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the stack that the tool gives it; an overflow would end the test run.
    fn evaluated(expression: String) {
        let evaluate = move || {
            let until = Until(Instant::now() + Duration::from_secs(20));
            let _ = fend_core::evaluate_with_interrupt(&expression, &mut Context::new(), &until);
        };
        std::thread::Builder::new().stack_size(STACK / 10).spawn(evaluate).unwrap().join().unwrap();
    }

    #[test]
    fn the_deepest_expressions_of_the_allowed_length_leave_room_on_the_stack() {
        let half = LONGEST / 2;
        for expression in [
            format!("{}1{}", "(".repeat(half), ")".repeat(half)),
            "(".repeat(LONGEST),
            "-".repeat(LONGEST),
            "1+".repeat(half),
            "1^".repeat(half),
            "sqrt ".repeat(LONGEST / 5),
            "1/".repeat(half),
            "!".repeat(LONGEST),
        ] {
            evaluated(expression);
        }
    }
}
