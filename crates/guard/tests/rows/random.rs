//! Numbers that look random and are the same every time.
#![allow(unreachable_pub, reason = "shared by test programs")]

/// A xorshift generator.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Another seed, other numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// One of `0..end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 16) % end.max(1) as u64).unwrap_or_default()
    }

    /// One of `choices`.
    pub fn of<'c, T: ?Sized>(&mut self, choices: &[&'c T]) -> &'c T {
        choices[self.below(choices.len())]
    }
}

/// The seed and how many texts to try: `SEED` and `COUNT` for whoever looks for more.
pub fn from_environment(count: usize) -> (u64, usize) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    (number("SEED").unwrap_or(1), number("COUNT").and_then(|count: u64| usize::try_from(count).ok()).unwrap_or(count))
}
