//! Matrices in NumPy's `.npy` files: f32, f16, and bf16 as u16.
//!
//! NumPy has no bfloat16. The usual way to save one is `a.view(np.uint16)`, so
//! a file of u16 is read as bf16 only when the caller says so.

use crate::error::Error;
use bytemuck::AnyBitPattern;
use half::{bf16, f16};
use npyz::{NpyFile, NpyHeader, Order, TypeChar, WriterBuilder};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::Path;
use tilewise::Element;

/// The elements of a file, in the order the file holds them.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// `<f4` or `>f4`.
    F32(Vec<f32>),
    /// `<f2` or `>f2`.
    F16(Vec<f16>),
    /// `<u2` or `>u2`.
    Bf16(Vec<bf16>),
}

/// A matrix as a file holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct NpyMatrix {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Column-major (NumPy's `fortran_order`); row-major otherwise.
    pub fortran: bool,
    /// All `rows · cols` elements.
    pub values: Values,
}

/// Reads a matrix; `u16_is_bf16` says what 16-bit unsigned integers mean.
///
/// # Errors
/// The file cannot be read, is no `.npy` file, is truncated or too long, is not
/// two-dimensional, or has another element type.
pub fn read(path: &Path, u16_is_bf16: bool) -> Result<NpyMatrix, Error> {
    let refuse = |reason: String| Error::File {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|source| Error::io(path, source))?;
    let file_bytes = file
        .metadata()
        .map_err(|source| Error::io(path, source))?
        .len();
    let mut reader = BufReader::new(file);
    let header = NpyHeader::from_reader(&mut reader)
        .map_err(|error| refuse(format!("no .npy file: {error}")))?;

    let &[rows, cols] = header.shape() else {
        return Err(refuse(format!(
            "holds an array of shape {:?}; a matrix has two dimensions",
            header.shape()
        )));
    };
    let data_bytes = rows.checked_mul(cols).and_then(|n| n.checked_mul(2));
    if data_bytes.is_none_or(|bytes| bytes > file_bytes) {
        return Err(refuse(format!(
            "truncated: {file_bytes} bytes cannot hold {rows}x{cols} elements"
        )));
    }
    let fortran = header.order() == Order::Fortran;
    let kind = match header.dtype() {
        npyz::DType::Plain(plain) => Some((plain.type_char(), plain.size_field())),
        _ => None,
    };
    let values = match kind {
        Some((TypeChar::Float, 4)) => Values::F32(elements(header, &mut reader).map_err(refuse)?),
        Some((TypeChar::Float, 2)) => Values::F16(elements(header, &mut reader).map_err(refuse)?),
        Some((TypeChar::Uint, 2)) if u16_is_bf16 => {
            let bits: Vec<u16> = elements(header, &mut reader).map_err(refuse)?;
            Values::Bf16(bits.into_iter().map(bf16::from_bits).collect())
        }
        Some((TypeChar::Uint, 2)) => {
            return Err(refuse(
                "holds 16-bit unsigned integers; pass --bf16 if they are bfloat16".to_owned(),
            ));
        }
        _ => {
            return Err(refuse(format!(
                "holds elements of type {}; accepted are <f4, <f2, and <u2 with --bf16",
                header.dtype().descr()
            )));
        }
    };
    Ok(NpyMatrix {
        rows: rows as usize,
        cols: cols as usize,
        fortran,
        values,
    })
}

/// The data after `header`, all of it and nothing else.
fn elements<T: npyz::Deserialize>(
    header: NpyHeader,
    reader: &mut impl Read,
) -> Result<Vec<T>, String> {
    let values = NpyFile::with_header(header, &mut *reader)
        .into_vec()
        .map_err(|error| format!("truncated: {error}"))?;
    match reader.read(&mut [0]) {
        Ok(0) => Ok(values),
        Ok(_) => Err("holds more bytes than its header says".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// An element type that files are written in.
pub trait NpyElement: Element {
    /// The Rust type that `npyz` writes.
    type Stored: npyz::AutoSerialize + AnyBitPattern;
}

impl NpyElement for f32 {
    type Stored = f32;
}

impl NpyElement for f16 {
    type Stored = f16;
}

impl NpyElement for bf16 {
    type Stored = u16;
}

/// Writes a row-major matrix in C order.
///
/// # Errors
/// The file cannot be written.
///
/// # Panics
/// `row_major` does not hold `rows · cols` elements.
pub fn write<T: NpyElement>(
    path: &Path,
    rows: usize,
    cols: usize,
    row_major: &[T],
) -> Result<(), Error> {
    assert_eq!(row_major.len(), rows * cols, "elements of {rows}x{cols}");
    let to_file = || -> std::io::Result<()> {
        let mut writer = npyz::WriteOptions::new()
            .default_dtype()
            .shape(&[rows as u64, cols as u64])
            .writer(BufWriter::new(File::create(path)?))
            .begin_nd()?;
        writer.extend(bytemuck::cast_slice::<T, T::Stored>(row_major))?;
        writer.finish()
    };
    to_file().map_err(|source| Error::io(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn scratch() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("matrix.npy");
        (directory, path)
    }

    fn round_trip<T: NpyElement>(values: &[T]) -> Values {
        let (_directory, path) = scratch();
        write(&path, 2, 3, values).unwrap();
        let matrix = read(&path, true).unwrap();
        assert_eq!((matrix.rows, matrix.cols, matrix.fortran), (2, 3, false));
        matrix.values
    }

    #[test]
    fn every_type_survives() {
        let numbers = [1.0, -2.5, 0.0, 3.0e4, 1e-3, -0.0];
        assert_eq!(round_trip(&numbers), Values::F32(numbers.to_vec()));
        let halves = numbers.map(f16::from_f32);
        assert_eq!(round_trip(&halves), Values::F16(halves.to_vec()));
        let brains = numbers.map(bf16::from_f32);
        assert_eq!(round_trip(&brains), Values::Bf16(brains.to_vec()));
    }

    /// Bytes of a version 1.0 file, as NumPy's format description (NEP 1) has it.
    fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = if fortran { "True" } else { "False" };
        let mut dict =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
        while (10 + dict.len() + 1) % 64 != 0 {
            dict.push(' ');
        }
        dict.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dict.len() as u16).to_le_bytes());
        bytes.extend(dict.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn read_bytes(bytes: &[u8], u16_is_bf16: bool) -> Result<NpyMatrix, String> {
        let (_directory, path) = scratch();
        std::fs::write(&path, bytes).unwrap();
        read(&path, u16_is_bf16).map_err(|error| error.to_string())
    }

    #[test]
    fn fortran_order_and_big_endian_are_read() {
        let data: Vec<u8> = [1.5f32, -4.0]
            .iter()
            .flat_map(|x| x.to_be_bytes())
            .collect();
        let matrix = read_bytes(&file(">f4", true, "(1, 2)", &data), false).unwrap();
        assert_eq!((matrix.rows, matrix.cols, matrix.fortran), (1, 2, true));
        assert_eq!(matrix.values, Values::F32(vec![1.5, -4.0]));
    }

    #[test]
    fn wrong_files_say_what_is_wrong() {
        let four = [0; 4];
        let cases: [(Vec<u8>, &str); 8] = [
            (b"PK\x03\x04 a zip".to_vec(), "no .npy file"),
            (Vec::new(), "no .npy file"),
            (file("<f8", false, "(1, 1)", &[0; 8]), "type"),
            (file("<f4", false, "(1,)", &four), "two dimensions"),
            (file("<f4", false, "(1, 2)", &four), "truncated"),
            (file("<f4", false, "(1, 1000000000000)", &four), "truncated"),
            (file("<f4", false, "(1, 1)", &[0; 9]), "more bytes"),
            (file("<u2", false, "(1, 2)", &four), "--bf16"),
        ];
        for (bytes, expected) in cases {
            let message = read_bytes(&bytes, false).unwrap_err();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("matrix.npy"), "{message}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let message = read(Path::new("no-such.npy"), false)
            .unwrap_err()
            .to_string();
        assert!(message.contains("no-such.npy"), "{message}");
    }
}
