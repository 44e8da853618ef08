//! The command line.

/// What `--help` prints.
pub const USAGE: &str = "\
emulator-proof: the emulator against a GPU, on the same random bits

  emulator-proof [OPTIONS] [HEADING...]

A HEADING (any part of it, in any case) selects a section of the report.

  --seed N         what the random operands are drawn from (default 1)
  --problems N     random products with the kernels (default 240)
  --device N       which GPU (default 0)
  --details        a row for each kind of operands, not for each instruction
  --emulator-only  without a GPU: runs the emulator, compares it with itself";

/// The command line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    pub seed: u64,
    pub problems: usize,
    pub device: usize,
    pub details: bool,
    pub emulator_only: bool,
    headings: Vec<String>,
}

impl Args {
    /// Reads the words after the program's name.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
        let mut args = Args {
            seed: 1,
            problems: 240,
            device: 0,
            details: false,
            emulator_only: false,
            headings: Vec::new(),
        };
        while let Some(word) = words.next() {
            let mut number = || {
                let value = words.next();
                let read = value.as_deref().map(str::parse::<u64>);
                match read {
                    Some(Ok(number)) => Ok(number),
                    _ => Err(format!(
                        "{word} {}: accepted is a whole number",
                        value.unwrap_or_default()
                    )),
                }
            };
            match word.as_str() {
                "--seed" => args.seed = number()?,
                "--problems" => args.problems = number()? as usize,
                "--device" => args.device = number()? as usize,
                "--details" => args.details = true,
                "--emulator-only" => args.emulator_only = true,
                option if option.starts_with('-') => {
                    return Err(format!("unknown option {option}"));
                }
                heading => args.headings.push(heading.to_lowercase()),
            }
        }
        Ok(args)
    }

    /// Whether the section with this heading is wanted.
    pub fn selects(&self, heading: &str) -> bool {
        let heading = heading.to_lowercase();
        self.headings.is_empty() || self.headings.iter().any(|part| heading.contains(part))
    }
}
