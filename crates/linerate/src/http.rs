//! HTTP/1.1 for browsers: GET and HEAD, one request for each connection, with bounds on its size, its time and their number.

use anyhow::{Context, Result};
use linerate_runner::interrupt::interrupted;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a request, and its header fields.
const MOST_BYTES: usize = 8192;
const MOST_FIELDS: usize = 64;
/// Connections at the same time, which browsers open before they ask: as many as the usual 1,024 descriptors have room for.
const MOST_CONNECTIONS: usize = 800;
/// For the request, and for the answer.
const TIME_TO_ASK: Duration = Duration::from_secs(5);
const TIME_TO_ANSWER: Duration = Duration::from_secs(30);
/// How often Ctrl-C is looked for.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// An answer to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: &'static str,
    /// Media type of the body.
    pub kind: &'static str,
    pub body: Vec<u8>,
    /// Seconds after which a browser asks again.
    pub again: Option<u32>,
}

impl Answer {
    pub fn page(html: String) -> Answer {
        Answer {
            status: "200 OK",
            kind: "text/html; charset=utf-8",
            body: html.into(),
            again: None,
        }
    }

    pub fn refused(status: &'static str, why: &str) -> Answer {
        Answer {
            status,
            kind: "text/plain; charset=utf-8",
            body: format!("{why}\n").into(),
            again: None,
        }
    }
}

/// Answers requests until Ctrl-C. `answer` gets the decoded path of the address.
///
/// # Errors
/// No connection can be waited for.
pub fn serve(
    listener: &TcpListener,
    answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> Result<()> {
    let here = Arc::new(Here {
        address: listener.local_addr()?,
        name: host_name(),
        answer,
    });
    let open = Arc::new(AtomicUsize::new(0));
    // A connection that was given up again must not be waited for.
    listener.set_nonblocking(true)?;
    while !interrupted() {
        match poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error).context("waiting for connections"),
        }
        let Ok((stream, _)) = listener.accept() else {
            continue;
        };
        let _ = stream.set_nonblocking(false);
        if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            let busy =
                Answer::refused("503 Service Unavailable", "too many connections: try again");
            let _ = send(
                &stream,
                &busy,
                true,
                Instant::now() + Duration::from_millis(100),
            );
            continue;
        }
        let (here, counted) = (here.clone(), open.clone());
        let handle = move || {
            let _guard = Counted(counted);
            let _ = here.handle(&stream);
        };
        // Without a thread the connection is closed, and counts no more.
        let _ = thread::Builder::new().name("http".into()).spawn(handle);
    }
    Ok(())
}

/// One open connection, until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .to_ascii_lowercase()
}

/// The server as its connections see it.
struct Here<F> {
    address: SocketAddr,
    /// The machine's own name.
    name: String,
    answer: F,
}

impl<F: Fn(&str) -> Answer> Here<F> {
    fn handle(&self, stream: &TcpStream) -> io::Result<()> {
        let (answer, whole) = match self.asked(stream)? {
            Ok((path, whole)) => ((self.answer)(&path), whole),
            Err(refusal) => (refusal, true),
        };
        send(stream, &answer, whole, Instant::now() + TIME_TO_ANSWER)?;
        // A connection that is closed while something is unread is reset, and the answer lost.
        stream.shutdown(std::net::Shutdown::Write)?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        io::copy(&mut stream.take(1 << 16), &mut io::sink())?;
        Ok(())
    }

    /// The path that is asked for, and whether with its content; or why it is refused.
    fn asked(&self, mut stream: &TcpStream) -> io::Result<Result<(String, bool), Answer>> {
        let until = Instant::now() + TIME_TO_ASK;
        let mut head = Vec::new();
        loop {
            let mut part = [0; 2048];
            let got = match left(until).and_then(|left| {
                stream.set_read_timeout(Some(left))?;
                stream.read(&mut part)
            }) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(got) => got,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    return Ok(Err(Answer::refused(
                        "408 Request Timeout",
                        "the request took too long",
                    )));
                }
                Err(e) => return Err(e),
            };
            head.extend_from_slice(&part[..got]);
            if head.len() > MOST_BYTES {
                let status = "431 Request Header Fields Too Large";
                return Ok(Err(Answer::refused(status, "the request is too long")));
            }
            if let Some(read) = self.read(&head) {
                return Ok(read);
            }
        }
    }

    /// `None` while a part is lacking.
    fn read(&self, head: &[u8]) -> Option<Result<(String, bool), Answer>> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let bad = |why| Some(Err(Answer::refused("400 Bad Request", why)));
        match request.parse(head) {
            Ok(httparse::Status::Partial) => return None,
            Ok(httparse::Status::Complete(_)) => {}
            Err(_) => return bad("this is no HTTP request"),
        }
        let whole = match request.method {
            Some("GET") => true,
            Some("HEAD") => false,
            _ => {
                return Some(Err(Answer::refused(
                    "405 Method Not Allowed",
                    "only GET and HEAD are answered",
                )));
            }
        };
        // A page of another site may have its own name lead here (DNS rebinding): then that name is the host.
        let mut hosts = request
            .headers
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case("host"));
        let host = hosts
            .next()
            .and_then(|field| std::str::from_utf8(field.value).ok());
        match (host, hosts.next()) {
            (Some(host), None) if self.is_named(host) => {}
            _ => {
                let why = "this server answers to its addresses, to localhost and to this machine's name alone";
                return Some(Err(Answer::refused("421 Misdirected Request", why)));
            }
        }
        let path = request.path.unwrap_or_default();
        let path = path.split(['?', '#']).next().unwrap_or_default();
        match decoded(path) {
            Some(path) if path.starts_with('/') => Some(Ok((path, whole))),
            _ => bad("no page has this address"),
        }
    }

    fn is_named(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let loopback = self.address.ip().is_loopback();
        match name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
        {
            Ok(address) => !loopback || address.is_loopback(),
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    || (!loopback && name.eq_ignore_ascii_case(&self.name))
            }
        }
    }
}

/// A path without its escapes; `None` if it is no text, or has control characters.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let value = 16 * digit(rest.next()?)? + digit(rest.next()?)?;
                value as u8
            }
            byte => byte,
        });
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.chars().any(char::is_control)).then_some(text)
}

fn left(until: Instant) -> io::Result<Duration> {
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// `whole`: with its content.
fn send(mut stream: &TcpStream, answer: &Answer, whole: bool, until: Instant) -> io::Result<()> {
    let Answer {
        status,
        kind,
        body,
        again,
    } = answer;
    let allow = if status.starts_with("405") {
        "Allow: GET, HEAD\r\n"
    } else {
        ""
    };
    let again = again.map_or(String::new(), |seconds| format!("Refresh: {seconds}\r\n"));
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}{again}\
         Content-Security-Policy: frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-cache\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let body: &[u8] = if whole { body } else { &[] };
    for part in [head.as_bytes()].into_iter().chain(body.chunks(1 << 16)) {
        let mut rest = part;
        while !rest.is_empty() {
            stream.set_write_timeout(Some(left(until)?))?;
            match stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(taken) => rest = &rest[taken..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(address: &str) -> Here<impl Fn(&str) -> Answer> {
        let answer = |_: &str| Answer::page(String::new());
        Here {
            address: address.parse().unwrap(),
            name: "lab".into(),
            answer,
        }
    }

    #[test]
    fn a_name_that_another_site_may_have_is_refused() {
        let local = here("127.0.0.1:2544");
        for own in [
            "localhost",
            "LOCALHOST:2544",
            "127.0.0.1:2544",
            "127.9.9.9",
            "[::1]:2544",
            "[::1]",
        ] {
            assert!(local.is_named(own), "{own}");
        }
        for other in [
            "",
            "lab",
            "evil.example",
            "localhost.evil.example",
            "192.0.2.1",
            "127.0.0.1.nip.io:2544",
            "::1:x",
        ] {
            assert!(!local.is_named(other), "{other}");
        }
        let open = here("0.0.0.0:2544");
        for own in [
            "localhost",
            "lab:2544",
            "192.0.2.1:2544",
            "[2001:db8::1]:2544",
        ] {
            assert!(open.is_named(own), "{own}");
        }
        assert!(!open.is_named("evil.example"));
    }

    #[test]
    fn any_bytes_are_refused_or_waited_for() {
        let here = here("127.0.0.1:2544");
        let status = |text: &str| match here.read(text.as_bytes()) {
            None => "waits",
            Some(Ok(_)) => "200",
            Some(Err(answer)) => &answer.status[..3],
        };
        let ask = |line: &str| status(&format!("{line}\r\nHost: localhost\r\n\r\n"));
        assert_eq!(ask("GET / HTTP/1.1"), "200");
        assert_eq!(ask("HEAD /a%20b?x=1 HTTP/1.0"), "200");
        assert_eq!(ask("POST / HTTP/1.1"), "405");
        for line in [
            "GET http://localhost/ HTTP/1.1",
            "GET * HTTP/1.1",
            "GET /% HTTP/1.1",
            "GET /%zz HTTP/1.1",
            "GET /%00 HTTP/1.1",
            "GET /%ff HTTP/1.1",
            "GET /%0d%0aSet-Cookie:x HTTP/1.1",
            "GET / HTTP/9.9",
            "\u{16}\u{3}\u{1}",
        ] {
            assert_eq!(ask(line), "400", "{line}");
        }
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "421");
        assert_eq!(
            status("GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
            "421"
        );
        assert_eq!(
            status("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
            "421"
        );
        assert_eq!(status("GET / HTTP/1.1\r\nHost: localhost\r\n"), "waits");
        assert_eq!(
            status(&format!(
                "GET / HTTP/1.1\r\n{}\r\n",
                "a: b\r\n".repeat(MOST_FIELDS + 1)
            )),
            "400"
        );
    }
}
