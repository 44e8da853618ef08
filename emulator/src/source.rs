//! The line of the kernel that executes, from the debug information.

use std::backtrace::Backtrace;

/// The source position of the executing instruction: the lines of `isa` and of the kernels
/// on the stack, innermost first.
#[cold]
pub(super) fn lines() -> Vec<String> {
    kernel_lines(&Backtrace::force_capture().to_string())
}

/// The lines of `isa` and of the kernels in a printed backtrace (frames of two lines, `N:
/// function` and `at file`).
fn kernel_lines(backtrace: &str) -> Vec<String> {
    let emulator = |place: &&str| !place.contains("/emulator/src/");
    let outside = |place: &&str| {
        ["/src/isa", "/src/kernels", "/src/epilogue", "/tests/"]
            .iter()
            .any(|part| place.contains(part))
    };
    let places = backtrace
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("at "));
    let mut lines: Vec<String> = places
        .filter(emulator)
        .filter(outside)
        .map(|place| match place.find("gpu-kernels/") {
            Some(start) => place[start..].to_owned(),
            None => place.to_owned(),
        })
        .collect();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_kernels_are_kept() {
        let backtrace = "   0: std::backtrace::Backtrace::create\n\
            \x20 1: tilewise_emulator::machine::fail\n\
            \x20            at /x/emulator/src/machine.rs:1:2\n\
            \x20 2: gpu_kernels::isa::mbarrier::wait\n\
            \x20            at /x/gpu-kernels/src/isa/mbarrier.rs:107:9\n\
            \x20 3: gpu_kernels::kernels::hopper::cooperative::produce\n\
            \x20            at /x/gpu-kernels/src/kernels/hopper/cooperative.rs:30:1\n\
            \x20 4: main\n             at /x/main.rs:3:4\n";
        let expected = [
            "gpu-kernels/src/isa/mbarrier.rs:107:9",
            "gpu-kernels/src/kernels/hopper/cooperative.rs:30:1",
        ];
        assert_eq!(kernel_lines(backtrace), expected);
    }
}
