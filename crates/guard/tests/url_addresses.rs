//! Laws of addresses: what is private stays private in every costume.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hermes_guard::url_policy::{Reach, UrlPolicy, place};
use proptest::prelude::*;

/// Every way an IPv6 address may carry an IPv4 address.
fn costumes(v4: Ipv4Addr, noise: u64) -> Vec<Ipv6Addr> {
    let bits = u128::from(v4.to_bits());
    let [a, b, c, d] = v4.octets().map(u128::from);
    let noise = u128::from(noise);
    let prefix = |high: u16| u128::from(high) << 112;
    let local_nat64 = 0x0064_ff9b_0001_u128 << 80;
    [
        0xffff_u128 << 32 | bits,
        0xffff_u128 << 48 | bits,
        bits,
        0x0064_ff9b_u128 << 96 | bits,
        local_nat64 | bits,
        local_nat64 | a << 72 | b << 64 | c << 48 | d << 40,
        local_nat64 | a << 64 | b << 48 | c << 40 | d << 32,
        local_nat64 | a << 48 | b << 40 | c << 32 | d << 24,
        prefix(0x2002) | bits << 80 | noise,
        prefix(0x2001) | (0x0808_0808_u128 << 64) | (!bits & 0xffff_ffff),
        prefix(0x2001) | bits << 64 | (!0x0808_0808_u128 & 0xffff_ffff),
        prefix(0x2a00) | noise >> 16 << 64 | 0x0000_5efe_u128 << 32 | bits,
        prefix(0x2a00) | noise >> 16 << 64 | 0x0200_5efe_u128 << 32 | bits,
    ]
    .map(Ipv6Addr::from_bits)
    .to_vec()
}

fn not_public() -> impl Strategy<Value = Ipv4Addr> {
    let within = |net: [u8; 4], length: u32| {
        any::<u32>().prop_map(move |bits| {
            let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
            Ipv4Addr::from_bits(Ipv4Addr::from(net).to_bits() & mask | bits & !mask)
        })
    };
    prop_oneof![
        within([10, 0, 0, 0], 8),
        within([172, 16, 0, 0], 12),
        within([192, 168, 0, 0], 16),
        within([127, 0, 0, 0], 8),
        within([169, 254, 0, 0], 16),
        within([100, 64, 0, 0], 10),
        within([0, 0, 0, 0], 8),
        within([224, 0, 0, 0], 3),
        within([198, 18, 0, 0], 15),
        within([192, 0, 2, 0], 24),
        within([168, 63, 129, 16], 32),
    ]
}

proptest! {
    #[test]
    fn what_is_not_public_is_refused_in_every_costume(v4 in not_public(), noise: u64) {
        let policy = UrlPolicy::default();
        prop_assert!(policy.check_address(IpAddr::V4(v4)).is_err());
        for v6 in costumes(v4, noise) {
            prop_assert!(policy.check_address(IpAddr::V6(v6)).is_err(), "{v6} carries {v4}");
            prop_assert!(policy.check_url(&format!("http://[{v6}]/")).is_err(), "{v6} carries {v4}");
            prop_assert!(place(IpAddr::V6(v6)).reach >= place(IpAddr::V4(v4)).reach);
        }
    }

    #[test]
    fn a_number_that_spells_an_address_is_judged_as_it(v4: Ipv4Addr) {
        let policy = UrlPolicy::default();
        let [a, b, c, d] = v4.octets();
        let expected = policy.check_address(IpAddr::V4(v4)).is_ok();
        for host in [
            v4.to_string(),
            v4.to_bits().to_string(),
            format!("{:#x}", v4.to_bits()),
            format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
            format!("{a:#x}.{b}.{}", u32::from(c) << 8 | u32::from(d)),
        ] {
            prop_assert_eq!(policy.check_url(&format!("http://{host}/")).is_ok(), expected, "{}", host);
        }
    }

    #[test]
    fn no_text_makes_the_policy_panic(text in "\\PC{0,40}", location in any::<String>()) {
        for text in [text.clone(), format!("http://{text}"), format!("https://{text}/x")] {
            if let Ok(url) = UrlPolicy::default().check_url(&text) {
                let again = UrlPolicy::default().check_url(url.url().as_str());
                prop_assert!(again.is_ok(), "{} was accepted as {}", text, url.url());
                let _ = url.redirect(&location);
            }
        }
    }
}

#[test]
fn public_addresses_stay_reachable() {
    let policy = UrlPolicy::default();
    for text in [
        "8.8.8.8",
        "1.1.1.1",
        "172.15.0.1",
        "172.32.0.1",
        "100.63.0.1",
        "100.128.0.1",
        "169.253.1.1",
        "192.167.1.1",
        "198.17.0.1",
        "198.20.0.1",
        "223.255.255.255",
        "168.63.129.17",
        "2606:4700::1111",
        "2a00:1450:4001::200e",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
        "2001:4860:4860::8888",
    ] {
        policy.check_address(text.parse().expect(text)).expect(text);
    }
}

#[test]
fn every_special_range_is_named() {
    for (text, reach, what) in [
        ("192.0.0.1", Reach::Local, "a reserved address"),
        ("192.88.99.1", Reach::Local, "the address of a 6to4 relay"),
        ("203.0.113.7", Reach::Local, "an address for documentation"),
        ("250.1.1.1", Reach::Local, "a reserved address"),
        ("224.0.0.251", Reach::Never, "a multicast address"),
        ("ff02::1", Reach::Never, "a multicast address"),
        ("fe80::1", Reach::Local, "a link-local address"),
        ("fec0::1", Reach::Local, "a site-local address"),
        ("fd12:3456::1", Reach::Local, "a unique local address"),
        ("fd00:ec2::23", Reach::Never, "a metadata service of a cloud"),
        ("fd20:ce::254", Reach::Never, "a metadata service of a cloud"),
        ("2001:db8::1", Reach::Local, "an address for documentation"),
        ("3fff:123::1", Reach::Local, "an address for documentation"),
        ("100::1", Reach::Local, "a reserved address"),
        ("5f00::1", Reach::Local, "a reserved address"),
        ("4000::1", Reach::Local, "a reserved address"),
        ("64:ff9b:1::808:808", Reach::Local, "an address behind a local NAT64"),
        ("2a00::a9fe:a9fe", Reach::Never, "a metadata service of a cloud"),
    ] {
        let place = place(text.parse().expect(text));
        assert_eq!((place.reach, place.what), (reach, what), "{text}");
    }
}
