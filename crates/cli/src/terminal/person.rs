//! The person at the terminal, and the one in a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hermes_core::{Answer, Approval, Asker, CancellationToken, PasswordWish, Question, grouped, plural};
use nix::sys::termios::{FlushArg, tcflush};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

use super::answer;
use super::screen::Screen;
use super::text::{duration, folded, one_line, visible, width, wrapped};
use crate::world::World;

/// Lines of an explanation that are shown without being asked for.
const SHORT: usize = 20;
/// Lines of a command, or of a list of paths, that are shown without being asked for: so many from its start and from its
/// end. The question has to stay on the screen together with its answers.
const HEAD: usize = 12;
const TAIL: usize = 4;

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
        // However this ends, the screen goes on; the question may be taken back while it waits.
        let mut asking =
            Asking { screen: &self.screen, waited_for: self.screen.pause(), unanswered: Some(&question), cancel };
        self.screen.say(&shown(&self.screen, &self.shown_home, &question));
        let answer = self.answer(&question, cancel).await;
        asking.unanswered = None;
        answer
    }

    async fn password(&self, wish: &PasswordWish, cancel: &CancellationToken) -> Option<SecretString> {
        let _turn = self.one_at_a_time.lock().await;
        let _asking = Asking { screen: &self.screen, waited_for: self.screen.pause(), unanswered: None, cancel };
        self.screen.say(&password_wish(&self.screen, wish));
        let typed = tokio::select! {
            typed = answer::unseen_line() => typed.ok().flatten(),
            () = cancel.cancelled() => None,
        };
        typed.filter(|password| !password.expose_secret().is_empty())
    }
}

/// The question for a password.
fn password_wish(screen: &Screen, wish: &PasswordWish) -> String {
    let mark = screen.styled("33", "⚠");
    let again = if wish.refused { "That was not the right password. " } else { "" };
    let mut text = format!("\n  {mark}  {again}sudo wants your password, for:\n\n");
    text += &Preview::of(&wish.command, screen.columns()).shown(screen);
    let promise = "Only sudo gets it: not the model, not the command. Enter alone gives none.";
    let prompt = visible(wish.prompt.trim().trim_end_matches(':'));
    let is_usual = prompt.is_empty() || prompt.to_lowercase().contains("password");
    let label = if is_usual { "password".into() } else { one_line(&prompt, screen.columns().saturating_sub(20)) };
    text + &format!("\n     {}\n  {label} › ", wrapped(promise, screen.columns(), 5).trim_start())
}

/// A question on the screen.
struct Asking<'a> {
    screen: &'a Screen,
    waited_for: Option<String>,
    /// The question, until there is an answer.
    unanswered: Option<&'a Question>,
    cancel: &'a CancellationToken,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(question) = self.unanswered {
            // Half a line that was typed before is no part of the next one.
            let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
            self.screen.say(&match question {
                Question::Approval { expires, .. } if !self.cancel.is_cancelled() => {
                    format!("\n  No answer within {}, so it does not run.\n", duration(*expires))
                }
                Question::Rehearsed { expires, .. } if !self.cancel.is_cancelled() => {
                    format!("\n  No answer within {}, so it is thrown away.\n", duration(*expires))
                }
                _ => "\n".into(),
            });
        }
        self.screen.resume(self.waited_for.take());
    }
}

impl TerminalPerson {
    async fn answer(&self, question: &Question, cancel: &CancellationToken) -> Answer {
        loop {
            let prompt = prompt(question, self.screen.columns());
            // What was typed before the question could be read is no answer to it.
            let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
            let typed = if matches!(question, Question::Approval { .. } | Question::Rehearsed { .. }) {
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
                None => self.screen.say(&what_to_type(question)),
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

fn what_to_type(question: &Question) -> String {
    let keys = match question {
        Question::Clarify { .. } => {
            return "  Please type one of the numbers, or an answer in your own words.\n".into();
        }
        Question::Rehearsed { .. } => vec!["c", "v", "t"],
        Question::Approval { scope, lasting, rehearsable, .. } => {
            let kinds = [(true, "o"), (!scope.is_empty(), "s"), (*lasting, "a"), (*rehearsable, "r"), (true, "d")];
            kinds.into_iter().filter(|(is_there, _)| *is_there).map(|(_, key)| key).collect()
        }
    };
    let (last, others) = keys.split_last().unwrap_or((&"d", &[]));
    format!("  Please type {} or {last}, then Enter.\n", others.join(", "))
}

/// A place as a person reads it.
fn place(cwd: &std::path::Path, home: &std::path::Path) -> String {
    match cwd.strip_prefix(home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".into(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => cwd.display().to_string(),
    }
}

/// The question as it stands on the screen.
fn shown(screen: &Screen, home: &std::path::Path, question: &Question) -> String {
    let columns = screen.columns();
    match question {
        Question::Approval { tool, cwd, subject, explain, expires, .. } => {
            let mark = screen.styled("33", "⚠");
            let place = one_line(&place(cwd, home), columns);
            let mut text = format!(
                "\n  {mark}  The agent wants to use {tool}, in {place} ({} to answer):\n\n",
                duration(*expires)
            );
            text += &Preview::of(subject, columns).shown(screen);
            text.push('\n');
            let explained = explained(explain, columns);
            for line in explained.iter().take(SHORT) {
                text += &format!("     {line}\n");
            }
            if explained.len() > SHORT {
                text += &format!("   … {} more lines: v shows them\n", explained.len() - SHORT);
            }
            if !explain.is_empty() {
                text.push('\n');
            }
            text
        }
        Question::Rehearsed { cwd, command, ended, lines, expires, .. } => {
            let mark = screen.styled("36", "▶");
            let facts = format!("{ended} · no network · in {} · {} to answer", place(cwd, home), duration(*expires));
            let (command, line) = (command.trim(), visible(command.trim()));
            let mut text = if line.contains('\n') || width(&line) > columns.saturating_sub(20) {
                format!("\n  {mark} rehearsed\n\n{}\n", Preview::of(command, columns).shown(screen))
            } else {
                format!("\n  {mark} rehearsed   {line}\n")
            };
            text += &format!("{}\n\n", wrapped(&visible(&facts), columns, 5));
            for line in lines {
                text += &format!("     {}\n", visible(line));
            }
            text.push('\n');
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

/// What will run as it stands in a question: word for word, and where it is too long, its start and its end around a line
/// that says what is missing.
struct Preview {
    lines: Vec<Line>,
}

enum Line {
    Of { piece: String, continued: bool },
    Gap(String),
}

impl Line {
    fn shown(&self, screen: &Screen) -> String {
        match self {
            // A line that only the screen breaks is told from one that the command breaks.
            Line::Of { piece, continued } => {
                let margin = if *continued { "   ↪ " } else { "     " };
                format!("{margin}{}", screen.styled("1", piece))
            }
            Line::Gap(what) => wrapped(what, screen.columns(), 3),
        }
    }
}

impl Preview {
    fn of(subject: &str, columns: usize) -> Self {
        let mut lines = pieces(subject, columns);
        if lines.len() > HEAD + TAIL + 1 {
            let total = subject.lines().count();
            let left_out = lines.len() - HEAD - TAIL;
            let digest = format!("{:x}", Sha256::digest(subject));
            let gap = format!(
                "… {left_out} lines are left out here; v shows all of it: {}, {}, SHA-256 {}…",
                plural(total, "line"),
                bytes(subject.len()),
                &digest[..16]
            );
            lines.splice(HEAD..HEAD + left_out, [Line::Gap(gap)]);
        }
        Self { lines }
    }

    fn is_whole(&self) -> bool {
        self.lines.iter().all(|line| matches!(line, Line::Of { .. }))
    }

    fn shown(&self, screen: &Screen) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| line.shown(screen)).collect();
        lines.join("\n") + "\n"
    }
}

/// `subject`, every character of it, in lines that fit.
fn pieces(subject: &str, columns: usize) -> Vec<Line> {
    let folded = |line: &str| {
        let pieces = folded(line, columns - 6).into_iter().enumerate();
        pieces.map(|(i, piece)| Line::Of { piece, continued: i > 0 }).collect::<Vec<_>>()
    };
    visible(subject).lines().flat_map(folded).collect()
}

fn bytes(len: usize) -> String {
    format!("{} bytes", grouped(len as u64))
}

/// What a question explains, every character of it, in lines that fit.
fn explained(explain: &[String], columns: usize) -> Vec<String> {
    let line = |line: &String| wrapped_or_folded(&visible(line), columns);
    explain.iter().flat_map(line).collect()
}

/// A sentence breaks between its words; anything else, such as a line of a file, wherever it happens to be.
fn wrapped_or_folded(line: &str, columns: usize) -> Vec<String> {
    let is_sentence = line.split_whitespace().eq(line.split(' ')) && !line.contains('\t');
    if is_sentence {
        wrapped(line, columns - 1, 5).lines().map(|line| line.trim_start().to_owned()).collect()
    } else {
        line.lines().flat_map(|line| folded(line, columns - 6)).collect()
    }
}

/// Everything that would run and everything that is explained, for somebody who asked to see it.
fn all_of_it(screen: &Screen, question: &Question) -> String {
    let columns = screen.columns();
    let (subject, explain) = match question {
        Question::Approval { subject, explain, .. } => (subject, explain),
        Question::Rehearsed { command, diff, .. } => {
            let command = command.trim();
            let all =
                if Preview::of(command, columns).is_whole() { String::new() } else { word_for_word(command, columns) };
            return format!("{all}\n{}\n", visible(diff));
        }
        Question::Clarify { .. } => return String::new(),
    };
    let mut text = word_for_word(subject, columns);
    text.push('\n');
    for line in explained(explain, columns) {
        text += &format!("     {line}\n");
    }
    text + "\n"
}

fn word_for_word(subject: &str, columns: usize) -> String {
    let mut text = String::from("\n");
    for line in pieces(subject, columns) {
        if let Line::Of { piece, continued } = line {
            text += &format!("{}{piece}\n", if continued { "   ↪ " } else { "     " });
        }
    }
    text
}

fn prompt(question: &Question, columns: usize) -> String {
    match question {
        Question::Rehearsed { .. } => "  [c]ommit  [v]iew diff  [t]hrow away › ".into(),
        Question::Approval { scope, rehearsable, .. } if scope.is_empty() => {
            format!("  [o]nce{}  [d]eny › ", if *rehearsable { "  [r]ehearse first" } else { "" })
        }
        Question::Approval { scope, lasting, rehearsable, .. } => {
            let mut always = String::from(if *lasting { "  [a]lways" } else { "" });
            always += if *rehearsable { "  [r]ehearse first" } else { "" };
            // What a yes for longer would cover stands on a line of its own where it is long.
            let room = columns.saturating_sub(width("  [o]nce  [s]ession:   [d]eny › o ") + width(&always));
            let scope = visible(scope);
            if width(&scope) <= room && !scope.contains('\n') {
                format!("  [o]nce  [s]ession: {scope}{always}  [d]eny › ")
            } else {
                let covers = wrapped(&format!("A longer yes would cover: {scope}"), columns, 5);
                format!("  {}\n  [o]nce  [s]ession{always}  [d]eny › ", covers.trim_start())
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
        Question::Rehearsed { .. } => match typed.to_lowercase().as_str() {
            "c" | "commit" => Some(Answer::Approval(Approval::Once)),
            "t" | "throw away" | "throw" | "d" | "n" | "no" => Some(Answer::Approval(Approval::Deny)),
            _ => None,
        },
        Question::Approval { lasting, scope, rehearsable, .. } => match typed.to_lowercase().as_str() {
            "r" | "rehearse" if *rehearsable => Some(Answer::Approval(Approval::Rehearse)),
            "o" | "once" => Some(Answer::Approval(Approval::Once)),
            "s" | "session" if !scope.is_empty() => Some(Answer::Approval(Approval::Session)),
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
    use super::super::screen::{Abilities, Stream};
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
            rehearsable: false,
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
    fn what_can_be_allowed_only_once_is_allowed_once() {
        assert_eq!(understood(&approval(), "s"), None);
        assert_eq!(understood(&approval(), "a"), None);
        assert_eq!(prompt(&approval(), 80), "  [o]nce  [d]eny › ");
    }

    #[test]
    fn a_long_command_is_cut_in_the_middle_and_says_so() {
        let subject = (1..=400).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let shown: Vec<String> = Preview::of(&subject, 80)
            .lines
            .into_iter()
            .map(|line| match line {
                Line::Of { piece, .. } | Line::Gap(piece) => piece,
            })
            .collect();
        assert_eq!(shown.len(), HEAD + TAIL + 1);
        assert_eq!((shown[0].as_str(), shown[HEAD + TAIL].as_str()), ("line 1", "line 400"));
        for part in ["384 lines are left out", "v shows all of it", "400 lines", "3,491 bytes", "SHA-256"] {
            assert!(shown[HEAD].contains(part), "{part}: {}", shown[HEAD]);
        }
        // One line that is very long is cut as well.
        assert_eq!(Preview::of(&"x".repeat(100_000), 80).lines.len(), HEAD + TAIL + 1);
        // Nothing is hidden where hiding saves nothing.
        let short = "x\n".repeat(HEAD + TAIL + 1);
        assert!(Preview::of(&short, 80).is_whole());
    }

    #[test]
    fn what_is_committed_is_shown_with_all_lines_of_its_command() {
        let rehearsed = |command: &str| Question::Rehearsed {
            id: "1".into(),
            cwd: "/".into(),
            command: command.into(),
            ended: "exit 0".into(),
            lines: Vec::new(),
            diff: "+new".into(),
            expires: std::time::Duration::from_secs(60),
        };
        let abilities = Abilities { terminal: false, colour: false, live: false };
        let screen = Screen::new(Stream::Out, abilities, false, "");
        let shown = |command: &str| shown(&screen, "/home".as_ref(), &rehearsed(command));
        assert!(shown("ls").contains("▶ rehearsed   ls\n"));
        let two = shown("echo harmless\nrm -rf build");
        assert!(two.contains("     echo harmless\n     rm -rf build\n"), "{two}");
        let long = format!("{}last", "line\n".repeat(100));
        assert!(shown(&long).contains("v shows all of it") && shown(&long).contains("     last\n"));
        let all = all_of_it(&screen, &rehearsed(&long));
        assert!(all.matches("     line\n").count() == 100 && all.contains("+new"), "{all}");
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
