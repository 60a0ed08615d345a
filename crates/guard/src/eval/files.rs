//! Redirections: what is fed to a command, where its output goes, and what files hold that this command wrote.

use std::rc::Rc;

use super::call::Call;
use super::state::{FileFact, Key, Slot};
use super::{Feed, Frame, Machine};
use crate::programs;
use crate::shell::syntax::{Redirect, RedirectKind, Word};
use crate::text::{HOLE, REMOTE};

/// Where a command's output goes.
enum Sink {
    /// Wherever the command's own shell prints.
    Here,
    Nowhere,
    File {
        path: String,
        append: bool,
    },
}

impl<'w> Machine<'w> {
    /// What is left of the text that is fed to the command, if one is.
    pub(crate) fn fed(&mut self) -> Option<String> {
        self.stdin.borrow_mut().rest()
    }

    pub(super) fn redirected(&mut self, redirects: &[Redirect], program: &str, run: impl FnOnce(&mut Self)) {
        if redirects.is_empty() {
            return run(self);
        }
        let outer = Rc::clone(&self.stdin);
        let mut sink = Sink::Here;
        for redirect in redirects {
            self.redirect(redirect, program, &mut sink);
        }
        match sink {
            Sink::Here => run(self),
            Sink::Nowhere => {
                let _ = self.captured(run);
            }
            Sink::File { path, append } => {
                let output = self.captured(run);
                // These say what they print; of other programs silence is not known.
                if output.is_empty() && !append && matches!(program, "cat" | "printf" | "echo") {
                    self.redirection(program, ">", &path).write(&path, super::Writing::Empty);
                }
                let output = match self.state.files.get(&path) {
                    Some(fact) if append => format!("{}{output}", fact.text),
                    _ => output,
                };
                self.remember_file(&path, output);
            }
        }
        self.stdin = outer;
    }

    fn redirect(&mut self, redirect: &Redirect, program: &str, sink: &mut Sink) {
        let Some(word) = redirect.target.get() else { return };
        let descriptor = match &redirect.variable {
            // `{name}>&-` closes the one that it was given.
            Some(_) if redirect.kind == RedirectKind::Duplicate && word.bare() == Some("-") => return,
            Some(name) => {
                self.picked += 1;
                self.state.set_text(name, self.picked.to_string());
                Some(self.picked)
            }
            None => redirect.descriptor,
        };
        match redirect.kind {
            RedirectKind::HereDocument | RedirectKind::HereString => {
                let mut text = self.text_of(word);
                if redirect.kind == RedirectKind::HereString {
                    text.push('\n');
                }
                self.feed(descriptor, Feed::of(text));
            }
            RedirectKind::Duplicate => {
                let target = self.text_of(word);
                if descriptor.unwrap_or(0) == 0
                    && let Ok(number @ 3..) = target.trim_end_matches('-').parse::<u32>()
                {
                    // A descriptor that was opened earlier; where nobody saw that, it may lead anywhere.
                    self.stdin = self.descriptors.get(&number).cloned().unwrap_or_else(|| Feed::of(HOLE.to_string()));
                }
            }
            RedirectKind::Read => {
                let mut paths = Vec::new();
                self.expand_target(word, &mut paths);
                for path in paths {
                    let text = self.read_file(program, &path);
                    self.feed(descriptor, Feed::of(text));
                }
            }
            RedirectKind::Write
            | RedirectKind::Append
            | RedirectKind::ReadWrite
            | RedirectKind::WriteBoth
            | RedirectKind::AppendBoth => {
                let append =
                    matches!(redirect.kind, RedirectKind::Append | RedirectKind::AppendBoth | RedirectKind::ReadWrite);
                let mut paths = Vec::new();
                self.expand_target(word, &mut paths);
                for path in paths {
                    // `>&$fd`: a number that is known only now.
                    if redirect.kind == RedirectKind::WriteBoth && path.parse::<u32>().is_ok() {
                        continue;
                    }
                    let own = descriptor.is_none_or(|descriptor| descriptor < 3);
                    let place = self.write_file(program, &path, append, own);
                    if redirect.kind == RedirectKind::ReadWrite {
                        let remote = place.starts_with("/dev/tcp/") || place.starts_with("/dev/udp/");
                        self.feed(descriptor, Feed::of(if remote { REMOTE } else { HOLE }.to_string()));
                    }
                    let output = matches!(redirect.kind, RedirectKind::WriteBoth | RedirectKind::AppendBoth)
                        || descriptor.is_none_or(|descriptor| descriptor == 1);
                    if redirect.kind == RedirectKind::ReadWrite || !output {
                        continue;
                    }
                    *sink = match place.as_str() {
                        "/dev/null" => Sink::Nowhere,
                        path if path.starts_with("/dev/")
                            && !path.starts_with("/dev/fd/")
                            && !path.starts_with("/dev/shm/") =>
                        {
                            Sink::Here
                        }
                        _ => Sink::File { path: place, append },
                    };
                }
            }
        }
    }

    fn feed(&mut self, descriptor: Option<u32>, feed: Rc<std::cell::RefCell<Feed>>) {
        match descriptor.unwrap_or(0) {
            0 => self.stdin = feed,
            number => {
                self.descriptors.insert(number, feed);
            }
        }
    }

    /// What is fed through a path such as `/dev/fd/3`.
    pub(crate) fn descriptor(&mut self, path: &str) -> Option<String> {
        let own = ["/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/"];
        let number = own.iter().find_map(|directory| path.strip_prefix(directory))?;
        let feed = self.descriptors.get(&number.parse().ok()?)?;
        feed.borrow_mut().rest()
    }

    /// Runs a file whose text is known, unless it is the one that runs.
    pub(crate) fn run_known(&mut self, path: &str, run: impl FnOnce(&mut Self)) {
        if let Some(first) = self.frames.iter().position(|frame| frame.name == path) {
            let forks: usize = self.frames[first..].iter().map(|frame| frame.forks).sum();
            return if forks > 0 { self.without_end() } else { self.print(&HOLE.to_string()) };
        }
        self.frames.push(Frame { name: path.to_owned(), forks: 0, locals: Vec::new() });
        self.apart(|machine| {
            machine.state.set_text("0", path);
            run(machine);
        });
        self.frames.pop();
    }

    fn expand_target(&mut self, word: &Word, paths: &mut Vec<String>) {
        paths.extend(self.arguments(std::slice::from_ref(word)));
    }

    /// What a file holds, as far as this command knows; reading a secret is reported.
    pub(crate) fn read_file(&mut self, program: &str, path: &str) -> String {
        self.redirection(program, "<", path).read(path)
    }

    /// A program whose input or output is a file. In words it is the redirection alone: who allows `echo *` has not
    /// allowed it to write anywhere.
    fn redirection(&mut self, program: &str, sign: &str, path: &str) -> Call<'_, 'w> {
        let mut call = Call::new(self, vec![program.to_owned()], &[]);
        call.words = vec![sign.to_owned(), path.to_owned()];
        call
    }

    fn write_file(&mut self, program: &str, path: &str, append: bool, own: bool) -> String {
        self.redirection(program, if append { ">>" } else { ">" }, path).redirect_into(path, append, own)
    }

    pub(crate) fn remember_file(&mut self, path: &str, text: String) {
        // What is written into a table of cron runs as well, only later.
        if let Some(names_users) = programs::accounts::is_cron_table(path) {
            programs::accounts::cron_table(self, &text, names_users);
        }
        self.state.set(Key::File(path.to_owned()), Slot::Text(Some(text)));
    }

    pub(crate) fn file(&self, path: &str) -> Option<&FileFact> {
        self.state.files.get(path)
    }
}
