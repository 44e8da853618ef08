//! Files that appear as a whole or not at all.

use crate::error::Error;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Writes `bytes` to a new file beside `path` and renames it (rename(2)): whenever the
/// process ends, `path` holds what it held before or all of `bytes`. A target that is not an
/// ordinary file, such as a pipe, is written to.
///
/// The system may write the file to the disk later: it survives the end of the process, but
/// perhaps not of the machine.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let to_file = || {
        // A link stays, and what it leads to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
            return fs::write(&target, bytes);
        }
        let folder = match target.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut file = tempfile::Builder::new()
            .prefix(".tilewise-")
            // The permissions of other new files; the system applies the user's mask.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    };
    to_file().map_err(|source| Error::io(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_made_and_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        for text in ["first, and long", "second"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["rows.csv"]);
        let ordinary = folder.path().join("ordinary");
        fs::write(&ordinary, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&ordinary));
    }

    #[test]
    fn who_reads_the_file_meanwhile_sees_all_of_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        write(&path, b"old").unwrap();
        let open = fs::File::open(&path).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(std::io::read_to_string(open).unwrap(), "old");
    }

    #[test]
    fn links_and_devices_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("rows.csv"), folder.path().join("link"));
        write(&path, b"old").unwrap();
        symlink("rows.csv", &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        write(Path::new("/dev/null"), b"gone").unwrap();
    }

    #[test]
    fn a_missing_folder_is_an_error_that_names_the_file() {
        let message = write(Path::new("no-such-folder/rows.csv"), b"").unwrap_err();
        assert!(message.to_string().starts_with("no-such-folder/rows.csv: "));
    }
}
