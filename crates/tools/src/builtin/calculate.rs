//! `calculate`: arithmetic for models that should not do it in their heads.
//!
//! The only idea here: fend evaluates numbers and units, exactly where that is possible, and has nothing else to offer,
//! so there is nothing to sandbox. What may take long (`9^9^9`) is stopped by a clock that fend looks at.

use std::time::{Duration, Instant};

use fend_core::{Context, Interrupt};

use crate::prelude::*;

/// Longer than any sum a person would write, shorter than a person would wait.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Arithmetic expression, for example `2 * (3 + 4) ^ 2`, `17% of 340` or `5 km / 20 minutes`.
    expression: String,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("calculate", calculate)
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
}

async fn calculate(args: Args, _cx: ToolCx) -> ToolResult {
    let expression = args.expression;
    let evaluated = tokio::task::spawn_blocking(move || {
        let mut context = Context::new();
        context.disable_rng();
        let answer = fend_core::evaluate_with_interrupt(&expression, &mut context, &Until(Instant::now() + PATIENCE));
        answer.map_err(|why| format!("cannot evaluate `{expression}`: {}", why.to_lowercase()))
    });
    let answer = evaluated.await.map_err(|error| ToolError::tell(format!("cannot evaluate: {error}")))?;
    let answer = answer.map_err(ToolError::tell)?;
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
