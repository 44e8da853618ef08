//! The order in which one thread runs the steps of a program, where devices finish each call
//! before it returns.

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::program::Program;

/// The order of the program, or with a seed a random one that its queues and waits permit.
pub(crate) fn order(program: &Program, seed: Option<u64>) -> Vec<usize> {
    let steps = program.steps.len();
    let Some(seed) = seed else {
        return (0..steps).collect();
    };
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut done = vec![false; steps];
    let mut order = Vec::with_capacity(steps);
    while order.len() < steps {
        let may_run = |&index: &usize| {
            let step = &program.steps[index];
            let is_first = (program.steps[..index].iter().zip(&done))
                .all(|(other, done)| *done || (other.rank, other.queue) != (step.rank, step.queue));
            !done[index] && is_first && step.after.iter().all(|&before| done[before])
        };
        let ready: Vec<_> = (0..steps).filter(may_run).collect();
        // There is always one, because steps wait only for earlier ones.
        let next = ready[rng.random_range(0..ready.len())];
        done[next] = true;
        order.push(next);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Shards, all_gather_matmul};

    #[test]
    fn orders_are_permutations_that_keep_the_waits() {
        let shards = Shards::new([512; 4]).expect("small");
        let program = all_gather_matmul(&shards, 2);
        let mut orders = Vec::new();
        for seed in 0..20 {
            let order = order(&program, Some(seed));
            let place = |step| order.iter().position(|&other| other == step);
            for (index, step) in program.steps.iter().enumerate() {
                assert!(
                    step.after
                        .iter()
                        .all(|&before| place(before) < place(index))
                );
            }
            orders.push(order);
        }
        orders.sort();
        orders.dedup();
        assert!(orders.len() > 15);
    }
}
