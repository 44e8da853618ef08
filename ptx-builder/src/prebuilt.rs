//! The kernels' PTX as a package of the library carries it, for a build without a device
//! toolchain: `cargo xtask package` writes a folder, and the library's build script reads it.
//!
//! The folder has one file for each [`group`] of kernels, and the file [`MANIFEST`] beside them: a
//! line `compiler NAME`, and then for each kernel a line `SHA-256 BYTES ENTRY`, the hash and the
//! length of its PTX before compression.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpu_kernels::KernelInfo;
use gpu_kernels::entry::ENTRIES;
use sha2::{Digest as _, Sha256};

use crate::group::{self, Group};
use crate::nested::file_error;
use crate::{Error, Program, Toolchain};

/// The file that names the compiler and the hashes.
pub const MANIFEST: &str = "MANIFEST";

/// What begins the line of the compiler.
const COMPILER: &str = "compiler ";

/// The contents of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prebuilt {
    /// The compiler with its LLVM ([`Toolchain::version`]).
    pub compiler: String,
    /// The kernels, in the order of [`ENTRIES`].
    pub kernels: Vec<PrebuiltKernel>,
    /// The same, compressed.
    pub groups: Vec<Group>,
}

/// One kernel of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrebuiltKernel {
    /// The entry point.
    pub name: &'static str,
    /// The text of the module.
    pub ptx: String,
}

/// Writes the folder `dir` anew, with the PTX of all `programs` by `toolchain`. `cache` is that of
/// [`group::compress`].
///
/// # Errors
/// The folder cannot be written, or `cache`.
pub fn write(
    dir: &Path,
    toolchain: &Toolchain,
    programs: &[Program],
    cache: Option<&Path>,
) -> Result<(), Error> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(file_error(dir))?;
    }
    fs::create_dir_all(dir).map_err(file_error(dir))?;
    let write =
        |path: PathBuf, contents: &[u8]| fs::write(&path, contents).map_err(file_error(&path));
    let mut manifest = format!("{COMPILER}{}\n", toolchain.version());
    for Program { kernel, ptx } in programs {
        let (hash, bytes) = (sha256(ptx), ptx.len());
        writeln!(manifest, "{hash} {bytes} {}", kernel.name).expect("a String takes any text");
    }
    for group in group::compress(programs, cache)? {
        write(dir.join(group::file_name(&group.name)), &group.compressed)?;
    }
    write(dir.join(MANIFEST), manifest.as_bytes())
}

/// Reads the folder `dir`, which must have every kernel of [`ENTRIES`], each with the PTX
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
    let (first, lines) = manifest
        .split_once('\n')
        .ok_or_else(|| damaged(&path, "no kernel"))?;
    let compiler = first
        .strip_prefix(COMPILER)
        .ok_or_else(|| damaged(&path, "no compiler"))?;
    // The groups as far as their kernels have been read, and their texts.
    let mut groups: Vec<(Group, String)> = Vec::new();
    let mut kernels = Vec::new();
    for KernelInfo { name, .. } in ENTRIES {
        let (hash, bytes) = listed(lines, name)
            .ok_or_else(|| damaged(&path, &format!("no kernel `{name}`, or no length of it")))?;
        let group_name = group::name(name);
        let file = dir.join(group::file_name(&group_name));
        let index = groups
            .iter()
            .position(|(group, _)| group.name == group_name);
        let index = match index {
            Some(index) => index,
            None => {
                let compressed = fs::read(&file).map_err(file_error(&file))?;
                let text = group::decompress(&compressed)
                    .map_err(|why| damaged(&file, &why.to_string()))?;
                let group = Group {
                    name: group_name,
                    compressed,
                    kernels: Vec::new(),
                };
                groups.push((group, text));
                groups.len() - 1
            }
        };
        let (group, text) = &mut groups[index];
        let start = group.kernels.last().map_or(0, |(_, range)| range.end);
        let range = start..start.saturating_add(bytes);
        let ptx = text.get(range.clone()).filter(|ptx| sha256(ptx) == hash);
        let ptx = ptx.ok_or_else(|| {
            let reason = format!("not the PTX of `{name}` whose hash the manifest has");
            damaged(&file, &reason)
        })?;
        kernels.push(PrebuiltKernel {
            name,
            ptx: ptx.to_owned(),
        });
        group.kernels.push((name, range));
    }
    Ok(Prebuilt {
        compiler: compiler.to_owned(),
        kernels,
        groups: groups.into_iter().map(|(group, _)| group).collect(),
    })
}

/// The hash and the length of kernel `name`, by the lines of the manifest.
fn listed<'a>(lines: &'a str, name: &str) -> Option<(&'a str, usize)> {
    lines.lines().find_map(|line| {
        let (hash, rest) = line.split_once(' ')?;
        let (bytes, entry) = rest.split_once(' ')?;
        let bytes = bytes.parse().ok()?;
        (entry == name).then_some((hash, bytes))
    })
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
        let programs = ENTRIES.iter().map(|kernel| Program {
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
        write(&dir, &toolchain(), &programs(), None).unwrap();
        // Anew, whatever was there.
        fs::write(dir.join("old.ptx.lz"), "").unwrap();
        write(&dir, &toolchain(), &programs(), None).unwrap();
        assert!(!dir.join("old.ptx.lz").exists());
        let found = read(&dir).unwrap();
        assert_eq!(found.compiler, "rustc 1.95.0, LLVM 22.1.2");
        assert_eq!(found.kernels.len(), ENTRIES.len());
        for (kernel, program) in found.kernels.iter().zip(programs()) {
            assert_eq!(
                (kernel.name, &kernel.ptx),
                (program.kernel.name, &program.ptx)
            );
        }
        assert_eq!(found.groups, group::compress(&programs(), None).unwrap());
    }

    #[test]
    fn a_damaged_folder_is_refused_by_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let name = ENTRIES[0].name;
        let refusal = |part: &str| {
            let text = read(dir).unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        };
        refusal(MANIFEST);
        let all = programs();
        write(dir, &toolchain(), &all, None).unwrap();
        let file = group::file_name(&group::name(name));
        let other = Program {
            kernel: &ENTRIES[0],
            ptx: "other".into(),
        };
        let other = group::compress(&[other], None).unwrap().remove(0);
        fs::write(dir.join(&file), other.compressed).unwrap();
        refusal(&format!("{file}: not the PTX of `{name}` whose hash"));
        fs::write(dir.join(&file), [0xff; 8]).unwrap();
        refusal(&format!("{file}: "));
        fs::remove_file(dir.join(&file)).unwrap();
        refusal(&format!("{file}: "));
        write(dir, &toolchain(), &all[1..], None).unwrap();
        refusal(&format!("no kernel `{name}`"));
        fs::write(dir.join(MANIFEST), "rustc\n").unwrap();
        refusal("no compiler");
    }
}
