//! The lines and regions of each file, and whether any program has executed them.
//!
//! A region is what `llvm-cov show` marks: where a counter's range begins. Ranges of
//! all instantiations of a function that begin at one place are one region, and it
//! is covered if any instantiation in any program has executed it; likewise a line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The covered lines or regions, and the number of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub covered: usize,
    pub count: usize,
}

impl Share {
    fn of<K>(places: &BTreeMap<K, bool>) -> Share {
        Share {
            covered: places.values().filter(|covered| **covered).count(),
            count: places.len(),
        }
    }

    pub fn percent(self) -> f64 {
        match self.count {
            0 => 100.0,
            count => 100.0 * self.covered as f64 / count as f64,
        }
    }

    pub fn add(&mut self, other: Share) {
        self.covered += other.covered;
        self.count += other.count;
    }
}

/// One source file.
#[derive(Debug, Default)]
pub struct File {
    /// By number.
    lines: BTreeMap<u64, bool>,
    /// By line and column.
    regions: BTreeMap<(u64, u64), bool>,
}

impl File {
    pub fn lines(&self) -> Share {
        Share::of(&self.lines)
    }

    pub fn regions(&self) -> Share {
        Share::of(&self.regions)
    }

    /// `: 3-5, 9, 12:40`: the lines that no program executed, and the regions, by line and
    /// column, that none executed on other lines.
    pub fn missed(&self) -> String {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        let mut after_missed = false;
        for (&line, &covered) in &self.lines {
            match ranges.last_mut() {
                Some((_, last)) if after_missed && !covered => *last = line,
                _ if !covered => ranges.push((line, line)),
                _ => {}
            }
            after_missed = !covered;
        }
        let lines = ranges.into_iter().map(|(first, last)| {
            if first == last {
                (first, format!("{first}"))
            } else {
                (first, format!("{first}-{last}"))
            }
        });
        let regions = self
            .regions
            .iter()
            .filter_map(|(&(line, column), covered)| {
                let on_covered_line = self.lines.get(&line) == Some(&true);
                (!covered && on_covered_line).then(|| (line, format!("{line}:{column}")))
            });
        let mut places: Vec<(u64, String)> = lines.chain(regions).collect();
        places.sort();
        let places: Vec<String> = places.into_iter().map(|(_, place)| place).collect();
        match places.is_empty() {
            true => String::new(),
            false => format!(": {}", places.join(", ")),
        }
    }
}

/// The lines and regions that programs have executed.
#[derive(Debug, Default)]
pub struct Executed(BTreeMap<PathBuf, File>);

impl Executed {
    pub fn files(&self) -> impl Iterator<Item = (&Path, &File)> {
        self.0.iter().map(|(path, file)| (path.as_path(), file))
    }

    /// Adds the lines of one program, from llvm-cov's lcov format: `SF:` names a file,
    /// `DA:` a line and how often it was executed.
    pub fn add_lines(&mut self, lcov: &str) -> Result<()> {
        let mut file = None;
        for record in lcov.lines() {
            if let Some(path) = record.strip_prefix("SF:") {
                file = Some(self.0.entry(path.into()).or_default());
            } else if let Some(line) = record.strip_prefix("DA:") {
                let parsed = line.split_once(',').and_then(|(number, rest)| {
                    let count = rest.split(',').next()?;
                    Some((number.parse().ok()?, count.parse::<u64>().ok()?))
                });
                let (number, count) = parsed.with_context(|| format!("a line `{record}`"))?;
                let file = file.as_mut().context("a line of no file")?;
                *file.lines.entry(number).or_default() |= count > 0;
            }
        }
        Ok(())
    }

    /// Adds the regions of one program, from llvm-cov's JSON. A segment is line, column,
    /// count, whether it has a count, whether a region begins there, and whether that
    /// is a gap between regions.
    pub fn add_regions(&mut self, export: &Value) -> Result<()> {
        let files = export["data"][0]["files"].as_array();
        for file in files.context("llvm-cov names no files")? {
            let name = file["filename"].as_str().context("a file without a name")?;
            let regions = &mut self.0.entry(name.into()).or_default().regions;
            for segment in file["segments"].as_array().context("no segments")? {
                let number = |index: usize| segment[index].as_u64();
                let place = number(0).zip(number(1)).context("a segment's place")?;
                let [has_count, begins, gap] = [3, 4, 5].map(|index| segment[index] == true);
                if has_count && begins && !gap {
                    let executed = number(2).is_some_and(|count| count > 0);
                    *regions.entry(place).or_default() |= executed;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_of_two_programs_executes_is_covered() {
        let mut executed = Executed::default();
        executed
            .add_lines("SF:/src/a.rs\nFN:3,f\nDA:3,1\nDA:4,0\nDA:5,0\nDA:7,0\nend_of_record\n")
            .unwrap();
        executed
            .add_lines("SF:/src/a.rs\nDA:3,0\nDA:4,0\nDA:5,0\nDA:7,2,checksum\n")
            .unwrap();
        for count in [0, 3] {
            let export = serde_json::json!({"data": [{"files": [{
                "filename": "/src/a.rs",
                "segments": [
                    [3, 1, count, true, true, false],
                    [3, 9, 0, true, true, false],
                    [4, 2, 0, true, true, false],
                    [4, 5, 7, true, false, false],
                    [5, 1, 0, true, true, true],
                    [8, 2, 0, false, false, false],
                ],
            }]}]});
            executed.add_regions(&export).unwrap();
        }
        let (path, file) = executed.files().next().unwrap();
        assert_eq!(path, Path::new("/src/a.rs"));
        assert_eq!((file.lines().covered, file.lines().count), (2, 4));
        assert_eq!((file.regions().covered, file.regions().count), (1, 3));
        assert_eq!(file.missed(), ": 3:9, 4-5");
        assert!(executed.add_lines("DA:3").is_err());
    }
}
