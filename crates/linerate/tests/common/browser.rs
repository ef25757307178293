//! A browser without a window, driven by chromedriver: its protocol is JSON over HTTP (W3C WebDriver).

use super::{Program, Running, Scratch};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The browser. It ends with this value.
pub struct Browser {
    port: u16,
    session: String,
    /// Chromedriver, and its files: both go after the session.
    _driver: Running,
    _files: Scratch,
}

impl Browser {
    /// A browser with an empty profile, whose window has 1,200 by 900 points.
    pub fn new() -> Self {
        let files = Scratch::new();
        let mut driver = Program::new("chromedriver")
            .args(["--port=0"])
            .env("HOME", &files.file(""))
            .start();
        let line = driver.wait_for_line("started successfully on port");
        let port = line
            .trim_end()
            .trim_end_matches('.')
            .rsplit(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let profile = format!("--user-data-dir={}", files.file("profile"));
        // With a pipe, the browser ends when chromedriver does.
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--remote-debugging-pipe",
            "--window-size=1200,900",
            &profile,
        ];
        let wanted = json!({ "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL" } });
        let mut browser = Browser {
            port,
            session: String::new(),
            _driver: driver,
            _files: files,
        };
        let made = browser.call(
            "POST",
            "/session",
            &json!({ "capabilities": { "alwaysMatch": wanted } }),
        );
        browser.session = made["sessionId"].as_str().unwrap().into();
        browser
    }

    /// Loads a file, or a page of a server.
    pub fn open(&self, page: &str) {
        let url = match page.starts_with("http://") {
            true => page.into(),
            false => format!("file://{page}"),
        };
        self.post("url", &json!({ "url": url }));
    }

    /// The value of a function body in the page.
    pub fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Clicks at the first element that a selector finds, where a person would.
    pub fn click(&self, selector: &str) {
        let found = self.post(
            "element",
            &json!({ "using": "css selector", "value": selector }),
        );
        let element = found
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap()
            .as_str()
            .unwrap();
        self.post(&format!("element/{element}/click"), &json!({}));
    }

    /// Types keys: characters, and those of WebDriver, such as [`TAB`].
    pub fn press(&self, keys: &str) {
        let stroke =
            |key: char| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key }));
        let strokes: Vec<Value> = keys.chars().flat_map(stroke).collect();
        self.post(
            "actions",
            &json!({ "actions": [{ "type": "key", "id": "keys", "actions": strokes }] }),
        );
    }

    /// The width of the window, and whether its user prefers dark pages.
    pub fn look(&self, width: u32, dark: bool) {
        let size =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
        let wanted = json!([{ "name": "prefers-color-scheme", "value": if dark { "dark" } else { "light" } }]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": wanted }));
    }

    /// Messages of the console since the last call, but for those of the browser's own pages.
    pub fn console(&self) -> Vec<String> {
        let log = self.post("se/log", &json!({ "type": "browser" }));
        let said = log
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["message"].as_str().unwrap());
        said.filter(|message| !message.starts_with("chrome://"))
            .map(String::from)
            .collect()
    }

    fn devtools(&self, command: &str, parameters: &Value) {
        self.post(
            "goog/cdp/execute",
            &json!({ "cmd": command, "params": parameters }),
        );
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        self.call(
            "POST",
            &format!("/session/{}/{command}", self.session),
            body,
        )
    }

    /// The value of an answer, which must be a success.
    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let body = body.to_string();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = BufReader::new(stream);
        let (mut status, mut length) = (String::new(), 0);
        answer.read_line(&mut status).unwrap();
        loop {
            let mut line = String::new();
            answer.read_line(&mut line).unwrap();
            match line
                .trim_end()
                .to_ascii_lowercase()
                .strip_prefix("content-length:")
            {
                Some(number) => length = number.trim().parse().unwrap(),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let mut text = vec![0; length];
        answer.read_exact(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            status.contains(" 200 "),
            "{method} {path} {body}\n{status}{text}"
        );
        serde_json::from_str::<Value>(&text).unwrap()["value"].take()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.call("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
    }
}

/// Keys that are no characters.
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";
