//! Where an IP address leads: two tables, and the IPv6 forms that carry an IPv4 address inside.
//!
//! The tricky idea: an IPv6 address may be a costume for an IPv4 one, and a gateway, a relay or the kernel takes the
//! costume off on the way. So every address is judged as itself and as everything it may carry; the worst counts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use self::Reach::{Local, Never, Public};

/// How far away an address is, from harmless to forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Anybody can reach it.
    Public,
    /// This machine or its surroundings; `security.allow_private_urls` or the allow-list opens it.
    Local,
    /// The metadata of a cloud, or nothing that can be dialled; no setting opens it.
    Never,
}

/// An address, judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// How far away it is.
    pub reach: Reach,
    /// What it is, in words with an article: `a loopback address`.
    pub what: &'static str,
    /// The IPv4 address inside that decided, if one did.
    pub carries: Option<Ipv4Addr>,
}

const METADATA: &str = "a metadata service of a cloud";
const PRIVATE: &str = "a private address";
const LOOPBACK: &str = "a loopback address";
const UNSPECIFIED: &str = "an unspecified address, which means this machine";
const DOCUMENTATION: &str = "an address for documentation";
const BENCHMARK: &str = "an address for benchmarks, which proxies use for themselves";
const RESERVED: &str = "a reserved address";
const MULTICAST: &str = "a multicast address";

/// The first row that holds decides. Sources: IANA special-purpose registry (RFC 6890 and successors); for metadata the
/// vendors: Azure wire server, Alibaba, Oracle Classic; 169.254/16 serves AWS, ECS, Google, Azure, Tencent and others.
const V4: &[(Ipv4Addr, u32, Reach, &str)] = &[
    (Ipv4Addr::new(168, 63, 129, 16), 32, Never, METADATA),
    (Ipv4Addr::new(100, 100, 100, 200), 32, Never, METADATA),
    (Ipv4Addr::new(192, 0, 0, 192), 32, Never, METADATA),
    (Ipv4Addr::new(169, 254, 169, 254), 32, Never, METADATA),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Never, "a link-local address, where clouds serve their metadata"),
    (Ipv4Addr::BROADCAST, 32, Never, "the broadcast address"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Never, MULTICAST),
    (Ipv4Addr::UNSPECIFIED, 8, Local, UNSPECIFIED),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Local, LOOPBACK),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Local, PRIVATE),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Local, PRIVATE),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Local, PRIVATE),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Local, "an address shared behind a carrier's NAT"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Local, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Local, DOCUMENTATION),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Local, DOCUMENTATION),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Local, DOCUMENTATION),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Local, "the address of a 6to4 relay"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Local, BENCHMARK),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Local, RESERVED),
];

/// The same for IPv6. What lies outside of `2000::/3` and is not named is reserved; metadata of AWS, Google, Scaleway.
const V6: &[(Ipv6Addr, u32, Reach, &str)] = &[
    (Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0), 32, Never, METADATA),
    (Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254), 128, Never, METADATA),
    (Ipv6Addr::new(0xfd00, 0x0042, 0, 0, 0, 0, 0, 0x42), 128, Never, METADATA),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Never, MULTICAST),
    (Ipv6Addr::UNSPECIFIED, 128, Local, UNSPECIFIED),
    (Ipv6Addr::LOCALHOST, 128, Local, LOOPBACK),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, Local, "a link-local address"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Local, "a site-local address"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Local, "a unique local address"),
    (Ipv6Addr::new(0x2001, 0x0002, 0, 0, 0, 0, 0, 0), 48, Local, BENCHMARK),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32, Local, DOCUMENTATION),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Local, DOCUMENTATION),
    // Teredo is judged by what it carries; the rest of the protocol assignments is not for anybody to dial.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, Public, "a public address"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Local, RESERVED),
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, Public, "a public address"),
    (Ipv6Addr::new(0x0064, 0xff9b, 0, 0, 0, 0, 0, 0), 96, Public, "a public address behind NAT64"),
    (Ipv6Addr::new(0x0064, 0xff9b, 1, 0, 0, 0, 0, 0), 48, Local, "an address behind a local NAT64"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, Public, "a public IPv4 address"),
    (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, Public, "a public IPv4 address"),
    (Ipv6Addr::UNSPECIFIED, 96, Public, "a public IPv4 address"),
    (Ipv6Addr::UNSPECIFIED, 0, Local, RESERVED),
];

/// Judges an address by itself, whatever a policy says about it.
pub fn place(address: IpAddr) -> Place {
    match address {
        IpAddr::V4(v4) => place_v4(v4),
        IpAddr::V6(v6) => place_v6(v6),
    }
}

fn place_v4(address: Ipv4Addr) -> Place {
    let row = V4.iter().find(|(net, length, ..)| (address.to_bits() ^ net.to_bits()).leading_zeros() >= *length);
    let (reach, what) = row.map_or((Public, "a public address"), |(.., reach, what)| (*reach, *what));
    Place { reach, what, carries: None }
}

fn place_v6(address: Ipv6Addr) -> Place {
    let row = V6.iter().find(|(net, length, ..)| (address.to_bits() ^ net.to_bits()).leading_zeros() >= *length);
    let (reach, what) = row.map_or((Local, RESERVED), |(.., reach, what)| (*reach, *what));
    let own = Place { reach, what, carries: None };
    // `::` and `::1` are their own, not the addresses 0.0.0.0 and 0.0.0.1 in disguise.
    if address == Ipv6Addr::UNSPECIFIED || address == Ipv6Addr::LOCALHOST {
        return own;
    }
    carried(address).into_iter().flatten().fold(own, |worst, v4| {
        let inner = place_v4(v4);
        if inner.reach > worst.reach { Place { carries: Some(v4), ..inner } } else { worst }
    })
}

/// Every IPv4 address that somebody on the way may take out of an IPv6 address.
fn carried(address: Ipv6Addr) -> [Option<Ipv4Addr>; 5] {
    let o = address.octets();
    let s = address.segments();
    let v4 = |a: usize, b: usize, c: usize, d: usize| Some(Ipv4Addr::new(o[a], o[b], o[c], o[d]));
    let last = v4(12, 13, 14, 15);
    match s {
        // Mapped, translated (RFC 2765), compatible (RFC 4291 §2.5.5), NAT64 (RFC 6052).
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
            [last, None, None, None, None]
        }
        // A local NAT64 (RFC 8215): its prefix may be /48, /56, /64 or /96, and each puts the address elsewhere.
        [0x64, 0xff9b, 1, ..] => [v4(6, 7, 9, 10), v4(7, 9, 10, 11), v4(9, 10, 11, 12), last, None],
        // Teredo (RFC 4380 §4): the server as it is, the client with all bits turned.
        [0x2001, 0, ..] => {
            [v4(4, 5, 6, 7), Some(Ipv4Addr::new(!o[12], !o[13], !o[14], !o[15])), isatap(s, last), metadata(last), None]
        }
        // 6to4 (RFC 3056).
        [0x2002, ..] => [v4(2, 3, 4, 5), isatap(s, last), metadata(last), None, None],
        _ => [isatap(s, last), metadata(last), None, None, None],
    }
}

/// ISATAP (RFC 5214 §6.1): any prefix, and an interface that says so.
fn isatap(s: [u16; 8], last: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
    last.filter(|_| s[4] & !0x0300 == 0 && s[5] == 0x5efe)
}

/// A network's own NAT64 prefix cannot be known, but nobody has a host that ends like this by chance.
fn metadata(last: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
    last.filter(|v4| *v4 == Ipv4Addr::new(169, 254, 169, 254))
}
