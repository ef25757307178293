//! `linerate serve`: hostile requests over loopback, a campaign that is being written, and a site's files.

use crate::common::{Bench, Running, Scratch, linerate, linerate_line, wait_for};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

const SIGINT: i32 = 2;

/// A server on a free port, and its address.
fn serve(directory: &Path) -> (Running, String) {
    let directory = directory.display().to_string();
    let mut server = linerate(["serve", &directory, "--listen", "127.0.0.1:0"]).start();
    let line = server.wait_for_line("http://");
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_string();
    (server, address)
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    stream
}

/// The answer to these bytes.
fn sent(address: &str, request: &[u8]) -> String {
    let mut stream = connect(address);
    // The server may have answered already.
    let _ = stream
        .write_all(request)
        .and_then(|()| stream.shutdown(Shutdown::Write));
    answer(stream)
}

fn answer(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(address: &str, path: &str) -> String {
    sent(
        address,
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes(),
    )
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("none")
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

fn campaigns() -> Scratch {
    let scratch = Scratch::new();
    for name in ["one", "two/deep", "it's <b>&\"é\""] {
        let out = scratch.path().join(name).display().to_string();
        let line = "bench --simulate ok --family 4 --trials 1 --duration 20ms --quiet --out";
        linerate(line.split(' ').chain([out.as_str()])).run().ok();
    }
    scratch
}

#[test]
fn nobody_gets_more_than_the_pages_of_campaigns() {
    let scratch = campaigns();
    fs::write(scratch.path().join("secret.txt"), "secret").unwrap();
    symlink("/etc", scratch.path().join("etc")).unwrap();
    let (server, at) = serve(scratch.path());
    let index = get(&at, "/");
    assert_eq!(status(&index), "200");
    for own in ["/one/", "/two/deep/", "/it%27s%20%3Cb%3E%26%22%C3%A9%22/"] {
        assert!(index.contains(&format!("href=\".{own}\"")), "no {own}");
        let page = get(&at, own);
        assert!(
            status(&page) == "200" && page.contains("SIMULATED") && !page.contains("Refresh:"),
            "{own}"
        );
        assert!(page.contains("Content-Security-Policy: frame-ancestors 'none'"));
    }
    for other in [
        "/secret.txt",
        "/one/campaign.json",
        "/one/../secret.txt",
        "/..%2f..%2fetc/passwd",
        "/etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/one%5c..",
        "/two",
        "/favicon.ico",
    ] {
        assert_eq!(status(&get(&at, other)), "404", "{other}");
    }
    let host = |text: &str| format!("GET / HTTP/1.1\r\n{text}\r\n");
    for rebound in [
        "",
        "Host: evil.example\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host: 192.0.2.1\r\n",
    ] {
        assert_eq!(
            status(&sent(&at, host(rebound).as_bytes())),
            "421",
            "{rebound}"
        );
    }
    let head = sent(&at, b"HEAD /one/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(
        status(&head) == "200" && body(&head).is_empty() && !head.contains("Content-Length: 0"),
        "{head}"
    );
    for method in [
        "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PRI",
    ] {
        let answer = sent(
            &at,
            format!(
                "{method} /one/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nsome=form"
            )
            .as_bytes(),
        );
        assert!(
            status(&answer) == "405" && answer.contains("Allow: GET, HEAD"),
            "{method} {answer}"
        );
    }
    for wrong in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
    ] {
        assert!(
            ["400", "404"].contains(&status(&sent(&at, wrong))),
            "{wrong:?}"
        );
    }
    let long = format!(
        "GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "a".repeat(100_000)
    );
    assert_eq!(status(&sent(&at, long.as_bytes())), "431");
    assert_eq!(
        status(&sent(&at, host(&"a: b\r\n".repeat(1000)).as_bytes())),
        "400"
    );
    server.signal(SIGINT);
    server.wait().ok();
}

#[test]
fn idle_and_many_connections_do_not_shut_others_out() {
    let scratch = campaigns();
    let (server, at) = serve(scratch.path());
    let mut idle: Vec<TcpStream> = (0..500).map(|_| connect(&at)).collect();
    assert_eq!(status(&get(&at, "/")), "200", "beside 500 that are idle");
    for stream in &mut idle {
        stream.write_all(b"GET / HT").unwrap();
    }
    for stream in idle {
        assert_eq!(status(&answer(stream)), "408");
    }
    wait_for("more connections than there is room for", || {
        let _idle: Vec<TcpStream> = (0..800).map(|_| connect(&at)).collect();
        (status(&get(&at, "/")) == "503").then_some(())
    });
    // Connections that are over are counted until their threads end.
    wait_for("the threads of connections that are over", || {
        (status(&get(&at, "/")) == "200").then_some(())
    });
    server.signal(SIGINT);
    server.wait().ok();
}

#[test]
fn the_page_of_a_running_campaign_renews_itself() {
    let bench = Bench::new(
        "--simulate ok --family 4 --trials 1000000 --budget 24h --duration 20ms --quiet",
    );
    let records = bench.directory();
    let mut running = bench.program().start();
    while fs::metadata(records.join("trials.jsonl")).map_or(true, |file| file.len() < 20_000) {
        assert!(running.runs(), "{:?}", running.wait());
        std::thread::sleep(Duration::from_millis(10));
    }
    let (server, at) = serve(records.parent().unwrap());
    assert!(get(&at, "/").contains("<td>running</td>"));
    let page = get(&at, "/records/");
    assert!(
        status(&page) == "200" && page.contains("\r\nRefresh: 5\r\n"),
        "{page}"
    );
    assert!(page.contains("This page refreshes itself every 5 s."));
    assert!(page.contains("This campaign is running: ") && body(&page).ends_with("</html>\n"));
    running.signal(SIGINT);
    running.wait();
    assert!(!get(&at, "/").contains("<td>running</td>"));
    let page = get(&at, "/records/");
    assert!(status(&page) == "200" && !page.contains("Refresh:"));
    server.signal(SIGINT);
    server.wait().ok();
}

#[test]
fn a_site_is_served_without_hidden_files_and_links() {
    let scratch = Scratch::new();
    let site = scratch.path().join("site");
    fs::create_dir_all(site.join("data")).unwrap();
    fs::create_dir_all(site.join("empty")).unwrap();
    for (name, text) in [
        ("index.html", "<p>here"),
        ("data/a b.json", "{}"),
        ("data/index.html", "<p>data"),
        (".secret", "s"),
    ] {
        fs::write(site.join(name), text).unwrap();
    }
    fs::write(scratch.path().join("outside.txt"), "outside").unwrap();
    symlink("../outside.txt", site.join("link.txt")).unwrap();
    symlink("..", site.join("up")).unwrap();
    let (server, at) = serve(&site);
    for (path, kind, text) in [
        ("/", "text/html", "<p>here"),
        ("/data/", "text/html", "<p>data"),
        ("/data/a%20b.json?x", "application/json", "{}"),
    ] {
        let answer = get(&at, path);
        assert!(
            status(&answer) == "200" && answer.contains(kind) && body(&answer) == text,
            "{path} {answer}"
        );
    }
    for path in [
        "/.secret",
        "/link.txt",
        "/up/outside.txt",
        "/../outside.txt",
        "/%2e%2e/outside.txt",
        "/data/..%2f..%2foutside.txt",
        "/data/../.secret",
        "//etc/passwd",
        "/empty/",
        "/data",
        "/none",
    ] {
        assert_eq!(status(&get(&at, path)), "404", "{path}");
    }
    server.signal(SIGINT);
    server.wait().ok();
}

#[test]
fn other_machines_need_an_option() {
    let scratch = campaigns();
    let refused = linerate_line("serve . --listen 0.0.0.0:0")
        .dir(scratch.path())
        .run();
    refused.fails(2, &["0.0.0.0:0", "--allow-network", "ssh -L"]);
    let mut server = linerate_line("serve . --listen 0.0.0.0:0 --allow-network")
        .dir(scratch.path())
        .start();
    server.wait_for_line("http://0.0.0.0:");
    server.signal(SIGINT);
    assert!(
        server
            .wait()
            .ok()
            .stderr
            .contains("everyone who reaches 0.0.0.0:0")
    );
    linerate_line("serve none").run().fails(1, &["none"]);
}

#[test]
fn an_empty_folder_is_served_and_shows_the_campaigns_that_come() {
    let scratch = Scratch::new();
    let (server, at) = serve(scratch.path());
    let list = get(&at, "/");
    assert!(
        status(&list) == "200" && list.contains("No campaign is here yet."),
        "{list}"
    );
    assert!(list.contains("\r\nRefresh: 5\r\n"), "{list}");
    let out = scratch.file("first");
    linerate_line(&format!(
        "bench --simulate ok --family 4 --trials 1 --duration 20ms --quiet --out {out}"
    ))
    .run()
    .ok();
    let list = get(&at, "/");
    assert!(
        list.contains("href=\"./first/\"") && !list.contains("No campaign"),
        "{list}"
    );
    assert_eq!(status(&get(&at, "/first/")), "200");
    server.signal(SIGINT);
    assert!(server.wait().ok().stderr.contains("neither campaigns nor"));
}
