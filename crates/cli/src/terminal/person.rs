//! The person at the terminal, and the one in a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hermes_core::{Answer, Approval, Asker, CancellationToken, Question};
use nix::sys::termios::{FlushArg, tcflush};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::answer;
use super::screen::Screen;
use super::text::{folded, one_line, visible, wrapped};
use crate::world::World;

/// Lines of an explanation that are shown without being asked for.
const SHORT: usize = 20;

/// Asks at the terminal, one question at a time.
pub(crate) struct TerminalPerson {
    screen: Arc<Screen>,
    shown_home: std::path::PathBuf,
    one_at_a_time: tokio::sync::Mutex<()>,
}

/// Gives prepared answers, and shows the questions and answers so that a reader can follow.
pub(crate) struct ScriptedPerson {
    screen: Arc<Screen>,
    shown_home: std::path::PathBuf,
    answers: Mutex<VecDeque<String>>,
}

impl TerminalPerson {
    pub(crate) fn new(screen: Arc<Screen>, world: &World) -> Arc<Self> {
        Arc::new(Self { screen, shown_home: world.user_home.clone(), one_at_a_time: tokio::sync::Mutex::default() })
    }
}

impl ScriptedPerson {
    pub(crate) fn new(screen: Arc<Screen>, world: &World, answers: &[String]) -> Arc<Self> {
        let answers = Mutex::new(answers.iter().cloned().collect());
        Arc::new(Self { screen, shown_home: world.user_home.clone(), answers })
    }
}

#[async_trait]
impl Asker for TerminalPerson {
    async fn ask(&self, question: Question, cancel: &CancellationToken) -> Answer {
        let _turn = self.one_at_a_time.lock().await;
        if cancel.is_cancelled() {
            // The question before this one stopped the turn.
            return Answer::None;
        }
        let waited_for = self.screen.pause();
        self.screen.say(&shown(&self.screen, &self.shown_home, &question));
        let answer = self.answer(&question, cancel).await;
        self.screen.resume(waited_for);
        answer
    }
}

impl TerminalPerson {
    async fn answer(&self, question: &Question, cancel: &CancellationToken) -> Answer {
        loop {
            let prompt = prompt(question, self.screen.columns());
            // What was typed before the question could be read is no answer to it.
            let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
            let typed = if matches!(question, Question::Approval { .. }) {
                self.screen.say(&prompt);
                tokio::select! {
                    typed = answer::line() => typed.ok().flatten(),
                    () = cancel.cancelled() => None,
                }
            } else {
                let typing = tokio::task::spawn_blocking(move || DefaultEditor::new()?.readline(&prompt));
                let typed = tokio::select! {
                    typed = typing => typed,
                    () = cancel.cancelled() => return Answer::None,
                };
                if let Ok(Err(ReadlineError::Interrupted)) = typed {
                    cancel.cancel();
                }
                typed.ok().and_then(Result::ok)
            };
            let Some(typed) = typed else { return Answer::None };
            match understood(question, &typed) {
                Some(answer) => return answer,
                None if matches!(typed.trim(), "v" | "view") => self.screen.say(&all_of_it(&self.screen, question)),
                None => self.screen.say(match question {
                    Question::Approval { lasting: true, .. } => "  Please type o, s, a or d, then Enter.\n",
                    Question::Approval { .. } => "  Please type o, s or d, then Enter.\n",
                    Question::Clarify { .. } => "  Please type one of the numbers, or an answer in your own words.\n",
                }),
            }
        }
    }
}

#[async_trait]
impl Asker for ScriptedPerson {
    async fn ask(&self, question: Question, _: &CancellationToken) -> Answer {
        let answer = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let waited_for = self.screen.pause();
        let shown = shown(&self.screen, &self.shown_home, &question);
        let typed = answer.as_deref().map_or_else(|| "(no answer is left in the script)".into(), visible);
        self.screen
            .say(&format!("{shown}{}{typed}   ← answered by the script\n", prompt(&question, self.screen.columns())));
        self.screen.resume(waited_for);
        answer.and_then(|answer| understood(&question, &answer)).unwrap_or(Answer::None)
    }
}

/// The question as it stands on the screen.
fn shown(screen: &Screen, home: &std::path::Path, question: &Question) -> String {
    let columns = screen.columns();
    match question {
        Question::Approval { tool, cwd, subject, explain, .. } => {
            let place = match cwd.strip_prefix(home) {
                Ok(rest) if rest.as_os_str().is_empty() => "~".into(),
                Ok(rest) => format!("~/{}", rest.display()),
                Err(_) => cwd.display().to_string(),
            };
            let mark = screen.styled("33", "⚠");
            let mut text = format!("\n  {mark}  The agent wants to use {tool}, in {}:\n\n", one_line(&place, columns));
            // Nothing of what will run is left out or reworded here.
            for line in visible(subject).lines() {
                for (i, piece) in folded(line, columns - 6).iter().enumerate() {
                    // A line that only the screen breaks is told from one that the command breaks.
                    let margin = if i == 0 { "     " } else { "   ↪ " };
                    text += &format!("{margin}{}\n", screen.styled("1", piece));
                }
            }
            text.push('\n');
            let explained = explained(explain, columns);
            for line in explained.iter().take(SHORT) {
                text += &format!("     {line}\n");
            }
            if explained.len() > SHORT {
                text += &format!("     … {} more lines: [v]iew\n", explained.len() - SHORT);
            }
            if !explain.is_empty() {
                text.push('\n');
            }
            text
        }
        Question::Clarify { question, choices } => {
            let question = wrapped(&visible(question), columns, 5);
            let mut text = format!("\n  {}  {}\n\n", screen.styled("36", "?"), question.trim_start());
            for (i, choice) in choices.iter().enumerate() {
                text += &format!("     {}. {}\n", i + 1, wrapped(&visible(choice), columns, 8).trim_start());
            }
            text
        }
    }
}

/// What a question explains, every character of it, in lines that fit.
fn explained(explain: &[String], columns: usize) -> Vec<String> {
    explain.iter().flat_map(|line| folded(&visible(line), columns - 6)).collect()
}

/// Everything that a question explains, for somebody who asked to see it.
fn all_of_it(screen: &Screen, question: &Question) -> String {
    let Question::Approval { explain, .. } = question else { return String::new() };
    let lines = explained(explain, screen.columns());
    lines.iter().map(|line| format!("     {line}\n")).collect::<Vec<_>>().concat() + "\n"
}

fn prompt(question: &Question, columns: usize) -> String {
    match question {
        Question::Approval { scope, lasting, .. } => {
            let always = if *lasting { "  [a]lways" } else { "" };
            // What a yes for longer would cover stands on a line of its own where it is long.
            let room = columns.saturating_sub("  [o]nce  [s]ession:   [a]lways  [d]eny › o ".len());
            if scope.chars().count() <= room {
                format!("  [o]nce  [s]ession: {scope}{always}  [d]eny › ")
            } else {
                let scope = wrapped(scope, columns, 5);
                format!(
                    "  For this session{} would cover: {}\n  [o]nce  [s]ession{always}  [d]eny › ",
                    if *lasting { " or always" } else { "" },
                    scope.trim_start()
                )
            }
        }
        Question::Clarify { choices, .. } if choices.is_empty() => "  › ".into(),
        Question::Clarify { .. } => "  number or your own words › ".into(),
    }
}

/// What was typed, if it answers the question. An approval is never read out of something unclear.
fn understood(question: &Question, typed: &str) -> Option<Answer> {
    let typed = typed.trim();
    match question {
        Question::Approval { lasting, .. } => match typed.to_lowercase().as_str() {
            "o" | "once" => Some(Answer::Approval(Approval::Once)),
            "s" | "session" => Some(Answer::Approval(Approval::Session)),
            "a" | "always" if *lasting => Some(Answer::Approval(Approval::Always)),
            "d" | "deny" | "n" | "no" => Some(Answer::Approval(Approval::Deny)),
            _ => None,
        },
        Question::Clarify { .. } if typed.is_empty() => None,
        Question::Clarify { choices, .. } => match typed.parse::<usize>() {
            // A number that is not there was a slip of the finger, not an answer.
            Ok(n) if !choices.is_empty() => choices.get(n.checked_sub(1)?).cloned().map(Answer::Text),
            _ => Some(Answer::Text(typed.to_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval() -> Question {
        Question::Approval {
            id: "1".into(),
            tool: "terminal".into(),
            cwd: "/".into(),
            subject: "ls".into(),
            explain: Vec::new(),
            scope: String::new(),
            lasting: false,
            expires: std::time::Duration::from_secs(60),
        }
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        assert_eq!(understood(&approval(), " O "), Some(Answer::Approval(Approval::Once)));
        assert_eq!(understood(&approval(), "deny"), Some(Answer::Approval(Approval::Deny)));
        for unclear in ["", "y", "yes", "ok", "sure", "yes please", "oo", "1"] {
            assert_eq!(understood(&approval(), unclear), None, "{unclear:?}");
        }
    }

    #[test]
    fn a_number_chooses_and_anything_else_is_an_answer() {
        let question = Question::Clarify { question: "q".into(), choices: vec!["a".into(), "b".into()] };
        assert_eq!(understood(&question, "2"), Some(Answer::Text("b".into())));
        assert_eq!((understood(&question, "7"), understood(&question, "0")), (None, None));
        assert_eq!(understood(&question, "neither"), Some(Answer::Text("neither".into())));
        assert_eq!(understood(&question, " "), None);
    }
}
