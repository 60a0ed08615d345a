//! Ctrl-C, SIGTERM, and leaving the terminal as it was found.
//!
//! One listener lives as long as the command. Ctrl-C stops what is running; SIGTERM and a closed terminal (SIGHUP) stop
//! it and leave. Asked again while something is still being stopped, everything that was started is killed at once. The
//! process then has [`LAST_MOMENT`] to come to its own end, unless it is asked a third time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_core::CancellationToken;
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};

/// What a process that is asked twice may still take to end by itself.
const LAST_MOMENT: Duration = Duration::from_secs(4);

/// Listens for signals. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Signals {
    /// What Ctrl-C stops now.
    running: Arc<Mutex<CancellationToken>>,
    leave: CancellationToken,
}

impl Signals {
    /// Starts listening. Needs a running runtime.
    pub(crate) fn listen() -> Self {
        let signals = Self { running: Arc::default(), leave: CancellationToken::new() };
        let listener = signals.clone();
        let terminal = Terminal::remember();
        tokio::spawn(async move {
            let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
            let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
            loop {
                let leave = tokio::select! {
                    interrupted = tokio::signal::ctrl_c() => match interrupted {
                        Ok(()) => false,
                        Err(_) => return,
                    },
                    _ = terminate.recv() => true,
                    _ = hangup.recv() => true,
                };
                let running = listener.running();
                if running.is_cancelled() {
                    // What runs is being ended already; where that takes too long, its supervisors end it without us.
                    tokio::select! {
                        () = tokio::time::sleep(LAST_MOMENT) => {}
                        _ = tokio::signal::ctrl_c() => {}
                    }
                    terminal.restore();
                    std::process::exit(130);
                }
                if leave {
                    listener.leave.cancel();
                }
                running.cancel();
            }
        });
        signals
    }

    /// A token for what begins now; the one before it is forgotten.
    pub(crate) fn begin(&self) -> CancellationToken {
        let token = CancellationToken::new();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = token.clone();
        token
    }

    /// Fires when the process was asked to end.
    pub(crate) fn leave(&self) -> &CancellationToken {
        &self.leave
    }

    fn running(&self) -> CancellationToken {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How the terminal was set when we came.
pub(crate) struct Terminal(Option<Termios>);

impl Terminal {
    pub(crate) fn remember() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// A thread that waits for a key may still hold the terminal in raw mode when the process ends.
    pub(crate) fn restore(&self) {
        if let Some(settings) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSANOW, settings);
        }
    }
}
