//! Setup on a machine of stand-ins, each of which brings what the real one would.

use super::*;
use crate::fake::{COMPONENTS, Machine};

/// A machine that has nothing but LLVM and the means to get the rest.
fn bare() -> (Machine, Search, Means) {
    let machine = Machine::complete();
    let dir = machine.dir.path().display().to_string();
    for folder in ["lib", "cuda"] {
        fs::remove_dir_all(machine.path(folder)).unwrap();
    }
    // The toolchain is there when the file is.
    let rustup = format!(
        "echo \"rustup $*\" >> {dir}/log\n\
         case \"$*\" in\n\
         component\\ list*) cat {dir}/components ;;\n\
         *) printf '{COMPONENTS}' > {dir}/components ;;\n\
         esac"
    );
    machine.program("rustup", &rustup);
    // What the wheels hold, in their places.
    let python = format!(
        "echo \"python $*\" >> {dir}/log\n\
         root={dir}/wheels/nvidia/cu13\n\
         mkdir -p $root/include $root/lib $root/nvvm/libdevice\n\
         echo '#define CUDA_VERSION 13000' > $root/include/cuda.h\n\
         touch $root/include/cuda_runtime_api.h $root/include/nvvm.h\n\
         touch $root/lib/libnvvm.so.4 $root/nvvm/libdevice/libdevice.10.bc"
    );
    machine.program("python3", &python);
    let apt = format!("mkdir -p {dir}/lib; touch {dir}/lib/libclang.so; echo apt >> {dir}/log");
    machine.program("apt-get", &apt);
    let wheels = machine.path("wheels");
    let search = Search {
        cuda_roots: vec![toolkit_in(&wheels)],
        ..machine.search()
    };
    let means = Means {
        python: machine.path("python3"),
        wheels,
        libclang: vec![Command::new(machine.path("apt-get"))],
    };
    (machine, search, means)
}

/// The commands that have been run, except commands that only look.
fn log(machine: &Machine) -> Vec<String> {
    let text = fs::read_to_string(machine.path("log")).unwrap_or_default();
    let dir = machine.dir.path().display().to_string();
    text.lines()
        .filter(|line| !line.contains("component list"))
        .map(|line| line.replace(&dir, "DIR"))
        .collect()
}

#[test]
fn all_but_llvm_is_got_and_then_found() {
    let (machine, search, mut means) = bare();
    let found = set_up(&search, &mut means).unwrap();
    assert_eq!(
        log(&machine),
        [
            "rustup toolchain install nightly-2026-04-02 --profile minimal \
             --component llvm-tools-preview --component rust-src --component rustc-dev",
            "apt",
            "python -m pip install --quiet --no-deps --disable-pip-version-check --upgrade \
             --target DIR/wheels nvidia-cuda-nvcc==13.0.* nvidia-nvvm==13.0.* \
             nvidia-cuda-runtime==13.0.* nvidia-cuda-crt==13.0.*",
        ]
    );
    let toolkit = machine.path("wheels/nvidia/cu13");
    assert_eq!(found.cuda_root, toolkit);
    assert_eq!(found.cuda_version, (13, 0));
    // Where `rustc_codegen_nvvm` and the loader look.
    for file in [
        "nvvm/include/nvvm.h",
        "nvvm/lib64/libnvvm.so",
        "nvvm/lib64/libnvvm.so.4",
    ] {
        let path = toolkit.join(file);
        assert!(path.is_file(), "{file}");
        assert!(!path.parent().unwrap().is_symlink(), "{file}");
    }
    // Once: nothing is missing any more.
    let commands = log(&machine).len();
    set_up(&search, &mut means).unwrap();
    assert_eq!(log(&machine).len(), commands);
}

#[test]
fn components_are_added_to_a_nightly_that_lacks_them() {
    let (machine, search, mut means) = bare();
    machine.file(
        "components",
        "rust-src\nllvm-tools-x86_64-unknown-linux-gnu\n",
    );
    set_up(&search, &mut means).unwrap();
    assert_eq!(
        log(&machine)[0],
        "rustup component add --toolchain nightly-2026-04-02 rustc-dev"
    );
}

#[test]
fn llvm_is_left_and_named_with_its_command() {
    let (machine, search, mut means) = bare();
    fs::remove_file(machine.path("llvm-config")).unwrap();
    let left = set_up(&search, &mut means).unwrap_err();
    let [llvm] = &left[..] else {
        panic!("{left:?}");
    };
    let message = llvm.to_string();
    let command = "`sudo sh rust-cuda/llvm-7.sh /opt/llvm-7`";
    assert!(message.contains(command), "{message}");
    let line = line(&Err(left));
    assert_eq!(
        line,
        "rust-cuda (optional, docs/rust-cuda.md): without LLVM 7"
    );
}

#[test]
fn a_toolkit_that_a_variable_names_is_the_only_one_looked_at() {
    let (machine, mut search, mut means) = bare();
    search.cuda_roots = vec![machine.path("named")];
    let left = set_up(&search, &mut means).unwrap_err();
    assert!(matches!(left[..], [Missing::Cuda { .. }]), "{left:?}");
    assert!(!machine.path("wheels").exists());
}

#[test]
fn without_packages_libclang_is_left() {
    let (_machine, search, mut means) = bare();
    means.libclang.clear();
    let left = set_up(&search, &mut means).unwrap_err();
    assert_eq!(left, [Missing::Libclang]);
}

#[test]
fn a_complete_rust_cuda_is_named_once() {
    let machine = Machine::complete();
    let cuda = machine.path("cuda").display().to_string();
    assert_eq!(
        line(&machine.find()).replace(&cuda, "CUDA"),
        "rust-cuda 946c91f, nightly-2026-04-02, LLVM 7.1.0, libNVVM of CUDA 13.0 at CUDA"
    );
}
