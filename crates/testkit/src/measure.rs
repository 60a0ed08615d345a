//! Figures for people: medians, and ours against a floor that takes turns with it, so that a machine that gets slower hits
//! both. Nothing here decides whether a figure is good enough.

use std::time::{Duration, Instant};

/// What `work` takes once.
pub fn timed(work: &mut impl FnMut()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

/// The median of `times`.
///
/// # Panics
/// If there are none.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Medians of both, from `rounds` that take turns after one that only warms up.
pub fn in_turn(rounds: usize, mut ours: impl FnMut(), mut floor: impl FnMut()) -> (Duration, Duration) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let (x, y) = (timed(&mut ours), timed(&mut floor));
        if round > 0 {
            a.push(x);
            b.push(y);
        }
    }
    (median(a), median(b))
}

/// How many times `b` goes into `a`.
pub fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-9)
}

/// A time with the unit that suits it.
pub fn shown(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1e-6 {
        format!("{:.0} ns", seconds * 1e9)
    } else if seconds < 1e-3 {
        format!("{:.2} µs", seconds * 1e6)
    } else {
        format!("{:.2} ms", seconds * 1e3)
    }
}
