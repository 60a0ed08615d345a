//! Watching output for lines that somebody waits for (spec exec §8.8).
//!
//! Lines, not reads: what a read cuts is put together again. A pattern that matches all the time must not keep anybody
//! busy, so after a match there is a pause; a pattern that matches in three pauses in a row is given up.

use std::time::{Duration, Instant};

use hermes_core::Watched;
use memchr::{memchr, memmem};

use crate::plain::{Reading, plain};

/// The pause after a match.
const PAUSE: Duration = Duration::from_secs(15);
/// So many pauses in a row with a match in them, and the watch ends.
const STRIKES: u32 = 3;
/// The longest line that is put together; a longer one is looked at in pieces.
const LONGEST_LINE: usize = 8 * 1024;
/// The longest line that is told, in characters.
const LONGEST_TOLD: usize = 2_000;

/// Looks at output as it comes.
#[derive(Debug)]
pub(crate) struct Watch {
    patterns: Vec<String>,
    line: Vec<u8>,
    pause_until: Option<Instant>,
    struck_in_this_pause: bool,
    strikes: u32,
    suppressed: u64,
    over: bool,
}

impl Watch {
    /// Looks for any of `patterns`; `None` if there is none.
    pub(crate) fn new(patterns: Vec<String>) -> Option<Self> {
        let patterns: Vec<String> = patterns.into_iter().filter(|pattern| !pattern.is_empty()).collect();
        (!patterns.is_empty()).then(|| Self {
            patterns,
            line: Vec::new(),
            pause_until: None,
            struck_in_this_pause: false,
            strikes: 0,
            suppressed: 0,
            over: false,
        })
    }

    /// Looks at more output; what is to be told is given to `tell`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], now: Instant, tell: &mut impl FnMut(Watched)) {
        while !self.over && !bytes.is_empty() {
            let within = &bytes[..bytes.len().min(LONGEST_LINE - self.line.len())];
            let end = memchr(b'\n', within);
            let (piece, rest) = bytes.split_at(end.map_or(within.len(), |end| end + 1));
            bytes = rest;
            self.line.extend_from_slice(piece);
            if end.is_some() || self.line.len() == LONGEST_LINE {
                self.whole_line(now, tell);
            }
        }
    }

    /// Looks at what stands behind the last line break: nothing more comes.
    pub(crate) fn finish(&mut self, now: Instant, tell: &mut impl FnMut(Watched)) {
        if !self.over && !self.line.is_empty() {
            self.whole_line(now, tell);
        }
    }

    fn whole_line(&mut self, now: Instant, tell: &mut impl FnMut(Watched)) {
        let bytes = std::mem::take(&mut self.line);
        let line = plain(&bytes, Reading::default());
        let matches = |pattern: &&String| memmem::find(line.as_bytes(), pattern.as_bytes()).is_some();
        let Some(pattern) = self.patterns.iter().find(matches).cloned() else { return };
        if self.pause_until.is_some_and(|until| now < until) {
            self.suppressed += 1;
            if !self.struck_in_this_pause {
                self.struck_in_this_pause = true;
                self.strikes += 1;
                self.over = self.strikes >= STRIKES;
            }
            if !self.over {
                return;
            }
        } else if !self.struck_in_this_pause {
            self.strikes = 0;
        }
        self.pause_until = Some(now + PAUSE);
        self.struck_in_this_pause = false;
        let line = line.trim_end().chars().take(LONGEST_TOLD).collect();
        tell(Watched { pattern, line, suppressed: std::mem::take(&mut self.suppressed), last: self.over });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(watch: &mut Watch, bytes: &[u8], now: Instant) -> Vec<Watched> {
        let mut told = Vec::new();
        watch.push(bytes, now, &mut |watched| told.push(watched));
        told
    }

    #[test]
    fn a_line_that_reads_cut_is_one_line() {
        let now = Instant::now();
        let mut watch = Watch::new(vec!["server ready".into()]).unwrap();
        assert_eq!(told(&mut watch, b"starting\nthe ser", now), []);
        let got = told(&mut watch, b"ver \x1b[32mready\x1b[0m in 3 ms\nmore", now);
        assert_eq!(got.len(), 1);
        assert_eq!(got[0].line, "the server ready in 3 ms");
    }

    #[test]
    fn an_unfinished_line_counts_at_the_end() {
        let mut watch = Watch::new(vec!["done".into()]).unwrap();
        let mut told = Vec::new();
        watch.push(b"all done", Instant::now(), &mut |watched| told.push(watched));
        assert!(told.is_empty());
        watch.finish(Instant::now(), &mut |watched| told.push(watched));
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn what_matches_all_the_time_is_told_at_most_four_times() {
        let mut now = Instant::now();
        let mut watch = Watch::new(vec!["ready".into()]).unwrap();
        let mut all = Vec::new();
        for _ in 0..6_000 {
            all.extend(told(&mut watch, b"ready\n", now));
            now += Duration::from_millis(20);
        }
        assert_eq!(all.len(), 4, "{all:?}");
        assert!(all[3].last && !all[2].last);
        assert_eq!(all[1].suppressed, 749);
    }

    #[test]
    fn a_quiet_pause_forgives() {
        let mut now = Instant::now();
        let mut watch = Watch::new(vec!["ready".into()]).unwrap();
        let mut all = 0;
        for _ in 0..20 {
            all += told(&mut watch, b"ready\n", now).len();
            now += PAUSE;
        }
        assert_eq!(all, 20);
    }

    #[test]
    fn a_line_without_end_is_bounded() {
        let mut watch = Watch::new(vec!["needle".into()]).unwrap();
        let mut told = 0;
        for _ in 0..1_000 {
            watch.push(&[b'x'; 1_000], Instant::now(), &mut |_| told += 1);
            assert!(watch.line.len() <= LONGEST_LINE);
        }
        watch.push(b"needle\n", Instant::now(), &mut |_| told += 1);
        assert_eq!(told, 1);
    }
}
