//! Work on bytes that nobody vouches for, such as a document that somebody was sent.
//!
//! Whoever reads such bytes may be led into a panic, a stack without end, all of the memory or an hour of counting. So that
//! work is done where it hurts nobody: see [`crate::Environment::isolated`].

use std::time::Duration;

use crate::grouped;

/// A piece of our own work: bytes in, bytes out. A plain function, because nothing else of ours goes with it.
pub type Work = fn(&[u8]) -> Vec<u8>;

/// What a piece of work may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkLimits {
    /// How long.
    pub time: Duration,
    /// Bytes of memory, what comes in and goes out included.
    pub memory: u64,
    /// Bytes of what goes out.
    pub output: u64,
}

/// Why a piece of work came to nothing. The words follow a subject and a colon.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum WorkError {
    /// It was still at work at its limit.
    #[error("it took longer than {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It wanted more memory than its limit.
    #[error("it takes more than {} MiB of memory", grouped(.0 / 1024 / 1024))]
    OutOfMemory(u64),
    /// It called itself until its stack was full.
    #[error("it is nested too deeply")]
    TooDeep,
    /// What came out is longer than its limit.
    #[error("it makes more than {} bytes", grouped(*.0))]
    TooLong(u64),
    /// It gave up, with these words.
    #[error("whoever read it gave up ({0})")]
    Panicked(String),
    /// A signal from outside ended it.
    #[error("whoever read it was ended by signal {0}")]
    Killed(i32),
    /// It could not be begun.
    #[error("cannot read it apart from everything else: {0}")]
    NotStarted(String),
}
