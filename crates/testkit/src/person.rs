//! A person who knows all answers beforehand and then leaves.

use std::collections::VecDeque;
use std::sync::Mutex;

use async_trait::async_trait;
use hermes_core::{Answer, Asker, CancellationToken, Question};

use crate::lock;

/// Answers questions from a list, whatever they are, and keeps them. When the list is used up, nobody answers.
#[derive(Debug, Default)]
pub struct ScriptedPerson {
    answers: Mutex<VecDeque<Answer>>,
    questions: Mutex<Vec<Question>>,
}

impl ScriptedPerson {
    /// A person with these answers, given in this order.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), questions: Mutex::default() }
    }

    /// What was asked, in order.
    pub fn questions(&self) -> Vec<Question> {
        lock(&self.questions).clone()
    }
}

#[async_trait]
impl Asker for ScriptedPerson {
    async fn ask(&self, question: Question, _cancel: &CancellationToken) -> Answer {
        lock(&self.questions).push(question);
        lock(&self.answers).pop_front().unwrap_or(Answer::None)
    }
}
