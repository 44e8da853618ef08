//! The winners of earlier measurements, in memory and in a file.
//!
//! The file is small JSON, and is read and written as a whole. A writer reads it again
//! first, adds its winner, and renames a finished copy over it, so that readers never
//! see a partial file. If two processes write at the same moment, the winner that one of
//! them added may be lost. A damaged file only causes a warning and a new measurement.
//!
//! Winners of another driver or another build of the kernels are stale. Each
//! GPU has one section that names its driver and its build, and the first winner of a new
//! driver or build replaces the section.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use etcetera::base_strategy::{BaseStrategy as _, Xdg};
use serde::{Deserialize, Serialize};

use super::finals::Times;
use super::key::Machine;
use crate::select::Choice;

/// The version of the file format. Increase it when older versions of this library can
/// no longer read the file.
const FORMAT: u32 = 1;

/// Winners, by machine and problem.
#[derive(Debug)]
pub(crate) struct Cache {
    /// `None` if winners are kept in memory only.
    file: Option<PathBuf>,
    /// `None` until the file is read.
    contents: Option<Contents>,
}

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Contents {
    format: u32,
    /// By [`Machine::gpu`].
    gpus: BTreeMap<String, Section>,
}

impl Default for Contents {
    fn default() -> Self {
        Contents {
            format: FORMAT,
            gpus: BTreeMap::new(),
        }
    }
}

/// The winners of one GPU, with one driver and one build of the kernels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Section {
    driver: String,
    kernels: String,
    /// By the key from [`super::key::of_problem`].
    winners: BTreeMap<String, Winner>,
}

impl Section {
    fn is_for(&self, machine: &Machine) -> bool {
        self.driver == machine.driver && self.kernels == machine.kernels
    }
}

/// A choice that won a race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Winner {
    kernel: String,
    transposed: bool,
    order: String,
    schedule: String,
    /// The number of classes of lines, where there is more than one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_classes: Option<u32>,
    /// The medians of its times. They are only for people who read the file.
    milliseconds: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sustained_milliseconds: Option<f64>,
}

impl Winner {
    pub(super) fn new(choice: &Choice, times: Times) -> Winner {
        let Choice {
            kernel,
            transposed,
            order,
            schedule,
            line_classes,
            // These follow from the problem and the kernel.
            packed: _,
            pack: _,
            two_launches: _,
            grid: _,
            batches: _,
            stream_k_ctas: _,
            reduce: _,
        } = choice;
        Winner {
            kernel: kernel.name.to_owned(),
            transposed: *transposed,
            order: order.to_string(),
            schedule: format!("{schedule:?}"),
            line_classes: Some(*line_classes).filter(|&classes| classes > 1),
            milliseconds: times.cold,
            sustained_milliseconds: times.sustained,
        }
    }

    /// Whether `choice` is this winner.
    pub(crate) fn is(&self, choice: &Choice) -> bool {
        let times = Times {
            cold: self.milliseconds,
            sustained: self.sustained_milliseconds,
        };
        *self == Winner::new(choice, times)
    }
}

impl Cache {
    /// A cache in `file`, which does not have to exist; without a file, a cache in memory.
    pub(crate) fn new(file: Option<PathBuf>) -> Cache {
        Cache {
            file,
            contents: None,
        }
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The winner of `problem` on `machine`, if it was measured.
    pub(crate) fn lookup(&mut self, machine: &Machine, problem: &str) -> Option<Winner> {
        let contents = self.contents.get_or_insert_with(|| {
            let contents = read_or_empty(self.file.as_deref());
            if let (Some(file), Some(section)) = (&self.file, contents.gpus.get(&machine.gpu))
                && !section.is_for(machine)
            {
                log::warn!(
                    "{}: measured with driver {} and kernels {}, this is {} and {}; \
                     measuring again",
                    file.display(),
                    section.driver,
                    section.kernels,
                    machine.driver,
                    machine.kernels,
                );
            }
            contents
        });
        let section = contents.gpus.get(&machine.gpu)?;
        let winner = section.winners.get(problem);
        winner.filter(|_| section.is_for(machine)).cloned()
    }

    /// Keeps the winner of `problem` on `machine`.
    pub(crate) fn remember(&mut self, machine: &Machine, problem: &str, winner: Winner) {
        let mut contents = match (&self.file, self.contents.take()) {
            // Other processes may have added winners to the file.
            (Some(file), _) => read_or_empty(Some(file)),
            (None, contents) => contents.unwrap_or_default(),
        };
        let section = contents.gpus.entry(machine.gpu.clone()).or_default();
        if !section.is_for(machine) {
            *section = Section {
                driver: machine.driver.clone(),
                kernels: machine.kernels.clone(),
                winners: BTreeMap::new(),
            };
        }
        section.winners.insert(problem.to_owned(), winner);
        if let Some(file) = &self.file
            && let Err(error) = write(file, &contents)
        {
            log::warn!(
                "{}: cannot be written ({error}); what is measured lasts as long as this tuner",
                file.display()
            );
            self.file = None;
        }
        self.contents = Some(contents);
    }
}

/// The contents of `file`. If it cannot be read, logs a warning and returns no winners.
fn read_or_empty(file: Option<&Path>) -> Contents {
    let Some(file) = file else {
        return Contents::default();
    };
    read(file).unwrap_or_else(|reason| {
        log::warn!("{}: ignored, {reason}", file.display());
        Contents::default()
    })
}

fn read(file: &Path) -> Result<Contents, String> {
    /// The field that every version of the format has.
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Contents::default()),
        Err(error) => return Err(format!("it cannot be read: {error}")),
    };
    let no_cache = |error| format!("it is no cache of tilewise: {error}");
    let Head { format } = serde_json::from_str(&text).map_err(no_cache)?;
    if format != FORMAT {
        return Err(format!("its format is {format}, accepted: {FORMAT}"));
    }
    serde_json::from_str(&text).map_err(no_cache)
}

/// Replaces `file` atomically.
fn write(file: &Path, contents: &Contents) -> io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let mut temporary = tempfile::Builder::new()
        .prefix(".tune-")
        // Permissions like other new files: the user's umask applies.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    let mut text = serde_json::to_string_pretty(contents)?;
    text.push('\n');
    temporary.write_all(text.as_bytes())?;
    // The bytes must be on disk before the rename, or a crash could leave an empty file.
    temporary.as_file().sync_all()?;
    temporary.persist(file)?;
    Ok(())
}

/// The default cache file: `tune.json` in `$TILEWISE_CACHE`, else in
/// `tilewise` in the user's cache folder, which is `$XDG_CACHE_HOME` (if absolute) or
/// `~/.cache` (XDG Base Directory Specification). `None` for a user without a home folder.
pub(crate) fn default_file() -> Option<PathBuf> {
    let own = env::var_os("TILEWISE_CACHE").filter(|value| !value.is_empty());
    let folder = match own {
        Some(folder) => PathBuf::from(folder),
        None => Xdg::new().ok()?.cache_dir().join("tilewise"),
    };
    Some(folder.join("tune.json"))
}

#[cfg(test)]
mod tests;
