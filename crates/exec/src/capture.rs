//! Keeping the head and the tail of an output of any length, in bounded memory.
//!
//! Errors tend to stand at the end and the reason for them near the start, so 40 % of the cap goes to the head and
//! 60 % to the tail (spec exec §3.8). What was left out is counted and said in the text.

use std::collections::VecDeque;

use hermes_core::grouped;

/// Collects bytes up to a cap.
#[derive(Debug)]
pub struct Capture {
    head_cap: usize,
    tail_cap: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// What was collected.
#[derive(Debug, PartialEq, Eq)]
pub struct Captured {
    /// The text, with a notice where bytes were left out.
    pub text: String,
    /// Bytes seen in all.
    pub total_bytes: u64,
    /// Bytes left out of `text`.
    pub omitted_bytes: u64,
}

impl Capture {
    /// Keeps at most `cap` bytes.
    pub fn new(cap: usize) -> Self {
        let head_cap = cap / 5 * 2;
        Self { head_cap, tail_cap: cap - head_cap, head: Vec::new(), tail: VecDeque::new(), total: 0 }
    }

    /// Adds what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min(self.head_cap - self.head.len());
        let (head, rest) = bytes.split_at(to_head);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_cap)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(self.tail_cap);
        self.tail.drain(..surplus);
        self.tail.extend(rest);
    }

    /// The text that is left: escapes for a terminal removed, bytes that are no UTF-8 replaced by U+FFFD.
    pub fn finish(self) -> Captured {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let tail: Vec<u8> = self.tail.into();
        if kept == self.total {
            let whole = [self.head, tail].concat();
            return Captured { text: plain(&whole), total_bytes: self.total, omitted_bytes: 0 };
        }
        // A character that the cut runs through belongs to neither side.
        let head = &self.head[..whole_chars_end(&self.head)];
        let tail = &tail[whole_chars_start(&tail)..];
        let omitted = self.total - (head.len() + tail.len()) as u64;
        let notice = format!(
            "\n[… {} of {} bytes left out: the first {} and the last {} are shown …]\n",
            grouped(omitted),
            grouped(self.total),
            grouped(head.len() as u64),
            grouped(tail.len() as u64)
        );
        Captured { text: plain(head) + &notice + &plain(tail), total_bytes: self.total, omitted_bytes: omitted }
    }
}

fn plain(bytes: &[u8]) -> String {
    // Line by line, because a sequence that is never closed would otherwise swallow everything after it.
    let strip = |line: &str| anstream::adapter::strip_str(line).to_string();
    let text = String::from_utf8_lossy(bytes);
    text.split_inclusive('\n')
        .map(|line| match line.strip_suffix('\n') {
            Some(line) => strip(line) + "\n",
            None => strip(line),
        })
        .collect()
}

/// Where the last whole character of `bytes` ends, if they are UTF-8 that was cut at the end.
fn whole_chars_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Where the first whole character of `bytes` starts, if they are UTF-8 that was cut at the start.
fn whole_chars_start(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(cap: usize, chunks: &[&[u8]]) -> Captured {
        let mut capture = Capture::new(cap);
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    #[test]
    fn short_output_is_kept_byte_for_byte() {
        let got = capture(10, &[b"hello", b"world"]);
        assert_eq!(got, Captured { text: "helloworld".into(), total_bytes: 10, omitted_bytes: 0 });
    }

    #[test]
    fn long_output_keeps_head_and_tail_and_says_the_total() {
        let bytes: Vec<u8> = (b'a'..=b'z').cycle().take(100_000).collect();
        for chunk in [1, 7, 4096, 100_000] {
            let got = capture(50, &bytes.chunks(chunk).collect::<Vec<_>>());
            assert!(got.text.starts_with("abcdefghijklmnopqrst\n[… 99,950 of 100,000 bytes left out"), "{}", got.text);
            assert!(got.text.ends_with(std::str::from_utf8(&bytes[100_000 - 30..]).unwrap()));
            assert_eq!((got.total_bytes, got.omitted_bytes), (100_000, 99_950));
        }
    }

    #[test]
    fn a_character_on_the_cut_is_dropped_whole() {
        let text = "é".repeat(100);
        let got = capture(25, &[text.as_bytes()]);
        assert!(!got.text.contains('\u{fffd}'), "{}", got.text);
        assert_eq!(got.omitted_bytes, 200 - 10 - 14);
    }

    #[test]
    fn terminal_escapes_go_and_broken_bytes_are_marked() {
        assert_eq!(capture(100, &[b"\x1b[31mred\x1b[0m \xff\tend\r\n"]).text, "red \u{fffd}\tend\r\n");
        assert_eq!(capture(100, &[b"before\x1b]0;never closed\nafter\nmore\n"]).text, "before\nafter\nmore\n");
    }
}
