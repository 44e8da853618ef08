//! Records as JSON and as CSV.

use crate::atomic_file;
use crate::error::Error;
use crate::records::record::Record;
use serde::Serialize;
use std::path::Path;

/// Writes records as a JSON array.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(records: &[Record], path: &Path) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(records).map_err(Error::Json)?;
    atomic_file::write(path, (text + "\n").as_bytes())
}

/// Writes records, or rows of another kind, as CSV with a head line.
///
/// # Errors
/// The file cannot be written.
pub fn write_csv(records: &[impl Serialize], path: &Path) -> Result<(), Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.serialize(record)?;
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error);
    atomic_file::write(path, &bytes.map_err(|source| Error::io(path, source))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::record_tables::tests::samples;
    use std::fs;

    #[test]
    fn json_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.json");
        write_json(&samples(), &path).unwrap();
        let read: Vec<Record> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, samples());
    }

    #[test]
    fn csv_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.csv");
        write_csv(&samples(), &path).unwrap();
        let read: Vec<Record> = csv::Reader::from_path(&path)
            .unwrap()
            .deserialize()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(read, samples());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let path = Path::new("no-such-folder/records.json");
        let message = write_json(&samples(), path).unwrap_err().to_string();
        assert!(message.contains("no-such-folder"), "{message}");
    }
}
