//! The system call filter: what no command needs and every escape begins with answers "not permitted".
//!
//! It denies and does not kill, so that a program that only tries (a build's feature test) goes on. `clone3` hides its
//! flags in memory, where a filter cannot look; it answers "no such system call", and the C library takes `clone`
//! instead, whose flags can be seen.

use std::collections::BTreeMap;
use std::io;

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::{Confinement, Mechanism, Network, step};

#[cfg(target_arch = "x86_64")]
pub(crate) const ARCHITECTURE: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
pub(crate) const ARCHITECTURE: TargetArch = TargetArch::aarch64;

/// Denied whatever their arguments are.
const DENIED: &[libc::c_long] = &[
    // file systems
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_fanotify_init,
    // namespaces
    libc::SYS_setns,
    libc::SYS_chroot,
    // the machine
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    // The bindings for this C library do not know the number.
    #[cfg(all(target_arch = "aarch64", target_env = "musl"))]
    294,
    #[cfg(not(all(target_arch = "aarch64", target_env = "musl")))]
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // large parts of the kernel with a history of holes; io_uring also opens sockets past this filter
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// Each of these makes a namespace when it is among the flags of `clone` or `unshare`.
const NAMESPACE_FLAGS: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];
/// Only `unshare` knows this one; for `clone` its bit is part of a signal's number.
const NEW_TIME_NAMESPACE: libc::c_int = 0x80;

/// Both put text into a terminal as if somebody had typed it there (`TIOCSTI`, `TIOCLINUX`).
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// Puts the filter of `confinement` on this process, for good. No new privileges must be possible already.
pub(super) fn filter(confinement: &Confinement) -> io::Result<()> {
    let program = program(confinement).map_err(step("make the system call filter"))?;
    apply_filter(&program).map_err(io::Error::other).map_err(step("filter system calls"))
}

/// The filter as the kernel wants it.
pub(super) fn program(confinement: &Confinement) -> io::Result<BpfProgram> {
    let denied = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter =
        rules(confinement).and_then(|rules| SeccompFilter::new(rules, SeccompAction::Allow, denied, ARCHITECTURE));
    let filter: BpfProgram = filter.and_then(BpfProgram::try_from).map_err(io::Error::other)?;
    Ok(prelude().into_iter().chain(filter).collect())
}

/// What the library's rules cannot say: a second answer, and a range of numbers.
fn prelude() -> [sock_filter; 4] {
    /// Where `seccomp_data` has the number of the call: at its beginning.
    const LOAD_NUMBER: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const AT_LEAST: u32 = libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    /// `clone3` on every architecture.
    const CLONE3: u32 = 435;
    /// Calls of the x32 interface have this bit, the architecture of x86-64 and other numbers than the rules.
    const X32: u32 = 0x4000_0000;
    const NO_SUCH_CALL: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    #[expect(clippy::cast_possible_truncation, reason = "codes of instructions have 16 bits in the structure")]
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    [
        instruction(LOAD_NUMBER, 0, 0, 0),
        instruction(EQUAL, 1, 0, CLONE3),
        instruction(AT_LEAST, 0, 1, X32),
        instruction(RETURN, 0, 0, NO_SUCH_CALL),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(confinement: &Confinement) -> Result<Rules, seccompiler::BackendError> {
    // No rule at all means: always.
    let mut rules: Rules = DENIED.iter().map(|number| (*number, Vec::new())).collect();
    let when = |conditions: Vec<SeccompCondition>| SeccompRule::new(conditions);
    let argument = |index, value: u64, is| SeccompCondition::new(index, Width::Dword, is, value);
    let has_flag = |flag: libc::c_int| {
        let bits = u64::from(flag.cast_unsigned());
        when(vec![argument(0, bits, Is::MaskedEq(bits))?])
    };
    rules.insert(libc::SYS_clone, NAMESPACE_FLAGS.into_iter().map(has_flag).collect::<Result<_, _>>()?);
    let unshare = NAMESPACE_FLAGS.into_iter().chain([NEW_TIME_NAMESPACE]);
    rules.insert(libc::SYS_unshare, unshare.map(has_flag).collect::<Result<_, _>>()?);
    // The kernel looks at 32 bits of the request, and so do we.
    let ioctl = TYPING.into_iter().map(|request| when(vec![argument(1, request, Is::Eq)?]));
    rules.insert(libc::SYS_ioctl, ioctl.collect::<Result<_, _>>()?);
    let families: &[libc::c_int] = match (confinement.mechanism, confinement.network) {
        // Without a network of its own, and with all sockets of the machine in sight, no socket is harmless.
        (Mechanism::Landlock, Network::Off | Network::Proxied) => {
            rules.insert(libc::SYS_socket, Vec::new());
            return Ok(rules);
        }
        _ => &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK],
    };
    let other = families.iter().map(|family| argument(0, u64::from(family.cast_unsigned()), Is::Ne));
    let other = when(other.collect::<Result<_, _>>()?)?;
    // Of netlink, what asks for addresses and routes; the rest talks to parts of the kernel that commands do not need.
    let netlink = u64::from(libc::AF_NETLINK.cast_unsigned());
    let other_netlink = when(vec![argument(0, netlink, Is::Eq)?, argument(2, 0, Is::Ne)?])?;
    rules.insert(libc::SYS_socket, vec![other, other_netlink]);
    Ok(rules)
}
