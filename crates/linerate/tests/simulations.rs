//! Searches, tests of RFC 2544 and reports of simulated DUTs.

mod reports;
mod rfc2544;
mod searches;
mod stability;
