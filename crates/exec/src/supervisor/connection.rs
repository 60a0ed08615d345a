//! A supervisor's end of the connection to somebody who asks it things.
//!
//! A supervisor waits for nobody. What must arrive (an answer, an end) is kept for whoever does not read at the moment;
//! output that is only to be looked at is not.

use std::collections::VecDeque;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::MsgFlags;

use super::protocol::{self, Event};

/// So much is kept for somebody who does not read; whoever asks more without reading answers gets none.
const MOST_UNSENT: usize = 256;
/// How long somebody may take to read what is left for them when a supervisor ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// See the module.
pub(super) struct Connection {
    pub(super) socket: OwnedFd,
    /// It gets output as it comes.
    pub(super) follows: bool,
    /// Whoever started the command; when it is gone, so is the command's right to live.
    pub(super) owner: bool,
    /// What there was no room for yet, in order.
    unsent: VecDeque<Event>,
}

impl Connection {
    pub(super) fn new(socket: OwnedFd, owner: bool) -> Self {
        Self { socket, follows: false, owner, unsent: VecDeque::new() }
    }

    /// Says something that must arrive.
    pub(super) fn tell(&mut self, event: Event) {
        if self.unsent.len() < MOST_UNSENT || comes_once(&event) {
            self.unsent.push_back(event);
        }
        self.flush();
    }

    /// Shows something that may be missed.
    pub(super) fn show(&mut self, event: &Event) {
        if self.unsent.is_empty() {
            self.send(event);
        }
    }

    /// Sends what waits, as far as there is room for it.
    pub(super) fn flush(&mut self) {
        while let Some(event) = self.unsent.pop_front() {
            if !self.send(&event) {
                self.unsent.push_front(event);
                return;
            }
        }
    }

    /// False where there is no room. To somebody who has gone, everything can be said.
    fn send(&self, event: &Event) -> bool {
        protocol::send(&self.socket, event, &[], MsgFlags::MSG_DONTWAIT).unwrap_or(true)
    }

    /// What is waited for on the socket.
    pub(super) fn awaited(&self) -> PollFlags {
        if self.unsent.is_empty() { PollFlags::POLLIN } else { PollFlags::POLLIN | PollFlags::POLLOUT }
    }
}

/// What there is one of in the life of a command, and nobody can do without.
fn comes_once(event: &Event) -> bool {
    use Event::{Adopted, Ended, Failed, Gone, Runs, Started};
    matches!(event, Started { .. } | Runs | Failed(_) | Ended(_) | Gone { .. } | Adopted)
}

/// Gives everybody a moment to read what is left for them.
pub(super) fn say_farewell(connections: &mut [Connection]) {
    let deadline = Instant::now() + FAREWELL;
    loop {
        connections.iter_mut().for_each(Connection::flush);
        let late = connections.iter().filter(|connection| !connection.unsent.is_empty());
        let mut late: Vec<PollFd<'_>> =
            late.map(|connection| PollFd::new(connection.socket.as_fd(), PollFlags::POLLOUT)).collect();
        let left = deadline.saturating_duration_since(Instant::now());
        if late.is_empty() || left.is_zero() {
            return;
        }
        // Interrupted or not, the next turn looks again.
        let _ = poll(&mut late, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::protocol::Received;
    use super::*;

    fn received(socket: &OwnedFd) -> Option<Event> {
        match protocol::receive(socket, MsgFlags::MSG_DONTWAIT).unwrap() {
            Received::Message(event, _) => Some(event),
            Received::Nothing | Received::Closed => None,
        }
    }

    #[test]
    fn what_must_arrive_waits_for_room_and_what_may_be_missed_does_not() {
        let (ours, theirs) = protocol::pair().unwrap();
        let mut connection = Connection::new(ours, false);
        let output = Event::Output(vec![b'x'; 32 * 1024]);
        for _ in 0..100 {
            connection.show(&output);
        }
        let ends = [Event::Ended(protocol::End::Code(3)), Event::Gone { left: 0 }];
        for event in &ends {
            connection.tell(event.clone());
        }
        connection.show(&output);
        assert!(connection.awaited().contains(PollFlags::POLLOUT));
        let mut arrived = Vec::new();
        while let Some(event) = received(&theirs) {
            arrived.push(event);
            connection.flush();
        }
        let (shown, told) = arrived.split_at(arrived.len() - 2);
        assert!(shown.len() < 100 && shown.iter().all(|event| *event == output), "{} were shown", shown.len());
        assert_eq!(told, ends);
        assert_eq!(connection.awaited(), PollFlags::POLLIN);
        drop(theirs);
        connection.tell(Event::Gone { left: 0 });
        say_farewell(&mut [connection]);
    }

    #[test]
    fn an_end_arrives_also_behind_more_answers_than_are_kept() {
        let (ours, theirs) = protocol::pair().unwrap();
        let mut connection = Connection::new(ours, false);
        for _ in 0..10_000 {
            connection.tell(Event::InputClosed);
        }
        connection.tell(Event::Gone { left: 0 });
        let mut last = None;
        while let Some(event) = received(&theirs) {
            last = Some(event);
            connection.flush();
        }
        assert_eq!(last, Some(Event::Gone { left: 0 }));
    }
}
