//! The monitors' reports about documents of iperf3, its errors, and lines beside them.

use super::*;

#[test]
fn an_iperf3_document_in_pieces() {
    for size in [1, 7, 4096] {
        let mut monitor = Monitor::new(Backend::Iperf3, Side::Generator);
        for piece in CLIENT.as_bytes().chunks(size) {
            monitor.feed(piece);
        }
        monitor.end(Some(Status::Exit(0)), false);
        let report = monitor.report();
        assert_eq!(
            (report.state, report.faults.len()),
            (State::Over, 0),
            "{report:?}"
        );
        let frames: Vec<_> = report.samples.iter().map(|s| s.packets.unwrap()).collect();
        assert_eq!(frames, [1000, 2000, 2000], "omitted intervals do not count");
        let totals = report.totals;
        assert_eq!(
            (totals.packets, totals.lost, totals.said),
            (Some(5000), Some(40), true)
        );
    }
    let server = monitor(Backend::Iperf3, Side::Receiver, CLIENT);
    assert_eq!(server.report().totals.packets, Some(4960));
    assert_eq!(server.report().totals.seconds, Some(3.001));
}

#[test]
fn iperf3_s_errors_in_every_dress() {
    // 3.12 puts `error` into the document and ends with status 0; older ones have `error - ` in it.
    for (text, told) in [
        (
            "{\"start\":{},\"intervals\":[],\"end\":{},\"error\":\"unable to connect to server: Connection refused\"}\n",
            FaultKind::NoServer,
        ),
        (
            "{\"error\":\"error - the server is busy running a test. try again later\"}",
            FaultKind::Busy,
        ),
        (
            "iperf3: error - unable to start listener for connections: Address already in use\n",
            FaultKind::Busy,
        ),
        (
            "iperf3: error - control socket has closed unexpectedly\n",
            FaultKind::PeerGone,
        ),
        (
            "iperf3: unrecognized option '--json-stream'\nUsage: iperf3 [-s|-c host] [options]\n",
            FaultKind::BadArgument,
        ),
        (
            "{\"error\":\"unable to connect to server: Network is unreachable\"}",
            FaultKind::LinkDown,
        ),
        ("{\"error\":\"something new\"}", FaultKind::Other),
        (
            "bash: line 1: iperf3: command not found\n",
            FaultKind::NotInstalled,
        ),
    ] {
        let report = ended(
            Backend::Iperf3,
            Side::Generator,
            text,
            Some(Status::Exit(0)),
        );
        assert_eq!(
            (kinds(&report)[0], report.state),
            (told, State::Over),
            "{text} {report:?}"
        );
    }
    let stopped = "{\"intervals\":[{\"sum\":{\"seconds\":1,\"bytes\":9,\"bits_per_second\":72}}],\"end\":{\"sum_received\":{\"seconds\":40296.1,\
        \"bytes\":0}},\"error\":\"interrupt - the server has terminated\"}";
    let stopped = ended(
        Backend::Iperf3,
        Side::Receiver,
        stopped,
        Some(Status::Exit(0)),
    );
    assert_eq!(
        (stopped.state, stopped.faults.len(), stopped.totals.seconds),
        (State::Over, 0, Some(1.0))
    );
    let peer = "{\"end\":{},\"error\":\"the client has terminated\"}";
    assert_eq!(
        kinds(&ended(
            Backend::Iperf3,
            Side::Receiver,
            peer,
            Some(Status::Exit(0))
        )),
        [FaultKind::PeerGone]
    );
    let cut = ended(
        Backend::Iperf3,
        Side::Generator,
        &CLIENT[..CLIENT.len() / 2],
        Some(Status::Exit(0)),
    );
    assert_eq!(kinds(&cut), [FaultKind::Garbled, FaultKind::NoTraffic]);
    let broken = ended(
        Backend::Iperf3,
        Side::Generator,
        "{\"intervals\": 5}\n",
        Some(Status::Exit(0)),
    );
    assert_eq!(kinds(&broken)[0], FaultKind::Garbled);
}

#[test]
fn lines_beside_documents() {
    let text =
        format!("Warning: Permanently added 'x' (ED25519) to the list of known hosts.\n{CLIENT}");
    let report = ended(
        Backend::Iperf3,
        Side::Receiver,
        &text,
        Some(Status::Exit(0)),
    );
    assert_eq!(
        (report.samples.len(), report.faults.len(), report.state),
        (3, 0, State::Over)
    );
    let tcp = "{\"start\":{\"test_start\":{\"protocol\":\"TCP\",\"blksize\":131072}},\"intervals\":[{\"sum\":{\"end\":1,\"seconds\":1,\
        \"bytes\":1000000,\"bits_per_second\":8e6}}],\"end\":{}}";
    let report = ended(Backend::Iperf3, Side::Generator, tcp, Some(Status::Exit(0)));
    assert_eq!(
        (report.samples[0].packets, report.samples[0].bps),
        (None, Some(8e6))
    );
    let ready = monitor(
        Backend::Iperf3,
        Side::Receiver,
        "-----------\nServer listening on 5201 (test #1)\n-----------\n",
    );
    assert_eq!(ready.report().state, State::Up);
}
