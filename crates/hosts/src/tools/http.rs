//! nginx and wrk: a server and a client of HTTP, as they run at both ends of a DUT.

use linerate_measure::record::{Http, HttpErrors, HttpOf, HttpTrial};
use std::net::IpAddr;

/// The port of the server.
const PORT: u16 = 80;
/// The first of the ports, on the server's own host, at which its processes tell their counters.
pub const STATUS_PORT: u16 = 8081;

/// nginx's own counters, by `stub_status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections that are open, that for the counters as well.
    pub open: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Requests.
    pub requests: u64,
}

/// The configuration of one process of nginx, whose files are all in the folder in which it is started. `status`: the port of its counters.
pub fn nginx(server: IpAddr, status: u16) -> String {
    // One process without a master, which ends with linerate. The objects are files that are named by their bytes. Without root, in a user
    // namespace, root is the user itself, and nobody is not there; where linerate has made nginx nobody, it stays nobody.
    format!(
        "daemon off;
user root root;
master_process off;
pid nginx-{status}.pid;
error_log stderr crit;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  log_not_found off;
  default_type application/octet-stream;
  sendfile on;
  tcp_nopush on;
  open_file_cache max=16;
  keepalive_requests 1000000000;
  keepalive_timeout 3600;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  server {{ listen {server}:{PORT} backlog=4096 reuseport; root .; }}
  server {{ listen 127.0.0.1:{status}; location / {{ stub_status; }} }}
}}
"
    )
}

/// The arguments of nginx, which is started in `folder` with this configuration.
pub fn nginx_arguments(folder: &str, configuration: &str) -> [String; 6] {
    ["-e", "stderr", "-p", folder, "-c", configuration].map(String::from)
}

/// The request for nginx's counters.
pub const STATUS_REQUEST: &str = "GET / HTTP/1.0\r\n\r\n";

/// The counters in nginx's answer; `None` if it has none.
pub fn served(answer: &str) -> Option<Served> {
    let (_, counters) = answer.split_once("Active connections:")?;
    let (open, counters) = counters.split_once("requests")?;
    let mut counted = counters.split_whitespace().map(str::parse);
    let mut next = || counted.next()?.ok();
    let (accepted, _handled, requests) = (next()?, next()?, next()?);
    Some(Served {
        open: open.split_whitespace().next()?.parse().ok()?,
        accepted,
        requests,
    })
}

/// The script that wrk runs at its end: a line with its figures, in whole numbers.
pub const WRK_SCRIPT: &str = r#"function done(summary, latency)
  local e = summary.errors
  io.write(string.format("linerate %d %d %d %d %d %d %d %d", summary.requests, summary.duration, summary.bytes,
    e.connect, e.read, e.write, e.status, e.timeout))
  for _, p in ipairs({50, 90, 99, 99.9}) do io.write(string.format(" %d", latency:percentile(p))) end
  io.write(string.format(" %d\n", latency.max))
end
"#;

/// The arguments of wrk. `script`: the file with [`WRK_SCRIPT`].
pub fn wrk_arguments(
    of: &HttpOf,
    server: IpAddr,
    (threads, seconds): (u32, u64),
    script: &str,
) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut option = |name: &str, value: String| words.extend([name.to_string(), value]);
    option("-t", threads.to_string());
    option("-c", of.connections.to_string());
    option("-d", format!("{seconds}s"));
    option("-s", script.into());
    if of.http == Http::Close {
        option("-H", "Connection: close".into());
    }
    words.push(format!("http://{server}:{PORT}/{}", of.object));
    words
}

/// The figures in wrk's output; `None` if it has none. The server's own counts are not among them.
pub fn answered(output: &str) -> Option<HttpTrial> {
    let line = output
        .lines()
        .find_map(|line| line.strip_prefix("linerate "))?;
    let all: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    let [
        answered,
        took_us,
        read,
        connect,
        broken,
        write,
        status,
        late,
        ref times @ ..,
    ] = all.ok()?[..]
    else {
        return None;
    };
    let mut answer_ns: [u64; 5] = times.try_into().ok()?;
    for time in &mut answer_ns {
        *time = time.saturating_mul(1000);
    }
    let errors = HttpErrors {
        connect,
        read: broken,
        write,
        status,
        late,
    };
    Some(HttpTrial {
        answered,
        read,
        took_ns: took_us.saturating_mul(1000),
        answer_ns,
        errors,
        ..HttpTrial::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_figures_are_read() {
        let answer = "HTTP/1.1 200 OK\r\n\r\nActive connections: 3 \nserver accepts handled requests\n 19 18 189782 \nReading: 0 Writing: 1 Waiting: 2 \n";
        let expected = Served {
            open: 3,
            accepted: 19,
            requests: 189_782,
        };
        assert_eq!(served(answer), Some(expected));
        let output = "Running 1s test\n  29743 requests in 1.00s\nlinerate 29743 1000691 37862839 1 2 3 4 5 214 432 776 1500 1677\n";
        let found = answered(output).unwrap();
        assert_eq!(
            (found.answered, found.took_ns, found.read),
            (29_743, 1_000_691_000, 37_862_839)
        );
        assert_eq!(
            found.answer_ns,
            [214_000, 432_000, 776_000, 1_500_000, 1_677_000]
        );
        let HttpErrors {
            connect,
            read,
            write,
            status,
            late,
        } = found.errors;
        assert_eq!([connect, read, write, status, late], [1, 2, 3, 4, 5]);
    }

    #[test]
    fn other_answers_are_none() {
        for answer in [
            "",
            "Active connections:",
            "Active connections: 1 requests 1 2",
            "requests",
        ] {
            assert_eq!(served(answer), None, "{answer}");
        }
        for output in [
            "",
            "linerate 1 2 3",
            "linerate 1 2 3 4 5 6 7 8 9 10 11 12 -1",
            "linerate",
        ] {
            assert_eq!(answered(output), None, "{output}");
        }
    }

    #[test]
    fn a_connection_for_each_request_is_asked_for() {
        let of = |http| HttpOf {
            http,
            object: 1024,
            connections: 16,
        };
        let words =
            |http| wrk_arguments(&of(http), "198.19.1.2".parse().unwrap(), (1, 2), "/s").join(" ");
        assert_eq!(
            words(Http::KeepAlive),
            "-t 1 -c 16 -d 2s -s /s http://198.19.1.2:80/1024"
        );
        assert!(words(Http::Close).contains("-H Connection: close"));
    }
}
