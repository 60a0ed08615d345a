//! Lines of a log that grows.
//!
//! Where lines begin is remembered, so that each byte of a log is looked at once, however often it is asked for.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use hermes_core::Process;

const PIECE: u64 = 256 * 1024;
/// Every so many lines the place of one is remembered.
const STEP: usize = 256;

/// What is remembered of the logs of a task.
#[derive(Default)]
pub(super) struct Logs(Mutex<HashMap<String, Lines>>);

impl Logs {
    /// Brings what is known of a log up to date and answers it.
    pub(super) async fn of(&self, id: &str, process: &dyn Process) -> std::io::Result<Lines> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id).unwrap_or_default();
        let read = lines.catch_up(process).await;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), lines.clone());
        read.map(|()| lines)
    }
}

/// Where the lines of a log begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// Lines that have ended.
    ended: usize,
    /// How far it was looked at.
    position: u64,
    /// Where the last line begins that has not ended.
    last_start: u64,
    /// Where the lines 0, STEP, 2 · STEP, … begin.
    marks: Vec<u64>,
}

impl Lines {
    async fn catch_up(&mut self, process: &dyn Process) -> std::io::Result<()> {
        if self.marks.is_empty() {
            self.marks.push(0);
        }
        let end = process.output_len();
        // What is not kept any more counts no lines.
        self.position = self.position.max(process.output_start());
        while self.position < end {
            let bytes = process.output(self.position..end.min(self.position + PIECE)).await?;
            if bytes.is_empty() {
                break;
            }
            for place in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64) {
                self.ended += 1;
                self.last_start = self.position + place + 1;
                if self.ended.is_multiple_of(STEP) {
                    self.marks.push(self.last_start);
                }
            }
            self.position += bytes.len() as u64;
        }
        Ok(())
    }

    /// How many lines there are; one that has not ended counts.
    pub(super) fn count(&self) -> usize {
        self.ended + usize::from(self.position > self.last_start)
    }

    /// The bytes of these lines.
    pub(super) async fn bytes(&self, wanted: Range<usize>, process: &dyn Process) -> std::io::Result<Range<u64>> {
        let start = self.start_of(wanted.start, process).await?;
        let end = self.start_of(wanted.end, process).await?;
        Ok(start..end)
    }

    async fn start_of(&self, line: usize, process: &dyn Process) -> std::io::Result<u64> {
        if line >= self.count() {
            return Ok(self.position);
        }
        let mut place = self.marks[line / STEP];
        let mut to_go = line % STEP;
        while to_go > 0 && place < self.position {
            let bytes = process.output(place..self.position.min(place + PIECE)).await?;
            if bytes.is_empty() {
                break;
            }
            let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64 + 1);
            for end in ends {
                to_go -= 1;
                if to_go == 0 {
                    return Ok(place + end);
                }
            }
            place += bytes.len() as u64;
        }
        Ok(place)
    }
}
