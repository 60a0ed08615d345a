//! Patches of several files in the V4A format: read, planned against the files that are there, and applied as a whole.
//!
//! ```text
//! *** Begin Patch
//! *** Update File: src/a.py
//! *** Move to: src/b.py
//! @@ class B:
//!      def f(self):
//! -        pass
//! +        return 1
//! *** Add File: new.txt
//! +its first line
//! *** Delete File: old.txt
//! *** Move File: c.png -> d.png
//! *** End Patch
//! ```
//!
//! `parse` knows the text only, `hunks` finds the places of one file, `plan` decides about all files and changes none,
//! `apply` does it and takes everything back if anything fails.

mod apply;
mod hunks;
mod parse;
mod plan;

pub(crate) use self::apply::{Failure, apply};
pub(crate) use self::parse::{Operation, parse};
pub(crate) use self::plan::{Content, Outcome, Plan, Step, plan, quietly};
