//! The program's own check, on the devices that every machine has. On a machine with GPUs,
//! `tilewise-parallel check` runs the same cases there.

use std::process::Command;

/// Runs the check, and returns its last line.
fn check(device: &str, ranks: usize, cases: usize, largest: usize) -> String {
    check_with(&[], device, ranks, cases, largest)
}

/// The check with more arguments.
fn check_with(more: &[&str], device: &str, ranks: usize, cases: usize, largest: usize) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tilewise-parallel"))
        .args(["check", "--device", device])
        .args(more)
        .args(["--ranks", &ranks.to_string()])
        .args(["--cases", &cases.to_string()])
        .args(["--largest", &largest.to_string()])
        .output()
        .expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    text.lines().last().unwrap_or_default().to_owned()
}

/// Any number of ranks, in random orders of the steps that the program permits.
#[test]
fn results_are_those_of_one_device() {
    for ranks in [1, 2, 3, 5] {
        let last = check("cpu", ranks, 40, 90);
        assert!(last.starts_with("40 passed (120 runs), 0 wrong"), "{last}");
    }
}

/// Ranks that are members of a group: two plans whose runs take turns, operands that are used
/// again, epochs that wrap, and a random rank that is late.
#[test]
fn members_give_the_bits_of_one_device() {
    for ranks in [1, 2, 3, 4] {
        let last = check_with(&["--threads", "--delays"], "cpu", ranks, 25, 90);
        assert!(last.starts_with("25 passed (150 runs), 0 wrong"), "{last}");
    }
    for ranks in [2, 3] {
        let last = check_with(&["--processes", "--delays"], "cpu", ranks, 8, 90);
        assert!(last.starts_with("8 passed (48 runs), 0 wrong"), "{last}");
    }
}

/// The others name the rank, and none hangs.
#[test]
fn processes_that_are_killed_end_the_others() {
    let last = check_with(&["--processes", "--kill", "5"], "cpu", 3, 0, 90);
    assert!(last.starts_with("5 ranks killed, 0 wrong"), "{last}");
}

/// The kernels' own bits, and their accesses, by the emulator.
#[cfg(feature = "emulator")]
#[test]
fn results_on_emulated_gpus_are_those_of_one_gpu() {
    for ranks in [2, 3] {
        let last = check("emulated", ranks, 40, 90);
        assert!(last.starts_with("40 passed (120 runs), 0 wrong"), "{last}");
    }
}

/// The same, where each rank is a member of its own.
#[cfg(feature = "emulator")]
#[test]
fn members_on_emulated_gpus_give_the_bits_of_one_gpu() {
    let last = check_with(&["--threads"], "emulated", 2, 8, 60);
    assert!(last.starts_with("8 passed (48 runs), 0 wrong"), "{last}");
}

#[test]
fn cases_without_gpus_are_counted_as_skipped() {
    if tilewise::Device::gpu_count() > 0 {
        return;
    }
    for more in [&[][..], &["--processes"]] {
        let last = check_with(more, "gpu", 2, 7, 60);
        assert!(last.starts_with("7 cases skipped: "), "{last}");
    }
}

/// The pictures in `docs/parallel.md` are what the program draws.
#[test]
fn pictures_are_those_of_the_documentation() {
    let page = include_str!("../../docs/parallel.md");
    for arguments in [
        &["predict"][..],
        &["predict", "--operation", "reduce-scatter", "--chunks", "2"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tilewise-parallel"))
            .args(arguments)
            .output()
            .expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let (picture, _) = text.split_once("\n\n").expect("a picture and an estimate");
        assert!(page.contains(picture), "{picture}");
    }
}
