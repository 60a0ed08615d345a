//! The network inside: a loopback device, and the proxy's door.
//!
//! A socket belongs for ever to the network namespace in which it was made. So the listener is made inside, where the
//! command can connect to it, and accepted from outside, where the network is; no forwarder is needed in between.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

/// What programs look for; most read the small letters, some the capital ones.
const PROXY_VARIABLES: [&str; 6] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// All variables that are set for a command with a way to the network.
pub(crate) const PROXY_NAMES: [&str; 8] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "NO_PROXY", "no_proxy"];

/// Switches on the loopback device of this network namespace.
#[expect(unsafe_code, reason = "ioctl(2) with a structure that nix does not know")]
pub(super) fn loopback_up() -> io::Result<()> {
    /// `SIOCSIFFLAGS`, in the type that this C library wants.
    const SET_FLAGS: libc::Ioctl = 0x8914;
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: zero bytes are a valid value of this structure of numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: the name, two letters and a zero, fits into the field's sixteen.
    unsafe { std::ptr::copy_nonoverlapping(c"lo".as_ptr(), request.ifr_name.as_mut_ptr(), 3) };
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = flags.try_into().map_err(io::Error::other)?;
    // SAFETY: the descriptor is open and the structure is the one of this request (netdevice(7)).
    Errno::result(unsafe { libc::ioctl(socket.as_raw_fd(), SET_FLAGS, &raw const request) })?;
    Ok(())
}

/// Listens on a free loopback port, sends the listener to `to`, and gives the variables that lead programs there.
pub(super) fn open_door(to: BorrowedFd<'_>) -> io::Result<Vec<(OsString, OsString)>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = format!("http://{}", listener.local_addr()?);
    let handles = [listener.as_raw_fd()];
    let message = [ControlMessage::ScmRights(&handles)];
    sendmsg::<()>(to.as_raw_fd(), &[IoSlice::new(b"L")], &message, MsgFlags::MSG_NOSIGNAL, None)?;
    let proxy = PROXY_VARIABLES.map(|name| (name.into(), address.clone().into()));
    let direct = NO_PROXY_VARIABLES.map(|name| (name.into(), "localhost,127.0.0.1,::1".into()));
    Ok(proxy.into_iter().chain(direct).collect())
}

/// The listener that [`Confinement::enter`](super::Confinement::enter) sent. Blocks until it is there; an end of the stream means that there will be none.
#[expect(unsafe_code, reason = "a received descriptor comes as a number")]
pub fn receive_listener(from: BorrowedFd<'_>) -> io::Result<TcpListener> {
    let mut space = nix::cmsg_space!(RawFd);
    let mut byte = [0];
    let mut buffer = [IoSliceMut::new(&mut byte)];
    let received = recvmsg::<()>(from.as_raw_fd(), &mut buffer, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    for message in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(handles) = message
            && let Some(handle) = handles.first()
        {
            // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
            return Ok(unsafe { OwnedFd::from_raw_fd(*handle) }.into());
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "sandbox: the command sent no listener for the proxy"))
}
