//! A headless Chromium, driven through the DevTools protocol over a pipe
//! (`--remote-debugging-pipe`): no port, no server, no dependency.
//!
//! <https://chromedevtools.github.io/devtools-protocol/>: requests and answers are JSON
//! objects with the same `id`, events are objects without; each ends with a NUL.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one tab.
pub struct Browser {
    process: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last_id: u64,
    events: Vec<Value>,
}

impl Browser {
    /// Starts `program` with an empty tab; `profile` is a folder for its files.
    pub fn start(program: &Path, profile: &Path) -> Browser {
        // The protocol's pipes are file descriptors 3 and 4, which the shell makes of
        // the standard ones.
        let mut process = Command::new("sh")
            .args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--disable-gpu"])
            // The sandbox refuses root, which CI is; the page is our own.
            .args(["--no-sandbox", "--no-first-run"])
            // Whatever asks for the network must fail.
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("there is a shell");
        let requests = process.stdin.take().expect("it is piped");
        let answers = process.stdout.take().expect("it is piped");
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for message in BufReader::new(answers).split(0) {
                let Ok(message) = message else { return };
                let message = serde_json::from_slice(&message).expect("messages are JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            process,
            requests,
            messages,
            session: None,
            last_id: 0,
            events: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the protocol; panics where it fails.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut request = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        write!(self.requests, "{request}\0").expect("the browser listens");
        loop {
            let mut message = self.next_message(method);
            if message["id"] == json!(id) {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn next_message(&mut self, waiting_for: &str) -> Value {
        self.messages
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|error| panic!("the browser, {waiting_for}: {error}"))
    }

    /// Opens a file, forgets the events so far, and waits until it has loaded.
    pub fn open(&mut self, file: &Path) {
        self.events.clear();
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({"url": url}));
        while !self.has_event("Page.loadEventFired") {
            let event = self.next_message("loading the page");
            self.events.push(event);
        }
    }

    fn has_event(&self, method: &str) -> bool {
        self.events.iter().any(|event| event["method"] == method)
    }

    /// The value of a JavaScript expression, or of what it promises.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
        });
        let mut answer = self.call("Runtime.evaluate", parameters);
        let exception = &answer["exceptionDetails"];
        assert!(exception.is_null(), "{expression}: {exception}");
        answer["result"]["value"].take()
    }

    /// Waits until a JavaScript condition holds.
    pub fn wait_for(&mut self, condition: &str) {
        let start = Instant::now();
        while self.evaluate(condition) != json!(true) {
            assert!(start.elapsed() < PATIENCE, "never true: {condition}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Focuses an element and presses a key on it, as a hand would.
    pub fn press(&mut self, element: &str, key: &str, code: u32) {
        self.evaluate(&format!("document.querySelector('{element}').focus()"));
        // Of the keys that are pressed here, Enter alone makes a character.
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text,
            });
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// What the page complained about, and what it asked the network for, since it was
    /// opened.
    pub fn complaints(&self) -> Vec<String> {
        let complaint = |event: &Value| {
            let details = &event["params"];
            let bad = match event["method"].as_str()? {
                "Runtime.exceptionThrown" => true,
                "Runtime.consoleAPICalled" => details["type"] == "error",
                "Log.entryAdded" => details["entry"]["level"] == "error",
                "Network.requestWillBeSent" => {
                    let url = details["request"]["url"].as_str().unwrap_or_default();
                    !["file:", "data:", "blob:"]
                        .iter()
                        .any(|own| url.starts_with(own))
                }
                _ => false,
            };
            bad.then(|| event.to_string())
        };
        self.events.iter().filter_map(complaint).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The shell became the browser: this is its process. Gone already is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
