//! Giving up what a process may do: capabilities, new privileges from programs, resources.

use std::io;

use nix::errno::Errno;
use nix::libc;
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::{Limits, step};

/// Makes this process and everything it starts ordinary for good: no capability is left, also for root, and no program
/// (`sudo`, `su`) gives one back.
pub(super) fn drop_all() -> io::Result<()> {
    set_no_new_privs().map_err(|error| step("forbid new privileges")(error.into()))?;
    drop_capabilities().map_err(step("give up capabilities"))
}

#[expect(unsafe_code, reason = "capset(2) and these prctl(2) options have no safe wrapper in nix")]
fn drop_capabilities() -> io::Result<()> {
    /// `_LINUX_CAPABILITY_VERSION_3`: two words of 32 capabilities each (capset(2)).
    const VERSION: u32 = 0x2008_0522;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Sets {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    for capability in 0..64 {
        // SAFETY: prctl with these options reads nothing but its number arguments.
        match Errno::result(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            Ok(_) => {}
            // Past the last capability of this kernel; or nothing to drop with, and then nothing that matters: without
            // new privileges the bounding set is never used.
            Err(Errno::EINVAL | Errno::EPERM) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let header = Header { version: VERSION, pid: 0 };
    let none = [Sets { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: both structures have the layout of capset(2) for this version and live until it returns. Ambient
    // capabilities go with the permitted ones.
    Errno::result(unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) })?;
    Ok(())
}

/// Sets the limits; one that is already lower stays.
pub(super) fn limit(limits: &Limits) -> io::Result<()> {
    let wanted = [
        (Resource::RLIMIT_NPROC, limits.processes),
        (Resource::RLIMIT_AS, limits.memory),
        (Resource::RLIMIT_FSIZE, limits.file_size),
    ];
    for (resource, wanted) in wanted {
        let Some(wanted) = wanted else { continue };
        let set = getrlimit(resource).and_then(|(_, hard)| setrlimit(resource, wanted.min(hard), wanted.min(hard)));
        set.map_err(|error| step(format_args!("set {resource:?}"))(error.into()))?;
    }
    Ok(())
}
