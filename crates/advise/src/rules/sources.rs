//! The sources of the rules: their names in the rules, and where they are found.

/// The source of an illustration of the 2018 paper.
macro_rules! paper {
    ($illustration:literal) => {
        concat!(
            "'Tuning FreeBSD for routing and firewalling' (2018), illustration ",
            $illustration
        )
    };
}
pub(super) use paper;

pub const PAGE: &str = "BSD Router Project, 'FreeBSD forwarding Performance'";
pub const LAB: &str = "BSD Router Project, lab of an IBM x3550 M3 with Intel 82580";
pub const P2015: &str = "'Measure Twice, Code Once' (2015), tables 2 and 3";
pub const GUIDE: &str = "calomel.org's guide";

/// A part of each source's name in the rules, and where it is found.
pub const SOURCES: &[(&str, &str)] = &[
    (
        "'Tuning FreeBSD",
        "Olivier Cochard-Labbé, 'Tuning FreeBSD for routing and firewalling', 2018",
    ),
    (
        "'Measure Twice",
        "George V. Neville-Neil and Jim Thompson, 'Measure Twice, Code Once: Network Performance Analysis for FreeBSD', 2015",
    ),
    (
        "Project, 'FreeBSD forw",
        "BSD Router Project (BSDRP), documentation: 'FreeBSD forwarding Performance'",
    ),
    (
        "lab of an IBM",
        "BSD Router Project (BSDRP), documentation: 'Forwarding performance lab of an IBM System x3550 M3 with Intel 82580'",
    ),
    (
        "calomel.org",
        "'Network Tuning and Performance', https://calomel.org/network_performance.html",
    ),
];
