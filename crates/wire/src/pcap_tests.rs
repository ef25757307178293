//! Tests of `pcap` and `pcapng`.
