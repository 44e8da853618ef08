use super::*;
use crate::problem::shape::{BlasLayout, GemmShape};
use gpu_kernels::{DType, OutputType};
use std::env;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use tilewise_watchdog::EXIT_CODE;

/// Names the folder of a child process.
const FOLDER: &str = "TILEWISE_BENCH_TEST_FOLDER";

/// Runs `body` with `folder` in a process of its own, which hangs after it, and returns what
/// it printed; a watch has to end it.
pub(crate) fn ended(test: &str, folder: &Path, body: fn(&Path)) -> [String; 2] {
    if let Some(folder) = env::var_os(FOLDER) {
        body(Path::new(&folder));
        loop {
            thread::park();
        }
    }
    let output: Output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(EXIT_CODE), "{output:?}");
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
}

/// 4096³ in f16.
pub(crate) const PROBLEM: ProblemSpec = ProblemSpec {
    shape: GemmShape::new(4096, 4096, 4096),
    layout: BlasLayout::NN,
    dtype: DType::F16,
    output: OutputType::Input,
};

#[test]
fn seconds_are_positive_and_finite() {
    assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
    for text in ["-1", "soon", "inf"] {
        assert!(seconds(text).unwrap_err().contains("seconds"), "{text}");
    }
}

fn expected(name: &str, milliseconds: u64) -> Expected {
    Expected {
        name: name.to_owned(),
        product: Duration::from_millis(milliseconds),
    }
}

#[test]
fn a_piece_may_take_far_longer_than_expected_but_not_for_ever() {
    assert_eq!(allowed(Duration::ZERO), LEAST);
    let second = Duration::from_secs(1);
    assert_eq!(allowed(second), LEAST + 100 * second);
    assert_eq!(allowed(Duration::MAX), Duration::MAX);
    assert_eq!(copying(10_000_000_000), 2 * second);
}

#[test]
fn labels_name_product_kernel_order_and_schedule() {
    let watch = Watch::idle();
    let names = ["tilewise tiled row grid1d", "tilewise naive col persistent"];
    let candidates = names.map(|name| expected(name, 1)).to_vec();
    let watched = Watched::new(&watch, PROBLEM, candidates);
    assert_eq!(
        watched.label("cold", 1, None),
        "cold, 4096x4096x4096 f16 nn, tilewise naive col persistent"
    );
    assert_eq!(
        watched.label("cold", 1, Some(0)),
        "cold, 4096x4096x4096 f16 nn, tilewise tiled row grid1d, \
         or tilewise naive col persistent behind it"
    );
}

#[test]
fn of_a_peer_as_much_is_expected_as_of_the_slowest_until_it_is_timed() {
    let watch = Watch::idle();
    let candidates = vec![expected("a", 3), expected("peer", 0), expected("b", 5)];
    let mut watched = Watched::new(&watch, PROBLEM, candidates);
    assert_eq!(watched.expected(1, 10), Duration::from_millis(50));
    assert_eq!(watched.expected(0, 10), Duration::from_millis(30));
    watched.expect(&[1.0, 2.0, f64::NAN]);
    assert_eq!(watched.expected(1, 10), Duration::from_millis(20));
    assert_eq!(watched.expected(2, 10), Duration::from_millis(50));
    assert_eq!(
        watched.expected(2, usize::MAX),
        Duration::from_millis(5) * u32::MAX
    );
}

#[test]
fn a_watch_that_rests_ends_nothing() {
    let limit = Duration::from_millis(500);
    let args = WaitArgs {
        wait_limit: Some(limit),
    };
    let watch = Watch::new(&args, || unreachable!("it rests"));
    watch.begin_within(Duration::from_secs(600), "long");
    watch.begin(Duration::ZERO, "short");
    watch.rest();
    thread::sleep(limit + limit / 2);
    watch.begin_within(Duration::from_secs(600), "long");
}

#[test]
fn the_end_of_a_run_is_watched_to_the_end_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let name = "measure::watch::tests::the_end_of_a_run_is_watched_to_the_end_of_the_process";
    let [_, error] = ended(name, folder.path(), |_| {
        let args = WaitArgs {
            wait_limit: Some(Duration::from_millis(200)),
        };
        Watch::new(&args, || ()).close();
    });
    assert!(error.contains("closing the GPU"), "{error}");
}

#[test]
fn a_tuner_that_timed_out_ends_the_process_and_no_other_error_does() {
    let folder = tempfile::tempdir().unwrap();
    let name =
        "measure::watch::tests::a_tuner_that_timed_out_ends_the_process_and_no_other_error_does";
    let [said, error] = ended(name, folder.path(), |_| {
        let watch = Watch::new(&WaitArgs::default(), || println!("the last words"));
        watch.end_if_timed_out(&tilewise::Error::TuningWhileCapturing);
        println!("still there");
        watch.end_if_timed_out(&tilewise::Error::TuningTimedOut {
            device: "GPU 0".to_owned(),
            waited: Duration::from_secs(12),
            kernel: "naive_f32",
            shape: (70, 90, 5),
            order: gpu_kernels::TileOrder::Hilbert,
            schedule: gpu_kernels::Schedule::Grid1d,
        });
    });
    assert!(
        said.contains("still there") && said.contains("the last words"),
        "{said}"
    );
    for named in ["naive_f32", "70×90×5", "hilbert", "Grid1d", "12s"] {
        assert!(error.contains(named), "{error}");
    }
}
