//! Our end of a piece of work that is done beside us (`supervisor::worker`).

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsFd as _;

use hermes_core::{Work, WorkError, WorkLimits};
use nix::libc::{SIGABRT, SIGBUS, SIGSEGV, SIGXCPU, SIGXFSZ};
use nix::sys::memfd::{MFdFlags, memfd_create};
use tokio::time::timeout;

use crate::supervisor::protocol::{self, Assignment, End, Role};
use crate::supervisor::worker::code;
use crate::supervisor::{ForkServer, Supervised};

/// What is kept of the words of a panic, in characters.
const MOST_WORDS: usize = 200;

/// Does it. Dropping the future ends it.
pub(crate) async fn run(
    server: &ForkServer,
    work: Work,
    input: &[u8],
    limits: WorkLimits,
) -> Result<Vec<u8>, WorkError> {
    let not_started = |error: io::Error| WorkError::NotStarted(error.to_string());
    let (worker, mut output) = start(server, work, input, limits).map_err(not_started)?;
    // Leaving early closes the connection, and with it ends the work.
    let Ok(heard) = timeout(limits.time, worker.until(|known| known.end.is_some())).await else {
        return Err(WorkError::TimedOut(limits.time));
    };
    heard.map_err(not_started)?;
    let Some(end) = worker.look().end else {
        return Err(WorkError::NotStarted("its process was not made, or was ended by somebody else".into()));
    };
    let mut bytes = Vec::new();
    let read = output.rewind().and_then(|()| output.take(limits.output).read_to_end(&mut bytes));
    read.map_err(not_started)?;
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(MOST_WORDS).collect::<String>();
    match end {
        End::Code(0) => Ok(bytes),
        End::Code(code::NOT_CONFINED) => Err(WorkError::NotStarted(words(&bytes))),
        End::Code(code::TOO_LONG) | End::Signal(SIGXFSZ) => Err(WorkError::TooLong(limits.output)),
        End::Code(_) => Err(WorkError::Panicked(words(&bytes))),
        End::Signal(SIGXCPU) => Err(WorkError::TimedOut(limits.time)),
        // What Rust does when there is no memory.
        End::Signal(SIGABRT) => Err(WorkError::OutOfMemory(limits.memory)),
        End::Signal(SIGSEGV | SIGBUS) => Err(WorkError::TooDeep),
        End::Signal(signal) => Err(WorkError::Killed(signal)),
    }
}

fn start(server: &ForkServer, work: Work, input: &[u8], limits: WorkLimits) -> io::Result<(Supervised, File)> {
    let memory_file = |name| memfd_create(name, MFdFlags::MFD_CLOEXEC).map(File::from);
    let mut job = memory_file(c"hermes-work")?;
    job.write_all(input)?;
    let output = memory_file(c"hermes-work")?;
    let (ours, theirs) = protocol::pair()?;
    let assignment = Assignment {
        function: work as usize,
        seconds: limits.time.as_secs(),
        memory: limits.memory,
        output: limits.output,
    };
    let descriptors = [(Role::Job, job.as_fd()), (Role::Control, theirs.as_fd()), (Role::Output, output.as_fd())];
    server.work(assignment, &descriptors)?;
    Ok((Supervised::connected(ours), output))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const LIMITS: WorkLimits =
        WorkLimits { time: Duration::from_secs(20), memory: 128 * 1024 * 1024, output: 1024 * 1024 };

    async fn done(work: Work, input: &[u8]) -> Result<Vec<u8>, WorkError> {
        run(&ForkServer::start().unwrap(), work, input, LIMITS).await
    }

    #[tokio::test]
    async fn what_goes_in_comes_out_worked_on() {
        let backwards: Work = |bytes| bytes.iter().rev().copied().collect();
        assert_eq!(done(backwards, b"abc").await.unwrap(), b"cba");
        let large = vec![7; 1024 * 1024];
        assert_eq!(done(backwards, &large).await.unwrap(), large);
    }

    #[tokio::test]
    async fn however_it_ends_we_live_on_and_know_why() {
        fn deep(depth: u64) -> u64 {
            if depth == u64::MAX { 0 } else { std::hint::black_box(deep(std::hint::black_box(depth) + 1)) + depth }
        }
        let panics: Work = |_| panic!("no such font");
        assert_eq!(done(panics, b"").await, Err(WorkError::Panicked("no such font".into())));
        let sinks: Work = |_| deep(0).to_le_bytes().to_vec();
        assert_eq!(done(sinks, b"").await, Err(WorkError::TooDeep));
        let grows: Work = |_| vec![1; 200 * 1024 * 1024];
        assert_eq!(done(grows, b"").await, Err(WorkError::OutOfMemory(LIMITS.memory)));
        let talks: Work = |_| vec![1; 1024 * 1024 + 1];
        assert_eq!(done(talks, b"").await, Err(WorkError::TooLong(LIMITS.output)));
        let aborts: Work = |_| std::process::abort();
        assert!(done(aborts, b"").await.is_err());
    }

    #[tokio::test]
    async fn what_never_ends_is_ended_also_when_nobody_waits() {
        let never: Work = |_| loop {
            std::hint::spin_loop();
        };
        let server = ForkServer::start().unwrap();
        let limits = WorkLimits { time: Duration::from_millis(100), ..LIMITS };
        let began = Instant::now();
        assert_eq!(run(&server, never, b"", limits).await, Err(WorkError::TimedOut(limits.time)));
        assert!(began.elapsed() < Duration::from_secs(10));
        // A keeper without a worker ends by itself.
        while !server.children().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(10));
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn it_reaches_nothing() {
        let tries: Work = |_| {
            let opened = File::open("/etc/hostname").is_ok();
            let connected = std::net::UdpSocket::bind("127.0.0.1:0").is_ok();
            let started = std::process::Command::new("/bin/true").spawn().is_ok();
            let threaded = std::thread::Builder::new().spawn(|| {}).is_ok();
            let parent = nix::unistd::Pid::from_raw(1);
            let signalled = nix::sys::signal::kill(parent, None).is_ok();
            [opened, connected, started, threaded, signalled].map(u8::from).to_vec()
        };
        assert_eq!(done(tries, b"").await.unwrap(), [0; 5]);
    }
}
