//! Kernels that are compressed together: those whose names differ in nothing but the element type,
//! f16 or bf16. Their PTX differs in the types of a few instructions, so a group takes hardly more
//! room than one of its kernels.
//!
//! A group is one file, in the format of lzip: the texts of its kernels, one behind the other in
//! the order of [`ENTRIES`](gpu_kernels::entry::ENTRIES).

use std::fs;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::path::Path;

use lzma_rust2::{LzipOptions, LzipReader, LzipWriter};
use rayon::prelude::*;

use crate::nested::file_error;
use crate::{Error, Program};

/// The compression level, of xz's levels 0 to 9. For 40 MB of PTX, level 6 makes 3.2 MB in 7 s,
/// level 4 makes 3.8 MB in 4 s; DEFLATE, kernel by kernel, made 7.9 MB.
const LEVEL: u32 = 6;

/// Bytes of text that a reader of a group keeps: more than the largest group has.
const DICTIONARY_BYTES: u32 = 2 << 20;

/// Some kernels' PTX, compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name that the kernels share ([`name`]).
    pub name: String,
    /// The texts, compressed.
    pub compressed: Vec<u8>,
    /// Each kernel, and where its text lies among the texts, in bytes.
    pub kernels: Vec<(&'static str, Range<usize>)>,
}

/// The group of `kernel`: its name without a 16-bit element type.
///
/// ```
/// use ptx_builder::group;
/// assert_eq!(group::name("hopper_bf16_ak_bk_64x64x128"), "hopper_ak_bk_64x64x128");
/// assert_eq!(group::name("hopper_tf32_ak_bk_64x64x64"), "hopper_tf32_ak_bk_64x64x64");
/// ```
pub fn name(kernel: &str) -> String {
    let parts = kernel.split('_');
    let shared: Vec<_> = parts
        .filter(|part| !matches!(*part, "f16" | "bf16"))
        .collect();
    shared.join("_")
}

/// The file of the group `name`.
pub fn file_name(name: &str) -> String {
    format!("{name}.ptx.lz")
}

/// The groups of `programs`, in the order of their first kernels. `cache` ([`crate::cache_dir`])
/// keeps them: a group with the same texts is taken from there.
///
/// # Errors
/// `cache` is not writable.
pub fn compress(programs: &[Program], cache: Option<&Path>) -> Result<Vec<Group>, Error> {
    let mut groups: Vec<(Group, String)> = Vec::new();
    for Program { kernel, ptx } in programs {
        let name = name(kernel.name);
        let index = groups.iter().position(|(group, _)| group.name == name);
        let index = index.unwrap_or_else(|| {
            let group = Group {
                name,
                compressed: Vec::new(),
                kernels: Vec::new(),
            };
            groups.push((group, String::new()));
            groups.len() - 1
        });
        let (group, text) = &mut groups[index];
        group
            .kernels
            .push((kernel.name, text.len()..text.len() + ptx.len()));
        text.push_str(ptx);
    }
    let compressed = groups.into_par_iter().map(|(group, text)| {
        let compressed = match cache {
            Some(dir) => compressed_in(&dir.join("groups").join(file_name(&group.name)), &text)?,
            None => lzip(text.as_bytes()),
        };
        Ok(Group {
            compressed,
            ..group
        })
    });
    compressed.collect()
}

/// `text`, compressed, from `file` where that has it.
fn compressed_in(file: &Path, text: &str) -> Result<Vec<u8>, Error> {
    if let Ok(compressed) = fs::read(file)
        && decompress(&compressed).is_ok_and(|kept| kept == text)
    {
        return Ok(compressed);
    }
    let compressed = lzip(text.as_bytes());
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).map_err(file_error(dir))?;
    }
    // Another build may read or write the same file.
    let own = file.with_extension(std::process::id().to_string());
    fs::write(&own, &compressed).map_err(file_error(&own))?;
    fs::rename(&own, file).map_err(file_error(file))?;
    Ok(compressed)
}

fn lzip(text: &[u8]) -> Vec<u8> {
    let mut options = LzipOptions::with_preset(LEVEL);
    options.lzma_options.dict_size = DICTIONARY_BYTES;
    let mut writer = LzipWriter::new(Vec::new(), options);
    let written = writer.write_all(text).and_then(|()| writer.finish());
    written.expect("a Vec takes all bytes")
}

/// All texts of a group, one behind the other.
///
/// # Errors
/// What is wrong with `compressed`.
pub fn decompress(compressed: &[u8]) -> std::io::Result<String> {
    let mut text = String::new();
    LzipReader::new(compressed).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::KernelInfo;
    use gpu_kernels::entry::ENTRIES;

    fn programs() -> Vec<Program> {
        let text =
            |name: &str, times: u32| format!(".entry {name}() {{}}\n").repeat(times as usize);
        let program = |kernel: &'static KernelInfo| Program {
            kernel,
            ptx: text(kernel.name, kernel.stages + 1),
        };
        ENTRIES.iter().map(program).collect()
    }

    #[test]
    fn groups_are_kept_until_a_text_changes() {
        let dir = tempfile::tempdir().unwrap();
        let mut programs = programs();
        let (anew, kept) = (
            compress(&programs, None).unwrap(),
            dir.path().join("groups"),
        );
        for _ in 0..2 {
            assert_eq!(compress(&programs, Some(dir.path())).unwrap(), anew);
        }
        let files = || {
            let file = |name: &str| fs::read(kept.join(file_name(name))).unwrap();
            anew.iter()
                .map(|group| file(&group.name))
                .collect::<Vec<_>>()
        };
        assert!(
            files()
                .iter()
                .eq(anew.iter().map(|group| &group.compressed))
        );
        assert_eq!(fs::read_dir(&kept).unwrap().count(), anew.len());

        programs[0].ptx.push(' ');
        fs::write(kept.join(file_name(&anew[1].name)), "damaged").unwrap();
        let others = compress(&programs, Some(dir.path())).unwrap();
        assert_eq!(others, compress(&programs, None).unwrap());
        assert_ne!(others[0], anew[0]);
        assert!(
            files()
                .iter()
                .eq(others.iter().map(|group| &group.compressed))
        );
    }

    #[test]
    fn every_text_is_where_its_group_says() {
        let programs = programs();
        let groups = compress(&programs, None).unwrap();
        assert!(groups.len() < ENTRIES.len() * 2 / 3);
        let found = groups.iter().map(|group| group.kernels.len());
        assert_eq!(found.sum::<usize>(), ENTRIES.len());
        for group in &groups {
            let text = decompress(&group.compressed).unwrap();
            for (kernel, range) in &group.kernels {
                let program = programs
                    .iter()
                    .find(|program| program.kernel.name == *kernel);
                assert_eq!(text[range.clone()], program.unwrap().ptx, "{kernel}");
                assert_eq!(name(kernel), group.name);
            }
        }
    }

    #[test]
    fn a_damaged_group_is_an_error() {
        let mut compressed = lzip(b".entry");
        assert_eq!(decompress(&compressed).unwrap(), ".entry");
        assert!(decompress(&compressed[..compressed.len() - 3]).is_err());
        // Behind the header of 6 bytes.
        compressed[10] ^= 0x55;
        assert!(decompress(&compressed).is_err());
    }
}
