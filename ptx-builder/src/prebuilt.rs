//! The kernels' PTX as a package of the library carries it, for a build without a device
//! toolchain: `cargo xtask package` writes a folder, and the library's build script reads it.
//!
//! The folder has one file for each kernel, its PTX compressed by DEFLATE, and the file
//! [`MANIFEST`] beside them: a line `compiler NAME`, and then for each kernel a line
//! `SHA-256 ENTRY`, the hash of its PTX before compression.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpu_kernels::entry::KERNELS;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec;
use sha2::{Digest as _, Sha256};

use crate::nested::file_error;
use crate::{Error, Program, Toolchain};

/// The file that names the compiler and the hashes.
pub const MANIFEST: &str = "MANIFEST";

/// What begins the line of the compiler.
const COMPILER: &str = "compiler ";

/// The compression level, of zlib's levels 0 to 9. Higher levels take longer and save
/// less than 1 %.
const COMPRESSION: u8 = 6;

/// The contents of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prebuilt {
    /// The compiler with its LLVM ([`Toolchain::version`]).
    pub compiler: String,
    /// The kernels, in the order of [`KERNELS`].
    pub kernels: Vec<PrebuiltKernel>,
}

/// One kernel of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrebuiltKernel {
    /// The entry point.
    pub name: &'static str,
    /// The text of the module.
    pub ptx: String,
    /// The same, by [`compress`].
    pub compressed: Vec<u8>,
}

/// PTX as raw DEFLATE. PTX is repetitive text: one stream for each kernel makes the kernels'
/// 12 MB to 2.4 MB, and a kernel is decompressed in 0.2 ms.
pub fn compress(ptx: &str) -> Vec<u8> {
    compress_to_vec(ptx.as_bytes(), COMPRESSION)
}

/// Writes the folder `dir` anew, with the PTX of all `programs` by `toolchain`.
///
/// # Errors
/// The folder cannot be written.
pub fn write(dir: &Path, toolchain: &Toolchain, programs: &[Program]) -> Result<(), Error> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(file_error(dir))?;
    }
    fs::create_dir_all(dir).map_err(file_error(dir))?;
    let write =
        |path: PathBuf, contents: &[u8]| fs::write(&path, contents).map_err(file_error(&path));
    let mut manifest = format!("{COMPILER}{}\n", toolchain.version());
    for program in programs {
        let name = program.kernel.name;
        writeln!(manifest, "{} {name}", sha256(&program.ptx)).expect("a String takes any text");
        write(dir.join(file_name(name)), &compress(&program.ptx))?;
    }
    write(dir.join(MANIFEST), manifest.as_bytes())
}

/// Reads the folder `dir`, which must have every kernel of [`KERNELS`], each with the PTX
/// of its hash.
///
/// # Errors
/// [`Error::File`] where a file cannot be read, and [`Error::Prebuilt`] where one is not
/// what [`write()`] has written.
pub fn read(dir: &Path) -> Result<Prebuilt, Error> {
    let path = dir.join(MANIFEST);
    let manifest = fs::read_to_string(&path).map_err(file_error(&path))?;
    let damaged = |path: &Path, reason: &str| Error::Prebuilt {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let (first, hashes) = manifest
        .split_once('\n')
        .ok_or_else(|| damaged(&path, "no kernel"))?;
    let compiler = first
        .strip_prefix(COMPILER)
        .ok_or_else(|| damaged(&path, "no compiler"))?;
    let hash_of = |name: &str| {
        let mut lines = hashes.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(_, entry)| *entry == name)
            .map(|(hash, _)| hash)
    };
    let kernel = |name: &'static str| {
        let hash = hash_of(name).ok_or_else(|| damaged(&path, &format!("no kernel `{name}`")))?;
        let file = dir.join(file_name(name));
        let compressed = fs::read(&file).map_err(file_error(&file))?;
        let ptx = decompress_to_vec(&compressed).map_err(|why| damaged(&file, &why.to_string()))?;
        let ptx = String::from_utf8(ptx).map_err(|why| damaged(&file, &why.to_string()))?;
        if sha256(&ptx) != hash {
            return Err(damaged(&file, "not the PTX whose hash the manifest has"));
        }
        Ok(PrebuiltKernel {
            name,
            ptx,
            compressed,
        })
    };
    let kernels = KERNELS.iter().map(|info| kernel(info.name));
    Ok(Prebuilt {
        compiler: compiler.to_owned(),
        kernels: kernels.collect::<Result<_, Error>>()?,
    })
}

/// The file with the PTX of kernel `name`.
pub fn file_name(name: &str) -> String {
    format!("{name}.ptx.deflate")
}

/// The SHA-256 of `text`, as hexadecimal digits.
fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a String takes any text");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::CoreLibrary;

    fn toolchain() -> Toolchain {
        Toolchain {
            rustc: "rustc".into(),
            verbose_version: "rustc 1.95.0\nLLVM version: 22.1.2".into(),
            core: CoreLibrary::Compiled,
        }
    }

    /// A text in place of each kernel's PTX.
    fn programs() -> Vec<Program> {
        let programs = KERNELS.iter().map(|kernel| Program {
            kernel,
            ptx: format!(".entry {}()", kernel.name),
        });
        programs.collect()
    }

    #[test]
    fn the_hash_is_sha_256() {
        // NIST, "SHA-256 example: one block".
        assert_eq!(
            sha256("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("prebuilt");
        write(&dir, &toolchain(), &programs()).unwrap();
        // Anew, whatever was there.
        fs::write(dir.join("old.ptx.deflate"), "").unwrap();
        write(&dir, &toolchain(), &programs()).unwrap();
        assert!(!dir.join("old.ptx.deflate").exists());
        let found = read(&dir).unwrap();
        assert_eq!(found.compiler, "rustc 1.95.0, LLVM 22.1.2");
        assert_eq!(found.kernels.len(), KERNELS.len());
        for (kernel, program) in found.kernels.iter().zip(programs()) {
            assert_eq!(
                (kernel.name, &kernel.ptx),
                (program.kernel.name, &program.ptx)
            );
            assert_eq!(kernel.compressed, compress(&program.ptx));
        }
    }

    #[test]
    fn a_damaged_folder_is_refused_by_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let name = KERNELS[0].name;
        let refusal = |part: &str| {
            let text = read(dir).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        refusal(MANIFEST);
        let all = programs();
        write(dir, &toolchain(), &all).unwrap();
        fs::write(dir.join(file_name(name)), compress("other")).unwrap();
        refusal(&format!("{name}.ptx.deflate: not the PTX whose hash"));
        fs::write(dir.join(file_name(name)), [0xff; 8]).unwrap();
        refusal(&format!("{name}.ptx.deflate: "));
        fs::remove_file(dir.join(file_name(name))).unwrap();
        refusal(&format!("{name}.ptx.deflate: "));
        write(dir, &toolchain(), &all[1..]).unwrap();
        refusal(&format!("no kernel `{name}`"));
        fs::write(dir.join(MANIFEST), "rustc\n").unwrap();
        refusal("no compiler");
    }
}
