//! bubblewrap (`bwrap`): our layers as its options.
//!
//! It is for machines where an ordinary program may not make namespaces but `bwrap` may (a profile of `AppArmor`, a
//! setuid copy). It ends like the command, but says a signal as `128 + number`, and what the command left running ends with it. A signal for the
//! group ends `bwrap` and with it the command, whatever the command would have done.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use nix::errno::Errno;
use nix::libc;
use nix::sys::memfd::{MFdFlags, memfd_create};
use seccompiler::sock_filter;

use super::mount_calls::open_plain;
use super::plan::{Layer, Plan};
use super::{Confinement, Network, failed, privileges, step, system_calls};

/// The descriptor on which `bwrap` finds the system call filter; below the usual limit of 1024, above what is used.
const FILTER: i32 = 971;

/// Readies this process to become `bwrap`: limits, and the filter in its place.
pub(super) fn prepare(confinement: &Confinement) -> io::Result<()> {
    privileges::limit(&confinement.limits)?;
    pass_filter(confinement).map_err(step("pass the system call filter to bwrap"))
}

#[expect(unsafe_code, reason = "dup2(2) to a number that is agreed upon")]
fn pass_filter(confinement: &Confinement) -> io::Result<()> {
    let mut file = File::from(memfd_create(c"filter", MFdFlags::MFD_CLOEXEC)?);
    for sock_filter { code, jt, jf, k } in system_calls::program(confinement)? {
        // The layout of `struct sock_filter` (linux/filter.h).
        file.write_all(&code.to_ne_bytes())?;
        file.write_all(&[jt, jf])?;
        file.write_all(&k.to_ne_bytes())?;
    }
    file.rewind()?;
    // SAFETY: this process is about to exec, so nobody owns that number or will miss what it was.
    Errno::result(unsafe { libc::dup2(file.as_raw_fd(), FILTER) })?;
    Ok(())
}

/// The options up to and with `--`.
pub(super) fn arguments(confinement: &Confinement) -> io::Result<Vec<OsString>> {
    let plan = Plan::of(confinement)?;
    let mut options = Options(Vec::new());
    options.add([
        "--die-with-parent",
        "--unshare-user",
        "--unshare-uts",
        "--unshare-pid",
        "--unshare-ipc",
        "--cap-drop",
        "ALL",
    ]);
    match confinement.network {
        Network::Open => {}
        Network::Off => options.add(["--unshare-net"]),
        Network::Proxied => {
            return Err(failed("let only the proxy through", "bwrap cannot; it needs namespaces of our own"));
        }
    }
    if plan.from_everything {
        options.add(["--ro-bind", "/", "/"]);
    }
    options.add([
        "--proc",
        "/proc",
        "--remount-ro",
        "/proc",
        "--dev",
        "/dev",
        "--remount-ro",
        "/dev",
        "--tmpfs",
        "/dev/shm",
    ]);
    for (at, layer) in plan.layers() {
        options.add_layer(at, layer)?;
    }
    for (at, layer) in plan.layers() {
        if matches!(layer, Layer::HiddenFolder { .. }) {
            options.add([OsStr::new("--remount-ro"), at.as_os_str()]);
        }
    }
    if !plan.from_everything {
        options.add(["--remount-ro", "/"]);
    }
    options.add(["--seccomp", &FILTER.to_string(), "--"]);
    Ok(options.0)
}

struct Options(Vec<OsString>);

impl Options {
    fn add<T: AsRef<OsStr>>(&mut self, words: impl IntoIterator<Item = T>) {
        self.0.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
    }

    fn add_layer(&mut self, at: &Path, layer: &Layer) -> io::Result<()> {
        let at = at.as_os_str();
        if let Layer::ReadOnly(source) | Layer::Writable(source) | Layer::Pinned(source) = layer {
            // bwrap would follow a link, and nothing that an earlier command started is left to put one there now.
            open_plain(source).map_err(step(format_args!("show {}", source.display())))?;
        }
        let tmpfs = |mode: &'static str| [OsStr::new("--perms"), mode.as_ref(), "--tmpfs".as_ref(), at];
        match layer {
            Layer::ReadOnly(source) => self.add([OsStr::new("--ro-bind"), source.as_os_str(), at]),
            Layer::Writable(source) | Layer::Pinned(source) => self.add([OsStr::new("--bind"), source.as_os_str(), at]),
            Layer::Scratch { shared: true } => self.add(tmpfs("1777")),
            Layer::Scratch { shared: false } => self.add(tmpfs("0755")),
            Layer::HiddenFolder { passage: true } => self.add(tmpfs("0111")),
            Layer::HiddenFolder { passage: false } => self.add(tmpfs("0000")),
            // Mounts of bwrap's have no devices, so this one cannot be opened.
            Layer::HiddenFile => self.add([OsStr::new("--ro-bind"), "/dev/null".as_ref(), at]),
            Layer::Link(target) => self.add([OsStr::new("--symlink"), target.as_os_str(), at]),
            Layer::Overlay { .. } => {
                let step = format!("keep changes apart of {}", Path::new(at).display());
                return Err(failed(step, "bwrap 0.8 has no overlays; it needs namespaces of our own"));
            }
        }
        Ok(())
    }
}
