//! TMA: boxes at elements where no box may start.
//!
//! A GPU answers such a launch with an illegal instruction, which ends the context and
//! so all later launches. Therefore each launch runs in its own process: this program,
//! started again with `--refused INDEX`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tilewise::probe::Launch;
use tilewise::{DType, Device, Error};
use tilewise_emulator::semantics::swizzle::Swizzle;

use crate::boxes;
use crate::tally::Tally;
use crate::worlds::{LIMIT, Worlds, emulate, within_limit};

/// `CUDA_ERROR_ILLEGAL_INSTRUCTION`: how a GPU refuses.
const ILLEGAL_INSTRUCTION: u32 = 715;

/// The exit status of a process whose launch the GPU refused.
const REFUSED: i32 = 3;

/// The exit status of a process whose launch succeeded. It is not 0, because a process that
/// finds no GPU exits with 0.
const ACCEPTED: i32 = 4;

/// A box that must be refused.
struct Refused {
    loads: bool,
    dtype: DType,
    /// First element of the box.
    at: (i32, i32),
    what: &'static str,
}

const ALL: [Refused; 6] = [
    Refused::new(true, DType::F16, (7, 3), "f16, off 16 bytes: refused"),
    Refused::new(true, DType::F32, (2, 3), "f32, off 16 bytes: refused"),
    Refused::new(false, DType::F16, (7, 3), "f16, off 16 bytes: refused"),
    Refused::new(false, DType::F32, (2, 3), "f32, off 16 bytes: refused"),
    Refused::new(false, DType::F16, (-8, 3), "at a negative column: refused"),
    Refused::new(false, DType::F16, (8, -1), "at a negative line: refused"),
];

impl Refused {
    const fn new(loads: bool, dtype: DType, at: (i32, i32), what: &'static str) -> Self {
        Refused {
            loads,
            dtype,
            at,
            what,
        }
    }

    /// The same in every process.
    fn launch(&self) -> Launch {
        let mut random = StdRng::seed_from_u64(0);
        let swizzle = Swizzle::None;
        boxes::launch_at(self.loads, self.dtype, swizzle, self.at, 0, &mut random)
    }
}

/// Launches each box on the GPU and in the emulator; returns a row for each box.
pub fn compare(worlds: &Worlds) -> Vec<Tally> {
    let rows = ALL.iter().enumerate().map(|(index, refused)| {
        let subject = boxes::subject(refused.loads, Swizzle::None);
        let mut tally = Tally::new(subject, refused.what);
        let launch = refused.launch();
        let name = boxes::name(&tally, refused.dtype, &launch);
        eprintln!("{name}");
        let emulator = within_limit(&format!("emulator, {name}"), move || {
            emulate(&launch).is_err()
        });
        let gpu = match worlds.device.gpu_info() {
            Some(gpu) => by_gpu(index, gpu.ordinal),
            None => emulator.clone(),
        };
        match (gpu, emulator) {
            (Ok(true), Ok(true)) => (tally.values, tally.identical) = (1, 1),
            (Ok(gpu), Ok(emulator)) => {
                tally.values = 1;
                tally.fail(format!(
                    "refused by the GPU: {gpu}, the emulator: {emulator}"
                ));
            }
            (Err(reason), _) | (_, Err(reason)) => tally.fail(reason),
        }
        tally
    });
    rows.collect()
}

/// Whether the GPU refuses a launch, which runs in its own process.
fn by_gpu(index: usize, ordinal: usize) -> Result<bool, String> {
    let not_run = |error: io::Error| format!("its process: {error}");
    let program = env::current_exe().map_err(not_run)?;
    let mut process = Command::new(program)
        .args(["--refused", &index.to_string()])
        .args(["--device", &ordinal.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .map_err(not_run)?;
    let start = Instant::now();
    let status = loop {
        match process.try_wait().map_err(not_run)? {
            Some(status) => break status,
            None if start.elapsed() < LIMIT => thread::sleep(Duration::from_millis(20)),
            None => {
                process.kill().map_err(not_run)?;
                return Err(format!("its process: not finished in {LIMIT:?}"));
            }
        }
    };
    match status.code() {
        Some(ACCEPTED) => Ok(false),
        Some(REFUSED) => Ok(true),
        _ => Err(format!("its process: {status}")),
    }
}

/// The main function of such a process: runs the one launch. Returns the exit status.
pub fn run_alone(index: usize, device: &Device) -> i32 {
    let Some(refused) = ALL.get(index) else {
        eprintln!("--refused {index}, accepted: below {}", ALL.len());
        return 1;
    };
    match refused.launch().run(device) {
        Ok(_) => ACCEPTED,
        Err(Error::Driver { code, .. }) if code == ILLEGAL_INSTRUCTION => REFUSED,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulator_refuses_each_by_its_first_element() {
        for refused in &ALL {
            let reason = emulate(&refused.launch()).expect_err(refused.what);
            let at = format!("at {:?}, accepted:", refused.at);
            assert!(reason.contains(&at), "{reason}");
        }
    }
}
