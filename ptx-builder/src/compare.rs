//! Whether two builds of the kernels can stand in for each other.
//!
//! The launcher finds an entry point by its name and fills its parameters by size and
//! alignment (`cuLaunchKernelEx`). Nothing makes two code generators agree on these, so
//! this compares them for two folders of PTX. It does not compare the names of types:
//! `.u64` and `.b64` are the same eight bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use crate::Error;
use crate::nested::file_error;
use crate::ptx::Module;

/// One parameter of an entry point (PTX ISA, "Kernel Function Parameters").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Bytes it takes.
    pub bytes: u32,
    /// Bytes it is aligned to.
    pub align: u32,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes aligned to {}", self.bytes, self.align)
    }
}

/// The entry points of a folder: names with parameter lists.
pub type EntryPoints = BTreeMap<String, Vec<Parameter>>;

/// One thing that two folders do not have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// An entry point that only the first folder has.
    OnlyFirst(String),
    /// An entry point that only the second folder has.
    OnlySecond(String),
    /// An entry point with different parameters.
    Parameters {
        /// Its name.
        name: String,
        /// Its parameters in the first folder.
        first: Vec<Parameter>,
        /// Its parameters in the second folder.
        second: Vec<Parameter>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::OnlyFirst(name) => write!(f, "{name}: only in the first"),
            Difference::OnlySecond(name) => write!(f, "{name}: only in the second"),
            Difference::Parameters {
                name,
                first,
                second,
            } => write!(f, "{name}: ({}) and ({})", list(first), list(second)),
        }
    }
}

/// Reads the entry points of all `.ptx` files directly in `folder`.
///
/// # Errors
/// A file cannot be read or is no PTX; [`Error::EntryTwice`] for an entry point
/// with two different parameter lists; [`Error::NoPtx`] where the folder has no entry point.
pub fn read(folder: &Path) -> Result<EntryPoints, Error> {
    let mut found = EntryPoints::new();
    for file in folder.read_dir().map_err(file_error(folder))? {
        let path = file.map_err(file_error(folder))?.path();
        if path.extension().is_none_or(|extension| extension != "ptx") {
            continue;
        }
        let text = fs::read_to_string(&path).map_err(file_error(&path))?;
        let in_file = |reason| Error::InFile {
            path: path.clone(),
            reason: Box::new(reason),
        };
        for entry in Module::parse(&text).map_err(in_file)?.entries {
            let parameters = parameters(&entry.signature).ok_or_else(|| {
                in_file(Error::Parameters {
                    signature: entry.signature.clone(),
                })
            })?;
            let old = found.insert(entry.name.clone(), parameters.clone());
            if old.is_some_and(|old| old != parameters) {
                return Err(in_file(Error::EntryTwice(entry.name)));
            }
        }
    }
    if found.is_empty() {
        return Err(Error::NoPtx(folder.to_owned()));
    }
    Ok(found)
}

/// What two folders do not have in common, by name.
pub fn differences(first: &EntryPoints, second: &EntryPoints) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (name, parameters) in first {
        match second.get(name) {
            None => differences.push(Difference::OnlyFirst(name.clone())),
            Some(other) if other != parameters => differences.push(Difference::Parameters {
                name: name.clone(),
                first: parameters.clone(),
                second: other.clone(),
            }),
            Some(_) => {}
        }
    }
    let only_second = second.keys().filter(|name| !first.contains_key(*name));
    differences.extend(only_second.cloned().map(Difference::OnlySecond));
    differences
}

/// The parameters of an entry point's signature, `.visible .entry name(…)`.
fn parameters(signature: &str) -> Option<Vec<Parameter>> {
    let list = signature.split_once('(')?.1.strip_suffix(')')?;
    let declarations = list.split(',').map(str::trim);
    declarations
        .filter(|declaration| !declaration.is_empty())
        .map(parameter)
        .collect()
}

/// One declaration: `.param .u64 x`, `.param .u64 .ptr .align 1 x` (here the
/// alignment is that of what is pointed to) or `.param .align 8 .b8 x[128]`.
fn parameter(declaration: &str) -> Option<Parameter> {
    let mut words = declaration.split_whitespace();
    if words.next()? != ".param" {
        return None;
    }
    let mut word = words.next()?;
    let mut align = None;
    if word == ".align" {
        align = Some(words.next()?.parse().ok()?);
        word = words.next()?;
    }
    // The type's letter says how to read the bits; the number how many.
    let bits: u32 = word.strip_prefix('.')?.get(1..)?.parse().ok()?;
    let element = bits / 8;
    let name = words.last()?;
    let elements = match name.split_once('[') {
        Some((_, count)) => count.strip_suffix(']')?.parse().ok()?,
        None => 1,
    };
    Some(Parameter {
        bytes: element * elements,
        align: align.unwrap_or(element),
    })
}

/// A parameter list for people.
fn list(parameters: &[Parameter]) -> String {
    let texts: Vec<String> = parameters.iter().map(Parameter::to_string).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_by_size_and_alignment() {
        let of = |bytes, align| Some(Parameter { bytes, align });
        assert_eq!(parameter(".param .u64 x"), of(8, 8));
        assert_eq!(parameter(".param .b64 x"), of(8, 8));
        assert_eq!(parameter(".param .f32 x"), of(4, 4));
        assert_eq!(parameter(".param .align 8 .b8 x[128]"), of(128, 8));
        assert_eq!(parameter(".param .align 64 .b8 x[128]"), of(128, 64));
        assert_eq!(parameter(".param .u64 .ptr .global .align 1 x"), of(8, 8));
        assert_eq!(parameter(".reg .u64 x"), None);
        assert_eq!(parameter(".param .align 8 .b8 x[many]"), None);
    }

    #[test]
    fn a_signature_may_have_any_number_of_parameters() {
        assert_eq!(parameters(".visible .entry one()"), Some(Vec::new()));
        let two = ".visible .entry two(\n\t.param .u64 two_param_0,\n\t.param .u32 two_param_1\n)";
        assert_eq!(parameters(two).map(|list| list.len()), Some(2));
    }
}
