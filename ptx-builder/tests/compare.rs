//! The comparison of two folders of PTX, and the launch bounds, on what both code
//! generators write.
//!
//! `compare/rustc` is what rustc 1.96 made of two small kernels with
//! `GemmParams` for a parameter; `compare/rust-cuda` is what libNVVM of CUDA 13.0
//! made of the same two in NVVM IR, as `rustc_codegen_nvvm` passes them. The parameter has the size
//! of one day, 368 bytes, in both.

use std::fs;
use std::path::{Path, PathBuf};

use gpu_kernels::entry::ENTRIES;
use gpu_kernels::{GemmParams, KernelInfo, TensorMaps};
use ptx_builder::compare::{Difference, Parameter, differences, read};
use ptx_builder::ptx::Module;
use ptx_builder::{Error, gates, launch_bounds};
use tempfile::TempDir;

const GENERATORS: [&str; 2] = ["rustc", "rust-cuda"];

fn folder(generator: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    tests.join("compare").join(generator)
}

fn ptx(generator: &str) -> String {
    fs::read_to_string(folder(generator).join("kernels.ptx")).unwrap()
}

/// A folder with one file of PTX.
fn folder_of(text: &str) -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("kernels.ptx"), text).unwrap();
    dir
}

#[test]
fn both_generators_have_the_same_entry_points() {
    let [rustc, rust_cuda] = GENERATORS.map(|generator| read(&folder(generator)).unwrap());
    assert_eq!(differences(&rustc, &rust_cuda), []);
    let names: Vec<&String> = rustc.keys().collect();
    assert_eq!(names, ["naive_f32", "pack_16"]);
    let parameter = Parameter {
        bytes: 368,
        align: align_of::<GemmParams>().try_into().unwrap(),
    };
    let maps = Parameter {
        bytes: size_of::<TensorMaps>().try_into().unwrap(),
        align: 64,
    };
    for parameters in rustc.values().chain(rust_cuda.values()) {
        assert_eq!(parameters, &[parameter, maps]);
    }
}

#[test]
fn a_missing_entry_point_is_found_on_either_side() {
    let whole = read(&folder("rustc")).unwrap();
    let one = Module::parse(&ptx("rust-cuda")).unwrap();
    let dir = folder_of(&one.program("pack_16").unwrap());
    let part = read(dir.path()).unwrap();
    let name = "naive_f32".to_owned();
    assert_eq!(
        differences(&whole, &part),
        [Difference::OnlyFirst(name.clone())]
    );
    assert_eq!(differences(&part, &whole), [Difference::OnlySecond(name)]);
}

#[test]
fn another_size_alignment_or_number_of_parameters_is_found() {
    let rustc = read(&folder("rustc")).unwrap();
    let declaration =
        ".param .align 8 .b8 pack_16_param_0[368],\n\t.param .align 64 .b8 pack_16_param_1[768]";
    for (other, message) in [
        (
            ".param .align 8 .b8 pack_16_param_0[120]",
            "pack_16: (368 bytes aligned to 8, 768 bytes aligned to 64) and (120 bytes aligned to 8)",
        ),
        (
            ".param .align 16 .b8 pack_16_param_0[368]",
            "pack_16: (368 bytes aligned to 8, 768 bytes aligned to 64) and (368 bytes aligned to 16)",
        ),
        (
            ".param .u64 pack_16_param_0,\n\t.param .u32 pack_16_param_1",
            "pack_16: (368 bytes aligned to 8, 768 bytes aligned to 64) and (8 bytes aligned to 8, 4 bytes aligned to 4)",
        ),
    ] {
        let text = ptx("rust-cuda");
        assert!(text.contains(declaration));
        let dir = folder_of(&text.replace(declaration, other));
        let found = differences(&rustc, &read(dir.path()).unwrap());
        let messages: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(messages, [message]);
    }
}

#[test]
fn the_spelling_of_types_and_files_does_not_count() {
    let scalar = |ty| {
        format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n\
             .visible .entry k(\n\t.param {ty} k_param_0\n)\n{{\n\tret;\n}}\n"
        )
    };
    let [a, b] = [".u64", ".b64"].map(|ty| folder_of(&scalar(ty)));
    assert_eq!(
        differences(&read(a.path()).unwrap(), &read(b.path()).unwrap()),
        []
    );
    // One file for all kernels, or one for each.
    let module = Module::parse(&ptx("rustc")).unwrap();
    let split = TempDir::new().unwrap();
    for entry in &module.entries {
        let file = split.path().join(format!("{}.ptx", entry.name));
        fs::write(file, module.program(&entry.name).unwrap()).unwrap();
    }
    fs::write(split.path().join("naive_f32.sm_90a.cubin"), [0xff]).unwrap();
    let whole = read(&folder("rustc")).unwrap();
    assert_eq!(differences(&whole, &read(split.path()).unwrap()), []);
}

#[test]
fn folders_that_cannot_be_compared_are_refused() {
    let empty = TempDir::new().unwrap();
    assert!(matches!(read(empty.path()), Err(Error::NoPtx(_))));
    let absent = empty.path().join("absent");
    assert!(matches!(read(&absent), Err(Error::File { .. })));
    let message = |text: &str| read(folder_of(text).path()).unwrap_err().to_string();
    let open = message(".version 8.0\n.visible .entry one()\n{\n");
    assert!(open.contains("kernels.ptx: PTX line 2"), "{open}");
    let odd = message(".visible .entry one(\n\t.param .texref x\n)\n{\n}\n");
    assert!(
        odd.contains("cannot be read: .visible .entry one("),
        "{odd}"
    );
    // A folder is one program: two parameter lists for a name are no list.
    let dir = folder_of(&ptx("rustc"));
    let other = ptx("rustc").replace("[368]", "[64]");
    fs::write(dir.path().join("other.ptx"), other).unwrap();
    let twice = read(dir.path()).unwrap_err().to_string();
    assert!(twice.contains("is here a second time"), "{twice}");
}

#[test]
fn launch_bounds_and_gates_take_the_text_of_both() {
    for generator in GENERATORS {
        let mut module = Module::parse(&ptx(generator)).unwrap();
        assert_eq!(
            module.shared,
            [".extern .shared .align 1024 .b8 dyn_smem[];\n"]
        );
        assert_eq!(module.leftovers(), [""; 0], "{generator}");
        let kernels: Vec<&KernelInfo> = ENTRIES
            .iter()
            .filter(|kernel| ["naive_f32", "pack_16"].contains(&kernel.name))
            .collect();
        launch_bounds::add(&mut module, &kernels).unwrap();
        for kernel in kernels {
            let program = module.program(kernel.name).unwrap();
            let bounds = format!(")\n.maxntid {}, 1, 1\n.minnctapersm ", kernel.threads);
            assert!(program.contains(&bounds), "{generator}: {program}");
            assert_eq!(gates::check_ptx(&program), [], "{generator}");
        }
    }
}
