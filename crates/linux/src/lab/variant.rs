//! The built-in variants of a DUT: what stands between the generator and the receiver.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A configuration of the DUT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Variant {
    /// No DUT: the generator's link ends at the receiver. The tester's own ceiling.
    TesterBaseline,
    /// The kernel's routing, nothing else.
    Forwarding,
    /// nftables, filter without connection tracking: accepts the test networks, drops the rest.
    NftStateless,
    /// nftables with connection tracking: established first, new ones of the test networks accepted, the rest dropped.
    NftStateful,
    /// nftables masquerade on the way out.
    Nat,
    /// A bridge instead of a router.
    Bridge,
    /// An XDP program that forwards by the kernel's routing table.
    Xdp,
    /// Passes exactly this many frames a second on each CPU. A DUT with a known answer, as are the following.
    KnownRate(u32),
    /// Loses one frame in this many.
    KnownLoss(u32),
    /// Sends one frame in this many twice.
    KnownDuplication(u32),
    /// Holds every frame up for this long.
    KnownDelay(Duration),
}

impl Variant {
    /// The names that a user can give, with what they mean.
    pub const HELP: [(&str, &str); 10] = [
        ("forwarding", "the kernel's routing, nothing else"),
        ("nft-stateless", "nftables filter without connection tracking"),
        ("nft-stateful", "nftables filter with connection tracking"),
        ("nat", "nftables masquerade"),
        ("bridge", "a bridge instead of a router"),
        ("xdp", "an XDP program that forwards by the kernel's routing table"),
        (
            "known-rate=R",
            "passes exactly R frames/s on each CPU: a DUT with a known answer, to check linerate itself",
        ),
        ("known-loss=N", "loses exactly every N-th frame"),
        ("known-duplication=N", "sends exactly every N-th frame twice"),
        ("known-delay=T", "holds every frame up for T, up to 200us"),
    ];

    /// Whether frames are addressed to the DUT (routing) or pass through it to the receiver.
    pub fn routes(&self) -> bool {
        !matches!(self, Variant::TesterBaseline | Variant::Bridge)
    }

    /// The nftables rule set of this variant, in nft's own language; `None` where there is none.
    ///
    /// Counters stand only where frames are dropped: a counter on the path would cost what is to be measured.
    pub fn ruleset(&self) -> Option<&'static str> {
        match self {
            Variant::NftStateless => Some(STATELESS),
            Variant::NftStateful => Some(STATEFUL),
            Variant::Nat => Some(NAT),
            _ => None,
        }
    }

    /// Whether the DUT is an eBPF program, which ends with this process.
    pub fn is_program(&self) -> bool {
        use Variant::{KnownDelay, KnownDuplication, KnownLoss, KnownRate, Xdp};
        matches!(self, Xdp | KnownRate(_) | KnownLoss(_) | KnownDuplication(_) | KnownDelay(_))
    }

    /// Whether connection tracking keeps an entry per flow.
    pub fn tracks_connections(&self) -> bool {
        matches!(self, Variant::NftStateful | Variant::Nat)
    }
}

const STATELESS: &str = "table inet linerate {
  counter dropped { }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ip daddr 198.18.0.0/15 accept
    ip6 daddr 2001:2::/48 accept
    counter name dropped drop
  }
}
";

const STATEFUL: &str = "table inet linerate {
  counter dropped { }
  chain forward {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    ip daddr 198.18.0.0/15 ct state new accept
    ip6 daddr 2001:2::/48 ct state new accept
    counter name dropped drop
  }
}
";

const NAT: &str = "table inet linerate {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    oifname \"out*\" masquerade
  }
}
";

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Variant::TesterBaseline => f.write_str("tester-baseline"),
            Variant::Forwarding => f.write_str("forwarding"),
            Variant::NftStateless => f.write_str("nft-stateless"),
            Variant::NftStateful => f.write_str("nft-stateful"),
            Variant::Nat => f.write_str("nat"),
            Variant::Bridge => f.write_str("bridge"),
            Variant::Xdp => f.write_str("xdp"),
            Variant::KnownRate(r) => write!(f, "known-rate={r}"),
            Variant::KnownLoss(n) => write!(f, "known-loss={n}"),
            Variant::KnownDuplication(n) => write!(f, "known-duplication={n}"),
            Variant::KnownDelay(t) => write!(f, "known-delay={}us", t.as_nanos() as f64 / 1000.0),
        }
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || {
            let names: Vec<&str> = Self::HELP.iter().map(|(n, _)| *n).collect();
            format!("'{text}' is no variant: there are {}", names.join(", "))
        };
        let Some((name, value)) = text.split_once('=') else {
            return match text {
                "forwarding" => Ok(Variant::Forwarding),
                "nft-stateless" => Ok(Variant::NftStateless),
                "nft-stateful" => Ok(Variant::NftStateful),
                "nat" => Ok(Variant::Nat),
                "bridge" => Ok(Variant::Bridge),
                "xdp" => Ok(Variant::Xdp),
                _ => Err(unknown()),
            };
        };
        let number = || match value.parse::<u32>() {
            Ok(n) if n > 0 => Ok(n),
            _ => Err(format!("{name} needs a whole number from 1 to {}, not '{value}'", u32::MAX)),
        };
        match name {
            "known-rate" => number().map(Variant::KnownRate),
            "known-loss" => number().map(Variant::KnownLoss),
            "known-duplication" => number().map(Variant::KnownDuplication),
            "known-delay" => delay(value).map(Variant::KnownDelay),
            _ => Err(unknown()),
        }
    }
}

/// The program waits by reading the clock a bounded number of times: 200 us is what that is good for everywhere.
fn delay(text: &str) -> Result<Duration, String> {
    match linerate_plan::units::parse_duration_ns(text)? {
        ns @ 1..=200_000 => Ok(Duration::from_nanos(ns)),
        _ => Err(format!("known-delay is at most 200us, not '{text}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for text in ["forwarding", "nft-stateless", "nft-stateful", "nat", "bridge", "xdp", "known-rate=1000"]
        {
            assert_eq!(text.parse::<Variant>().unwrap().to_string(), text);
        }
        assert_eq!(
            "known-delay=50us".parse::<Variant>().unwrap(),
            Variant::KnownDelay(Duration::from_micros(50))
        );
        for text in
            ["", "pf", "known-rate=0", "known-rate=x", "known-delay=1s", "tester-baseline", "forwarding=1"]
        {
            assert!(text.parse::<Variant>().is_err(), "{text}");
        }
    }
}
