//! The device sources contain nothing that rust-cuda's code generator cannot
//! take. It is not installed where this runs, so the sources are read instead:
//! every module that is compiled for the GPU, as tokens (`device_sources/scan.rs`).

#[path = "device_sources/scan.rs"]
mod scan;

use std::path::{Path, PathBuf};

use gpu_kernels::GemmParams;
use scan::{Finding, scan_crate, scan_text};

/// The root of the device crate's modules.
fn library() -> PathBuf {
    let builder = Path::new(env!("CARGO_MANIFEST_DIR"));
    builder.with_file_name("gpu-kernels").join("src/lib.rs")
}

/// What is found in a piece of source, as `line: reason`.
fn found(source: &str) -> Vec<String> {
    let (findings, _) = scan_text(source).unwrap();
    findings.iter().map(Finding::to_string).collect()
}

#[test]
fn the_device_sources_hold_nothing_that_rust_cuda_cannot_take() {
    let mut report = scan_crate(&library()).unwrap();
    // Tensor maps are read through the generic address of a parameter, which has no other.
    let parameter = |finding: &Finding| {
        let file = finding.file.as_ref();
        file.is_some_and(|file| file.ends_with("isa/parameter.rs"))
            && finding.reason.starts_with("`cvta`")
    };
    let accepted = report.findings.extract_if(.., |found| parameter(found));
    assert_eq!(accepted.count(), 1, "`cvta` in isa/parameter.rs");
    let findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    // It has read the modules that matter, and none that is for the host alone.
    let read = |end: &str| report.files.iter().any(|file| file.ends_with(end));
    for end in [
        "isa/shared.rs",
        "isa/wgmma.rs",
        "kernels/hopper/cooperative.rs",
        "entry.rs",
    ] {
        assert!(read(end), "{end} was not read");
    }
    assert!(!read("kernels/tensor_core/tests.rs"));
}

#[test]
fn the_parameter_is_passed_as_a_parameter() {
    // From 16 bytes on rust-cuda casts a struct to 128-bit integers, which
    // would not be what the launcher fills in; nor a tensor map for TMA, whose
    // alignment is 64.
    const { assert!(align_of::<GemmParams>() < 16) }
}

#[test]
fn a_16_bit_float_is_found() {
    assert_eq!(
        found("fn f(x: f16) {}\nfn g() -> f32 { 1.0_f128 as f32 }"),
        [
            "1: native f16: rust-cuda has none; keep u16 and convert with `cvt` in asm!",
            "2: native f128: rust-cuda has none; keep u16 and convert with `cvt` in asm!",
        ]
    );
    assert_eq!(found("type A = [f16; 2];").len(), 1);
    assert_eq!(found("let x = 1.0f16;").len(), 1);
    // A type or a kernel may be named after it.
    assert_eq!(
        found("struct F16; fn naive_f16() {} // f16\nconst S: &str = \"f16\";"),
        [""; 0]
    );
}

#[test]
fn an_asm_operand_that_names_a_symbol_or_a_label_is_found() {
    let sym = "\n asm!(\"mov.u64 {}, {};\", out(reg64) x, sym TABLE);";
    assert_eq!(
        found(sym),
        ["2: asm operand `sym`: name the symbol in the text"]
    );
    let global = "global_asm!(\".extern .func {};\", sym f);";
    assert_eq!(found(global).len(), 1);
    let label = "core::arch::asm!(\"bra {};\", label { return });";
    assert_eq!(found(label), ["1: asm operand `label`: branch in Rust"]);
    let in_macro = "macro_rules! m { () => { asm!(\"{}\", sym $x) } }";
    assert_eq!(found(in_macro).len(), 1);
    let clean = "asm!(concat!(\"mov.u32 {}, \", $sym, \";\"), out(reg32) sym, in(reg32) label);";
    assert_eq!(found(clean), [""; 0]);
}

#[test]
fn generic_addresses_of_shared_memory_are_found() {
    assert_eq!(
        found("asm!(\"cvta.shared.u64 {}, {};\", out(reg64) g, in(reg64) s);"),
        ["1: `cvta` in asm: use 32-bit shared-window addresses and `ld.global`"]
    );
    let in_concat = "asm!(concat!(\"cvta.to\", $space, \" {}, {};\"), out(reg64) g, in(reg64) s)";
    assert_eq!(found(in_concat).len(), 1);
    let space = "#[address_space(shared)] static mut TILE: [u32; 64] = [0; 64];";
    assert!(
        found(space)[0].contains("`address_space`"),
        "{:?}",
        found(space)
    );
}

#[test]
fn statics_atomics_and_intrinsics_are_found() {
    for (source, part) in [
        ("static TABLE: [u32; 4] = [0; 4];", "`static`"),
        ("thread_local! { X }", "`thread_local`"),
        ("use core::sync::atomic::AtomicU32;", "`atomic`"),
        ("use core::arch::nvptx::_syncthreads;", "`nvptx`"),
        ("use core::simd::f32x4;", "`simd`"),
        ("use core::intrinsics::abort;", "`intrinsics`"),
        ("use cuda_std::prelude::*;", "`cuda_std`"),
    ] {
        let findings = found(source);
        assert_eq!(findings.len(), 1, "{source}");
        assert!(findings[0].contains(part), "{findings:?}");
    }
    assert_eq!(found("fn name() -> &'static str { \"static\" }"), [""; 0]);
}

#[test]
fn a_kernel_or_a_handler_outside_the_standalone_build_is_found() {
    let kernel = "pub unsafe extern \"ptx-kernel\" fn k() {}";
    assert!(found(kernel)[0].contains("ptx-kernel"));
    let handler = "#[panic_handler] fn panic() -> ! { loop {} }";
    assert!(found(handler)[0].contains("panic_handler"));
    let standalone = "#[cfg(all(target_arch = \"nvptx64\", feature = \"standalone\"))]\n";
    for item in [kernel, handler] {
        assert_eq!(found(&format!("{standalone}{item}")), [""; 0]);
    }
    // `#[kernel(…)]` has arguments that nobody reads.
    assert!(found("#[kernel(launch_bounds(256))] fn k() {}")[0].contains("`kernel`"));
}

#[test]
fn what_is_for_the_host_is_not_read() {
    for host in [
        "#[cfg(test)]\nmod tests { static X: u32 = 0; }",
        "#[cfg(not(target_arch = \"nvptx64\"))]\nstatic X: u32 = 0;",
        "#[cfg(not(target_arch = \"nvptx64\"))]\n#[inline]\nfn f() { static X: u32 = 0; }",
        "#[cfg(all(test, unix))]\nuse core::sync::atomic;",
    ] {
        assert_eq!(found(host), [""; 0], "{host}");
        // What follows is read again.
        assert_eq!(
            found(&format!("{host}\nstatic Y: u32 = 0;")).len(),
            1,
            "{host}"
        );
    }
    let module = "#![cfg(not(target_arch = \"nvptx64\"))]\nstatic X: u32 = 0;";
    assert_eq!(found(module), [""; 0]);
    assert_eq!(
        found(&format!("mod m {{ {module} }}\nstatic Y: u32 = 0;")).len(),
        1
    );
    for device in [
        "#![cfg(target_arch = \"nvptx64\")]\nstatic X: u32 = 0;",
        "#[cfg(target_arch = \"nvptx64\")]\nstatic X: u32 = 0;",
        "#[cfg(not(test))]\nstatic X: u32 = 0;",
        "#[cfg(any(test, target_arch = \"nvptx64\"))]\nstatic X: u32 = 0;",
        "#[inline(always)]\nfn f() { static X: u32 = 0; }",
    ] {
        assert_eq!(found(device).len(), 1, "{device}");
    }
}

#[test]
fn modules_are_followed_as_the_compiler_does() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    file(
        "lib.rs",
        "mod outer; #[cfg(test)] mod host; pub mod folder;",
    );
    file("outer.rs", "pub(crate) mod inner;");
    file("outer/inner.rs", "\n\nstatic X: u32 = 0;");
    file("folder/mod.rs", "mod leaf;");
    file("folder/leaf.rs", "fn f(x: f16) {}");
    file("host.rs", "static HOST: u32 = 0;");
    let report = scan_crate(&dir.path().join("lib.rs")).unwrap();
    assert_eq!(report.files.len(), 5);
    let mut findings: Vec<String> = report.findings.iter().map(ToString::to_string).collect();
    findings.sort();
    assert_eq!(findings.len(), 2);
    assert!(
        findings[0].contains("leaf.rs:1: native f16"),
        "{findings:?}"
    );
    assert!(findings[1].contains("inner.rs:3: `static`"), "{findings:?}");
    // A module without its file is no clean module.
    file("lib.rs", "mod absent;");
    assert!(scan_crate(&dir.path().join("lib.rs")).is_err());
}
