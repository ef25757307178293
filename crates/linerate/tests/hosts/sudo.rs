//! A DUT whose user is not root, and may run programs as root.

use super::lab::{RealLab, gentle};

/// Records its arguments, and sets a variable by which programs see that it runs them.
const SUDO: &str = r#"#!/bin/sh
[ "$1" = -n ] || exit 1
shift
[ "$1" != -- ] || shift
echo "$*" >>"$HOME/by-sudo"
BY_SUDO=1 exec "$@"
"#;
const NFT: &str = r#"#!/bin/sh
[ "$BY_SUDO" ] || { echo "Operation not permitted (you must be root)" >&2; exit 1; }
exec /usr/sbin/nft "$@"
"#;

#[test]
#[ignore = "needs root, openssh-server and nft"]
fn a_campaign_by_sudo_ends_commands_that_hang() {
    let lab = RealLab::new();
    let dut = &lab.ssh.hosts[1];
    dut.stand_in("id", "#!/bin/sh\necho 1001\n");
    dut.stand_in("sudo", SUDO);
    dut.stand_in("nft", NFT);
    let file = std::fs::read_to_string(lab.scratch.file("LAB.toml")).unwrap();
    let collect = r#"[collect]
during = [
  "echo hangs $BY_SUDO; exec sleep 1000",
  "trap '' TERM INT HUP; echo holds out; while :; do sleep 0.1; done",
]
commands = ["nft list ruleset | wc -l"]

[trials]"#;
    let plan = gentle()
        .replace("[trials]", collect)
        .replace("blocks = 8", "blocks = 1\norder = \"sequential\"");
    let ended = lab.run(&plan, &[]);
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("dut: ") && ended.stderr.contains("sudo"),
        "{}",
        ended.stderr
    );

    lab.write(
        "LAB.toml",
        &file.replace("ssh = \"dut\"", "ssh = \"dut\"\nsudo = true"),
    );
    let ended = lab.run(&plan, &[]);
    let trials = lab.trials();
    assert_eq!(trials.len(), 2, "{}", ended.stderr);
    for (trial, rules) in trials.iter().zip([0..1, 1000..2000]) {
        let said = |n: usize| {
            trial["collected"][n]["output"]
                .as_object()
                .unwrap()
                .values()
                .next()
                .unwrap()
        };
        let said = |n: usize| said(n).as_str().unwrap();
        assert!(
            said(0).contains("hangs 1") && said(1).contains("holds out"),
            "{:#}",
            trial["collected"]
        );
        assert!(
            rules.contains(&said(2).trim().parse().unwrap()),
            "{:#}",
            trial["collected"]
        );
    }
    assert_eq!(
        dut.running("sleep 1000") + dut.running("holds out"),
        0,
        "{:?}",
        dut.processes()
    );
    assert!(
        std::fs::read_to_string(dut.programs().with_file_name("by-sudo"))
            .unwrap()
            .lines()
            .count()
            > 4
    );
    lab.is_as_it_was();
}
