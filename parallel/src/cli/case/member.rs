//! A case on one rank of a group of processes.

use std::error::Error;
use std::thread;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise::{Device, Element, Matrix, Output};
use tilewise_parallel::{Engine, Member, MemberPlan, Options};

use super::operands::Operands;
use super::{Case, Outcome, RUNS, delay};

impl Case {
    /// Runs the rank's part of the case, and compares it. All ranks have the same `rng`, and so the
    /// operands of all ranks.
    pub(super) fn try_run_member<T: Element, O: Output<T>>(
        &self,
        member: &Member,
        rng: &mut SmallRng,
    ) -> Result<Outcome, Box<dyn Error>> {
        let (rank, ranks, device) = (member.rank(), member.ranks(), member.device());
        let devices = vec![device.clone(); ranks];
        let mut operands = Vec::new();
        for _ in 0..RUNS {
            operands.push(Operands::<T, O>::random(self, &devices, rng)?);
        }
        // One plan, or two whose runs take turns.
        let planned = rng.random_range(1..=2);
        let mut plans: Vec<MemberPlan<T, O>> = Vec::new();
        let mut own = SmallRng::seed_from_u64(rng.random::<u64>().wrapping_add(rank as u64));
        // Each set of operands is used twice, and all runs are enqueued before a result is read.
        for turn in 0..2 * RUNS {
            let run = &mut operands[turn % RUNS];
            if self.delays && own.random_bool(1.0 / ranks as f64) {
                pause(device, &mut own)?;
            }
            let (a, b) = (run.a[rank].view()?, run.b[rank].view()?);
            let mut c = run.c[rank].view_mut()?;
            if plans.len() < planned {
                let plan = member.plan(self.operation, &self.options(), a, b, c.reborrow());
                plans.push(plan?);
            }
            let plan = &mut plans[turn % planned];
            match self.bias {
                true => plan.run_with_bias(a, b, c, &run.bias[rank])?,
                false => plan.run(a, b, c)?,
            }
        }
        for plan in &plans {
            plan.finish()?;
        }
        for (number, run) in operands.iter().enumerate() {
            self.compare(run, number, rank, device)?;
        }
        Ok(Outcome {
            runs: 2 * RUNS as u64,
        })
    }
}

/// Holds up the rank for a moment: its stream, or where it has none, its thread.
fn pause(device: &Device, rng: &mut SmallRng) -> Result<(), tilewise::Error> {
    match device.stream().is_some() {
        true => delay(device, rng),
        false => {
            thread::sleep(Duration::from_micros(rng.random_range(0..3000)));
            Ok(())
        }
    }
}

/// Plans that run again and again, until they fail.
pub fn load(member: &Member, side: usize, by_nccl: bool) -> Result<(), tilewise_parallel::Error> {
    let device = member.device();
    let zeros = |rows, cols| device.zeros::<f32>(rows, cols);
    let (a, b): (Matrix<f32>, _) = (zeros(side, side)?, zeros(side, side)?);
    let mut c = zeros(side * member.ranks(), side)?;
    let mut sum = zeros(side, side)?;
    let options = Options::new().engine(match by_nccl {
        true => Engine::Nccl,
        false => Engine::Peer,
    });
    let mut gather = member.all_gather_matmul(&options, &a, &b, &mut c)?;
    let mut reduce = member.matmul_all_reduce(&options, &a, &b, &mut sum)?;
    loop {
        for _ in 0..4 {
            gather.run(&a, &b, &mut c)?;
            reduce.run(&a, &b, &mut sum)?;
        }
        gather.finish()?;
        reduce.finish()?;
    }
}
