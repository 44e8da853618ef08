//! What becomes of a process whose work takes longer than it may. Each test runs itself
//! again, in a process that can be ended.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{env, thread};

use tilewise_watchdog::{EXIT_CODE, Watchdog};

/// Names the folder in which the child works.
const FOLDER: &str = "WATCHDOG_TEST_FOLDER";

/// Runs `body` in a process of its own; returns what became of it, and how long it took.
fn child(test: &str, folder: &Path, body: fn(&Path)) -> (Output, Duration) {
    if let Some(folder) = env::var_os(FOLDER) {
        body(Path::new(&folder));
        // Not what any of the bodies should come to.
        std::process::exit(3);
    }
    let start = Instant::now();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .output()
        .unwrap();
    (output, start.elapsed())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a call does that waits for a kernel that hangs.
fn hang() -> ! {
    loop {
        thread::park();
    }
}

/// Its destructor would show that the process did not end at once.
struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        println!("a destructor ran");
    }
}

extern "C" fn exit_handler() {
    println!("an exit handler ran");
}

#[test]
fn a_process_that_is_never_done_ends_in_time_and_keeps_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a_process_that_is_never_done_ends_in_time_and_keeps_its_rows";
    let (output, took) = child(name, folder.path(), |folder| {
        let rows = folder.join("rows.csv");
        let last_words = {
            let rows = rows.clone();
            move || println!("the rows are in {}", rows.display())
        };
        // SAFETY: the handler is a function of this program.
        unsafe { libc::atexit(exit_handler) };
        let _loud = Loud;
        let watchdog = Watchdog::new(last_words);
        let armed = watchdog.arm(Duration::from_secs(60), "the first kernel");
        fs::write(&rows, "first\n").unwrap();
        armed.renew(Duration::from_millis(300), "512x512x512 row grid1d");
        hang();
    });
    assert_eq!(output.status.code(), Some(EXIT_CODE), "{output:?}");
    let limits = Duration::from_millis(300)..Duration::from_secs(20);
    assert!(limits.contains(&took), "{took:?}");
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert!(
        error.contains("error: not done within 0.3 s: 512x512x512 row grid1d\n"),
        "{error}"
    );
    assert!(
        said.contains("the rows are in ") && !said.contains(" ran"),
        "{said}"
    );
    let rows = fs::read_to_string(folder.path().join("rows.csv")).unwrap();
    assert_eq!(rows, "first\n");
}

#[test]
fn last_words_that_hang_do_not_keep_the_process() {
    static HELD: Mutex<()> = Mutex::new(());
    let folder = tempfile::tempdir().unwrap();
    let name = "last_words_that_hang_do_not_keep_the_process";
    let (output, took) = child(name, folder.path(), |_| {
        let _held = HELD.lock().unwrap();
        let watchdog = Watchdog::new(|| drop(HELD.lock()));
        let _armed = watchdog.arm(Duration::from_millis(10), "what holds the lock");
        hang();
    });
    assert_eq!(output.status.code(), Some(EXIT_CODE), "{output:?}");
    assert!(
        text(&output.stderr).contains("what holds the lock"),
        "{output:?}"
    );
    assert!(took < Duration::from_secs(40), "{took:?}");
}

#[test]
fn who_learns_of_it_otherwise_ends_the_process_alike_even_if_last_words_panic() {
    let folder = tempfile::tempdir().unwrap();
    let name = "who_learns_of_it_otherwise_ends_the_process_alike_even_if_last_words_panic";
    let (output, _) = child(name, folder.path(), |_| {
        let watchdog = Watchdog::new(|| panic!("on purpose"));
        watchdog.end("the tuner timed out");
    });
    assert_eq!(output.status.code(), Some(EXIT_CODE), "{output:?}");
    assert!(
        text(&output.stderr).contains("error: the tuner timed out\n"),
        "{output:?}"
    );
}

#[test]
fn what_is_done_in_time_ends_nothing() {
    let limit = Duration::from_secs(1);
    let watchdog = Watchdog::new(|| unreachable!("nothing is overdue"));
    let armed = watchdog.arm(limit, "renewed");
    let other = watchdog.arm(Duration::from_secs(3600), "on another thread");
    for _ in 0..5 {
        thread::sleep(limit / 4);
        armed.renew(Duration::from_secs(60), "renewed");
        armed.renew(limit, "renewed again");
    }
    drop(armed);
    thread::sleep(limit + limit / 4);
    thread::spawn(move || drop(other)).join().unwrap();
    drop(watchdog);
}
