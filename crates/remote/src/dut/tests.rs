use super::*;

#[test]
fn what_netstat_counts_is_what_the_ledger_takes() {
    let table = b"==> netstat -ibdnW <==\n\
        Name    Mtu Network       Address              Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop\n\
        igb0   1500 <Link#1>      00:0d:b9:41:ca:3c        1     2     3        100        4     5        200     0     6\n\
        igb1   1500 <Link#2>      00:0d:b9:41:ca:3d     1000    20     3     100000       40     0       2000     0     6\n";
    let ends = ["igb0", "igb1"].map(String::from);
    let seen = counters::read(Kernel::FreeBsd, &ends, table);
    assert_eq!(seen.links.len(), 2);
    let igb1 = &seen.links["igb1"];
    assert_eq!(
        (igb1["rx_packets"], igb1["rx_missed"], igb1["tx_dropped"]),
        (1000, 23, 6)
    );
}
