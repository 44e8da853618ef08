//! The command line.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Runs the program with these arguments, separated by spaces.
fn emulate(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewise-emulate"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the program runs")
}

/// The output of the program, which must succeed.
fn stdout(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_product_is_verified_and_counted() {
    let output = emulate("--kernel hopper --shape 130x72x96 --order grouped:8 --schedules 2");
    let text = stdout(&output);
    for part in [
        "order grouped:8",
        "seed 0: right",
        "seed 1: right",
        "wgmma.mma_async",
        "tensor-core operations",
        "bytes read from DRAM",
    ] {
        assert!(text.contains(part), "no '{part}' in\n{text}");
    }
}

#[test]
fn every_family_runs() {
    for (family, dtype) in [
        ("naive", "f32"),
        ("tiled", "bf16"),
        ("tensor_core", "tf32"),
        ("hopper", "tf32"),
        ("hopper", "bf16"),
    ] {
        let arguments = format!("--kernel {family} --dtype {dtype} --shape 33x40x50 --layout nn");
        assert!(stdout(&emulate(&arguments)).contains("seed 0: right"));
    }
}

#[test]
fn the_trace_is_in_the_order_of_time() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("requests.csv");
    let kernel = "--kernel hopper_f16_ak_bn_128x128x64 --shape 256x256x128";
    let output = emulate(&format!("{kernel} --trace {}", path.display()));
    stdout(&output);
    let text = fs::read_to_string(&path).expect("a trace");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("time,cta,access,address,bytes"));
    let fields = |line: &str| -> Vec<String> { line.split(',').map(str::to_owned).collect() };
    let requests: Vec<_> = lines.map(fields).collect();
    let times: Vec<u64> = requests
        .iter()
        .map(|r| r[0].parse().expect("a time"))
        .collect();
    assert!(times.is_sorted());
    // Four tiles, each of two steps with a box of A and two of B; and two boxes of C
    // for each of two consumers.
    let count = |access: &str| {
        requests
            .iter()
            .filter(|request| request[2] == access)
            .count()
    };
    assert_eq!((count("read"), count("write")), (4 * 2 * 3, 4 * 2 * 2));
    let bytes: u64 = requests
        .iter()
        .filter(|request| request[2] == "write")
        .map(|request| request[4].parse::<u64>().expect("bytes"))
        .sum();
    assert_eq!(bytes, 256 * 256 * 2);
}

/// The test sends SIGTERM, because background jobs of a shell ignore SIGINT.
#[cfg(unix)]
#[test]
fn an_early_end_leaves_no_file() {
    use std::os::unix::process::ExitStatusExt as _;

    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ended-early");
    fs::create_dir_all(&directory).expect("a folder");
    let mut program = Command::new(env!("CARGO_BIN_EXE_tilewise-emulate"))
        .args(["--shape", "2048", "--trace"])
        .arg(directory.join("requests.csv"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let mut first_line = String::new();
    BufReader::new(program.stdout.take().expect("piped"))
        .read_line(&mut first_line)
        .expect("what it runs");
    let killed = Command::new("kill").arg(program.id().to_string()).status();
    assert!(killed.expect("kill runs").success());
    let status = program.wait().expect("its status");
    assert_eq!(status.signal(), Some(15), "after {first_line}");
    let files = fs::read_dir(&directory).expect("a folder");
    assert_eq!(files.count(), 0);
}

#[test]
fn orders_are_compared_by_what_the_kernel_asks_of_l2() {
    let product = "--kernel hopper --block 128x128x64 --shape 1024x1024x256 --sms 8 --l2 256";
    let text = stdout(&emulate(&format!("{product} --order row,grouped:4")));
    // Name, reads of L2, MB, hits, MB from DRAM.
    let row = |order: &str| -> Vec<f64> {
        let row = text.lines().rev().find(|line| line.starts_with(order));
        let cells = row.expect(order).split_whitespace().skip(1);
        cells.map(|cell| cell.parse().expect("a number")).collect()
    };
    let (row, grouped) = (row("row"), row("grouped:4"));
    assert_eq!(row[0], grouped[0], "the same boxes");
    // A wave of eight tiles in a row reads nine blocks, and a wave of four by two six.
    assert!(grouped[3] < row[3], "{text}");
}

/// The program refuses at once, before it begins any work.
#[test]
fn what_cannot_end_or_fit_is_refused_and_says_what_it_would_take() {
    let begin = Instant::now();
    for (arguments, parts) in [
        ("--shape 100000", ["days", "--time-limit"]),
        (
            "--shape 100000x100000x8 --time-limit 1e9",
            ["MiB", "--memory-limit"],
        ),
    ] {
        let output = emulate(arguments);
        assert!(!output.status.success(), "{arguments}");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("k-blocks in all: about"), "{said}");
        let errors = String::from_utf8_lossy(&output.stderr);
        for part in parts {
            assert!(errors.contains(part), "{arguments}: {errors}");
        }
    }
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn what_cannot_be_run_is_refused() {
    for (arguments, part) in [
        ("--kernel hopper_f64", "is not a kernel family"),
        ("--kernel tiled --dtype tf32", "error: "),
        ("--kernel naive --shape 0x1x1", "is not a shape"),
        (
            "--order row,col --trace requests.csv",
            "--order names several",
        ),
    ] {
        let output = emulate(arguments);
        assert!(!output.status.success(), "{arguments}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(part), "{arguments}: {errors}");
    }
}
