//! The cache in files of a temporary folder.

use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use gpu_kernels::entry::KERNELS;
use gpu_kernels::{Schedule, TileGrid, TileOrder};

use super::*;
use crate::select::Packed;

fn machine() -> Machine {
    Machine {
        gpu: "GPU, 132 SMs".into(),
        driver: "CUDA 12.2".into(),
        kernels: "0123".into(),
    }
}

fn choice() -> Choice {
    Choice {
        kernel: KERNELS[0],
        transposed: false,
        two_launches: false,
        packed: Packed::default(),
        line_classes: 1,
        pack: None,
        grid: TileGrid {
            tiles_m: 4,
            tiles_n: 4,
        },
        batches: 1,
        order: TileOrder::GroupedM { size: 2 },
        schedule: Schedule::Persistent,
        stream_k_ctas: 0,
        reduce: None,
    }
}

fn winner(milliseconds: f64) -> Winner {
    let times = Times {
        cold: milliseconds,
        sustained: None,
    };
    Winner::new(&choice(), times)
}

/// A new cache of the same file, as the next process has it.
fn lookup(file: &Path, machine: &Machine, problem: &str) -> Option<Winner> {
    Cache::new(Some(file.to_owned())).lookup(machine, problem)
}

fn remember(file: &Path, machine: &Machine, problem: &str, milliseconds: f64) {
    Cache::new(Some(file.to_owned())).remember(machine, problem, winner(milliseconds));
}

fn names(folder: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_winner_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    // Folders are made.
    let file = folder.path().join("new/tilewise/tune.json");
    assert_eq!(lookup(&file, &machine(), "p"), None);
    remember(&file, &machine(), "p", 0.25);
    remember(&file, &machine(), "q", 0.5);
    assert_eq!(lookup(&file, &machine(), "p"), Some(winner(0.25)));
    assert_eq!(lookup(&file, &machine(), "q"), Some(winner(0.5)));
    assert_eq!(lookup(&file, &machine(), "r"), None);
    // Nothing is left beside it.
    assert_eq!(names(file.parent().unwrap()), ["tune.json"]);
}

#[test]
fn a_winner_is_one_choice() {
    let won = winner(1.0);
    assert!(won.is(&choice()));
    let changes: [fn(&mut Choice); 4] = [
        |c| c.kernel = KERNELS[1],
        |c| c.transposed = true,
        |c| c.order = TileOrder::GroupedM { size: 4 },
        |c| c.schedule = Schedule::Grid1d,
    ];
    for change in changes {
        let mut other = choice();
        change(&mut other);
        assert!(!won.is(&other), "{other:?}");
    }
}

#[test]
fn without_a_file_it_lasts_as_long_as_the_cache() {
    let mut cache = Cache::new(None);
    cache.remember(&machine(), "p", winner(1.0));
    cache.remember(&machine(), "q", winner(2.0));
    assert_eq!(cache.lookup(&machine(), "p"), Some(winner(1.0)));
    assert_eq!(cache.lookup(&machine(), "q"), Some(winner(2.0)));
}

#[test]
fn another_driver_or_build_is_stale_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tune.json");
    remember(&file, &machine(), "p", 1.0);
    let other_gpu = Machine {
        gpu: "GPU, 114 SMs".into(),
        ..machine()
    };
    remember(&file, &other_gpu, "p", 2.0);
    for stale in [
        Machine {
            driver: "CUDA 13.0".into(),
            ..machine()
        },
        Machine {
            kernels: "4567".into(),
            ..machine()
        },
    ] {
        assert_eq!(lookup(&file, &stale, "p"), None);
    }
    assert_eq!(lookup(&file, &machine(), "p"), Some(winner(1.0)));
    let newer = Machine {
        kernels: "4567".into(),
        ..machine()
    };
    remember(&file, &newer, "q", 3.0);
    assert_eq!(lookup(&file, &newer, "q"), Some(winner(3.0)));
    assert_eq!(lookup(&file, &machine(), "p"), None);
    assert_eq!(lookup(&file, &other_gpu, "p"), Some(winner(2.0)));
}

#[test]
fn what_is_no_cache_is_ignored_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tune.json");
    remember(&file, &machine(), "p", 1.0);
    let good = fs::read_to_string(&file).unwrap();
    let newer = good.replacen("\"format\": 1", "\"format\": 2", 1);
    assert_ne!(newer, good);
    let truncated = &good[..good.len() / 2];
    let other_fields = good.replace("kernel\"", "kernels\"");
    for text in ["", "no JSON", "[]", "{}", &newer, truncated, &other_fields] {
        fs::write(&file, text).unwrap();
        assert_eq!(lookup(&file, &machine(), "p"), None, "{text}");
        remember(&file, &machine(), "q", 2.0);
        assert_eq!(lookup(&file, &machine(), "q"), Some(winner(2.0)), "{text}");
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    assert_eq!(lookup(&file, &machine(), "q"), None);
}

#[test]
fn the_reason_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tune.json");
    fs::write(&file, "{\"format\": 7, \"new\": 1}").unwrap();
    assert_eq!(read(&file).unwrap_err(), "its format is 7, accepted: 1");
    fs::write(&file, "{").unwrap();
    let reason = read(&file).unwrap_err();
    assert!(
        reason.starts_with("it is no cache of tilewise: "),
        "{reason}"
    );
}

#[test]
fn a_file_that_cannot_be_written_does_not_stop_the_tuner() {
    let folder = tempfile::tempdir().unwrap();
    let obstacle = folder.path().join("obstacle");
    fs::write(&obstacle, "").unwrap();
    // Below a file there is no folder; and a folder cannot be replaced.
    for file in [obstacle.join("tune.json"), folder.path().to_owned()] {
        let mut cache = Cache::new(Some(file));
        cache.remember(&machine(), "p", winner(1.0));
        cache.remember(&machine(), "q", winner(2.0));
        assert_eq!(cache.lookup(&machine(), "p"), Some(winner(1.0)));
        assert_eq!(cache.lookup(&machine(), "q"), Some(winner(2.0)));
        assert_eq!(cache.file(), None);
    }
    // No temporary file stays, inside or beside.
    assert_eq!(names(folder.path()), ["obstacle"]);
}

#[test]
fn files_of_killed_processes_are_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let left = [".tune-", ".tune-000000", ".tune.json"];
    for name in left {
        fs::write(folder.path().join(name), "{").unwrap();
    }
    let file = folder.path().join("tune.json");
    remember(&file, &machine(), "p", 1.0);
    assert_eq!(lookup(&file, &machine(), "p"), Some(winner(1.0)));
    assert_eq!(names(folder.path()).len(), left.len() + 1);
    // Others may read it as they may read any file of this user.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&file), mode(&folder.path().join(left[0])));
}

#[test]
fn writers_at_once_leave_a_whole_file() {
    const WRITERS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let file = &folder.path().join("tune.json");
    let done = &AtomicU64::new(0);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || {
                for round in 0..20 {
                    remember(file, &machine(), &format!("{writer} {round}"), 1.0);
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        // A reader sees whole files only.
        while done.load(Ordering::Relaxed) < WRITERS as u64 {
            read(file).unwrap();
        }
    });
    let contents = read(file).unwrap();
    let winners = &contents.gpus[&machine().gpu].winners;
    // Updates may be lost, the last one not; and nothing else is in the folder.
    assert!(winners.keys().any(|problem| problem.ends_with(" 19")));
    assert_eq!(names(folder.path()), ["tune.json"]);
}

/// The environment belongs to a process, so each case runs in one of its own.
#[test]
fn the_default_place_follows_the_environment() {
    const MARK: &str = "TILEWISE_TEST_PRINT_PLACE";
    if env::var_os(MARK).is_some() {
        println!("place={}", default_file().unwrap().display());
        return;
    }
    let place = |variables: &[(&str, &str)]| {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--nocapture", "the_default_place_follows_the_environment"])
            .env_clear()
            .env(MARK, "1")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, rest) = text.split_once("place=").expect(&text);
        rest.lines().next().unwrap().to_owned()
    };
    let home = ("HOME", "/home/ada");
    assert_eq!(place(&[home]), "/home/ada/.cache/tilewise/tune.json");
    let xdg = ("XDG_CACHE_HOME", "/var/ada");
    assert_eq!(place(&[home, xdg]), "/var/ada/tilewise/tune.json");
    let own = ("TILEWISE_CACHE", "here");
    assert_eq!(place(&[home, xdg, own]), "here/tune.json");
    // Empty is unset, and XDG paths must be absolute.
    let empty = [home, ("XDG_CACHE_HOME", "relative"), ("TILEWISE_CACHE", "")];
    assert_eq!(place(&empty), place(&[home]));
}
