//! Kernels that are compressed together: those whose names differ in nothing but the element type,
//! f16 or bf16. Their PTX differs in the types of a few instructions, so a group takes hardly more
//! room than one of its kernels.
//!
//! A group is one file, in the format of lzip: the texts of its kernels, one behind the other in
//! the order of [`KERNELS`](gpu_kernels::entry::KERNELS).

use std::io::{Read as _, Write as _};
use std::ops::Range;

use lzma_rust2::{LzipOptions, LzipReader, LzipWriter};

use crate::Program;

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

/// The groups of `programs`, in the order of their first kernels.
pub fn compress(programs: &[Program]) -> Vec<Group> {
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
    let compressed = groups.into_iter().map(|(group, text)| Group {
        compressed: lzip(text.as_bytes()),
        ..group
    });
    compressed.collect()
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
    use gpu_kernels::entry::KERNELS;

    #[test]
    fn every_text_is_where_its_group_says() {
        let programs: Vec<_> = KERNELS
            .iter()
            .map(|kernel| Program {
                kernel,
                ptx: format!(".entry {}() {{}}\n", kernel.name).repeat(kernel.stages as usize + 1),
            })
            .collect();
        let groups = compress(&programs);
        assert!(groups.len() < KERNELS.len() * 2 / 3);
        let found = groups.iter().map(|group| group.kernels.len());
        assert_eq!(found.sum::<usize>(), KERNELS.len());
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
