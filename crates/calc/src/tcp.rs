//! Windows of TCP: bandwidth, round-trip time and the bytes between them.

use crate::Unit::{Bits, Bytes, Count, Time};
use crate::{CalcError, Calculation, GUIDE, Result, link_speed, within};

/// The largest window without scaling (RFC 9293).
const UNSCALED: f64 = 65_535.0;
/// The largest shift (RFC 7323 section 2.3).
const MOST_SHIFT: u8 = 14;

/// Bytes on the way where a link of so many bit/s has a round trip of so many nanoseconds: the bandwidth-delay product.
///
/// ```
/// # use linerate_calc::tcp::bdp_bytes;
/// assert_eq!(bdp_bytes(1e9, 80e6), 1e7);
/// ```
pub fn bdp_bytes(bits: f64, rtt_ns: f64) -> f64 {
    bits * rtt_ns / 8e9
}

/// The least window scale for a window of so many bytes (RFC 7323): `None` above 65,535 x 2^14, which TCP cannot have.
pub fn window_scale(bytes: f64) -> Option<u8> {
    (0..=MOST_SHIFT).find(|shift| UNSCALED * f64::from(1u32 << shift) >= bytes)
}

/// Bandwidth-delay product. Of link speed (bit/s), round-trip time (ns) and window (bytes) two are given; the third is computed.
///
/// # Errors
/// All or fewer than two of them, or impossible values.
pub fn bdp(link: Option<f64>, rtt_ns: Option<f64>, window: Option<f64>) -> Result {
    let link = link.map(link_speed).transpose()?;
    let rtt = rtt_ns
        .map(|ns| within("a round-trip time", ns, 1.0, 1e14, Time))
        .transpose()?;
    let window = window
        .map(|bytes| within("a window", bytes, 1.0, 1e15, Bytes))
        .transpose()?;
    let given = [
        ("link speed", link, Bits),
        ("round-trip time", rtt, Time),
        ("window", window, Bytes),
    ];
    let given = given
        .into_iter()
        .filter_map(|(name, value, unit)| Some((name, value?, unit)));
    let page = given.fold(
        Calculation::new("Bandwidth-delay product"),
        |page, (name, value, unit)| page.given(name, value, unit),
    );
    let (page, bytes) = match (link, rtt, window) {
        (Some(bits), Some(rtt), None) => window_of(page, bits, rtt),
        (None, Some(rtt), Some(window)) => {
            let bits = 8e9 * window / rtt;
            let (speed, time, size) = show(bits, rtt, window);
            let page = page.answer(format!(
                "A window of {size} carries at most {speed} at {time}."
            ));
            (page.result("rate", bits, Bits), window)
        }
        (Some(bits), None, Some(window)) => {
            let rtt = 8e9 * window / bits;
            let (speed, time, size) = show(bits, rtt, window);
            let page = page.answer(format!(
                "A window of {size} fills {speed} up to a round-trip time of {time}."
            ));
            (page.result("round-trip time", rtt, Time), window)
        }
        _ => {
            let text = "give two of link speed, round-trip time and window: the third is computed";
            return Err(CalcError::new(text));
        }
    };
    let page = match window_scale(bytes) {
        Some(shift) => page.result("window scale", shift, Count),
        None => {
            page.note("TCP has no window above 1 GiB (RFC 7323): several connections are needed.")
        }
    };
    Ok(page
        .formula(&[
            "bandwidth-delay product = bit/s x round-trip time / 8",
            "rate = window / round-trip time; window scale: the least s with 65,535 x 2^s >= window",
        ])
        .source("RFC 7323 sections 2.2 and 2.3; RFC 6349").source(format!("{GUIDE}, section \"Why do these speed tweaks work?\""))
        .note("For end hosts of TCP: a router's forwarding has no such buffer. Linux and FreeBSD tune windows by themselves up to the limits that these values set.")
        .note("Linux keeps about half of a receive buffer for its own: the largest value of tcp_rmem is twice the window."))
}

/// The window that a link needs, in bytes, and the results that follow from it.
fn window_of(page: Calculation, bits: f64, rtt: f64) -> (Calculation, f64) {
    let bytes = bdp_bytes(bits, rtt);
    let (speed, time, size) = show(bits, rtt, bytes);
    let page = page
        .answer(format!(
            "A connection fills {speed} at {time} with a window of {size}."
        ))
        .result("bandwidth-delay product", bytes, Bytes)
        .result(
            "buffer, as a power of two",
            bytes.max(1.0).log2().ceil().exp2(),
            Bytes,
        )
        .result(
            "net.ipv4.tcp_rmem, largest value",
            2.0 * bytes.ceil(),
            Bytes,
        )
        .result(
            "frames of 1518 B on the way",
            (bytes / 1518.0).ceil(),
            Count,
        )
        .result(
            "rate without window scaling",
            (UNSCALED * 8e9 / rtt).min(bits),
            Bits,
        );
    (page, bytes)
}

fn show(bits: f64, rtt: f64, bytes: f64) -> (String, String, String) {
    (Bits.show(bits), Time.show(rtt), Bytes.show(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_leads_to_the_others() {
        let number = |page: Result, name| page.unwrap().number(name).unwrap();
        let window = number(
            bdp(Some(1e10), Some(13.4e6), None),
            "bandwidth-delay product",
        );
        assert_eq!(window, 16_750_000.0);
        assert_eq!(number(bdp(None, Some(13.4e6), Some(window)), "rate"), 1e10);
        assert_eq!(
            number(bdp(Some(1e10), None, Some(window)), "round-trip time"),
            13.4e6
        );
        for (bytes, shift) in [
            (1.0, Some(0)),
            (65_535.0, Some(0)),
            (65_536.0, Some(1)),
            (1_073_725_440.0, Some(14)),
            (1_073_725_441.0, None),
        ] {
            assert_eq!(window_scale(bytes), shift);
        }
    }

    #[test]
    fn two_values_are_needed_and_no_more() {
        for asked in [
            (None, None, None),
            (Some(1e9), None, None),
            (Some(1e9), Some(1e6), Some(1e6)),
            (Some(0.0), Some(1e6), None),
        ] {
            assert!(bdp(asked.0, asked.1, asked.2).is_err());
        }
        assert!(bdp(Some(1e9), Some(f64::NAN), None).is_err());
    }
}
