//! Which paths are secret, protected or able to plant code, and which lie inside of which.
//!
//! One place for what file tools, the command evaluator and the judge need to know about a path. It refuses to do I/O:
//! links are followed by whoever can see the files (`Environment::real_path`, or [`resolve`] with a map of links), and
//! what is judged here is both what was written and what it leads to.
//!
//! The tricky idea: a prohibition and an allowance read names differently. A prohibition ignores the case of letters,
//! because `~/.SSH/ID_RSA` is the key on many disks and nothing harmless on the others. An allowance ([`contains`],
//! [`SafeRoots`]) compares bytes, because on a disk where case matters `/srv/Data` is not `/srv/data`.
//!
//! Where to start reading: [`classify`]; its data is in `paths/table.rs`.

mod index;
mod lexical;
mod places;
mod policy;
mod resolve;
mod sensitive;
mod table;

pub use self::lexical::{contains, normalise, traverses};
pub use self::places::secret_places;
pub use self::policy::{PathPolicy, PathRefusal, SafeRoots};
pub use self::resolve::{ResolveError, resolve};
pub(crate) use self::sensitive::{Kind, kind};
pub use self::sensitive::{Sensitivity, classify, secrets_below};
