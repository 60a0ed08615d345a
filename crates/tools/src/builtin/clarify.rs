//! `clarify`: a question to the person, when guessing would be worse than asking.
//!
//! The tool knows nothing of screens: it hands the question to whoever can ask. Where nobody can, the model is told to
//! decide by itself, which is an answer and not a hang.

use std::time::Duration;

use hermes_core::{Answer, Question};

use crate::prelude::*;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The question, in one or two sentences.
    question: String,
    /// Up to four answers to choose from; leave out for an open question. The user can always answer freely.
    #[schemars(length(max = 4))]
    choices: Option<Vec<String>>,
}

pub(super) fn tool() -> impl Tool {
    Builtin::new("clarify", clarify)
        .also_known_as(&["ask", "ask_user", "ask_user_question", "ask_followup_question", "question", "request_user_input"])
        .toolset("clarify")
        .emoji("❓")
        .effect(Effect::Converse)
        // A person may be at lunch.
        .deadline(Duration::from_secs(24 * 60 * 60))
        .about(
            "Ask the user one question and wait for the answer. Only for a decision that you cannot make or look up.",
        )
        .headline(|args: &Args| args.question.clone())
        .example(r#"{"question": " "}"#, fails("question is empty"))
        .example(r#"{"question": "Which port?", "choices": ["80", "8080"]}"#, fails("nobody is here to answer"))
}

async fn clarify(args: Args, cx: ToolCx) -> ToolResult {
    let question = args.question.trim().to_owned();
    if question.is_empty() {
        return Err(ToolError::tell("clarify: the question is empty; say what you want to know"));
    }
    let choices: Vec<String> = args
        .choices
        .unwrap_or_default()
        .iter()
        .map(|choice| choice.trim().to_owned())
        .filter(|c| !c.is_empty())
        .collect();
    let nobody = || ToolError::tell("clarify: nobody is here to answer. Decide by yourself and say what you decided.");
    let asker = cx.asker.clone().ok_or_else(nobody)?;
    let asked = Question::Clarify { question: question.clone(), choices: choices.clone() };
    match asker.ask(asked, &cx.cancel).await {
        Answer::Text(text) => {
            let offered = if choices.is_empty() { Value::Null } else { json!(choices) };
            let summary = text.clone();
            let result = json!({ "question": question, "choices_offered": offered, "user_response": text });
            Ok(ToolOutput::json(result).with_summary(summary))
        }
        Answer::Approval(_) | Answer::None => Err(nobody()),
    }
}
