//! One random case of an operation.

mod member;
mod operands;
mod random;
mod reference;

use rand::RngExt as _;
use rand::rngs::SmallRng;
use tilewise::{Activation, DType, Device, Element, Gemm, Inputs, Matrix, Output};
use tilewise_parallel::program::Operation;
use tilewise_parallel::{Engine, Group, Member, Options, Plan};

pub use member::load;
use operands::{Operands, Padded};
pub use random::{CASE_LIMIT, run_case};

/// What a case multiplies.
#[derive(Debug)]
pub struct Case {
    operation: Operation,
    /// Rows of each rank, of A or of C.
    rows: Vec<usize>,
    /// Columns of each rank: of B in an all-gather; all the same otherwise.
    cols: Vec<usize>,
    /// K of each rank; all the same in an all-gather.
    depth: Vec<usize>,
    /// Whether A, B and C are stored by columns.
    by_columns: [bool; 3],
    /// Elements between lines, beyond a line's own.
    padding: usize,
    bias: bool,
    activation: Activation,
    chunks: Option<usize>,
    /// Small integers, whose sums are exact, so that they are compared with sums on the host.
    integers: bool,
    shuffle: u64,
    delays: bool,
    engine: Engine,
}

/// Where a case runs.
pub enum Place<'p> {
    /// On all ranks, which this process has.
    Group(&'p Group),
    /// On one rank of several processes.
    Member(&'p Member),
}

impl Place<'_> {
    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        match self {
            Place::Group(group) => group.devices().len(),
            Place::Member(member) => member.ranks(),
        }
    }
}

/// What a case that passed has done.
pub struct Outcome {
    /// Number of runs.
    pub runs: u64,
}

/// How often each case runs, with other operands each time and without waiting in between.
const RUNS: usize = 3;

impl Case {
    /// A random case.
    pub fn random(rng: &mut SmallRng, ranks: usize, largest: usize, delays: bool) -> Self {
        let operation = [
            Operation::AllGather,
            Operation::ReduceScatter,
            Operation::AllReduce,
        ][rng.random_range(0..3)];
        let side = |rng: &mut SmallRng| match rng.random_range(0..4) {
            0 => rng.random_range(1..=largest),
            1 => rng.random_range(0..=largest / 8),
            _ => rng.random_range(1..=largest / 8 + 1) * 8,
        };
        let (even, one) = (rng.random_bool(0.5), side(rng));
        let rows = (0..ranks)
            .map(|_| if even { one } else { side(rng) })
            .collect();
        let (n, k) = (side(rng), side(rng));
        let is_gather = operation == Operation::AllGather;
        let cols = (0..ranks)
            .map(|_| if is_gather { side(rng) } else { n })
            .collect();
        let depth = (0..ranks)
            .map(|_| if is_gather { k } else { side(rng) })
            .collect();
        Case {
            operation,
            rows,
            cols,
            depth,
            by_columns: [(); 3].map(|()| rng.random_bool(0.4)),
            padding: [0, 0, 1, 8, 13][rng.random_range(0..5)],
            bias: rng.random_bool(0.3),
            activation: [Activation::Identity, Activation::Relu, Activation::Gelu]
                [rng.random_range(0..3)],
            chunks: [None, Some(1), Some(2), Some(3), Some(7)][rng.random_range(0..5)],
            integers: rng.random_bool(0.3),
            shuffle: rng.random(),
            delays,
            engine: Engine::Peer,
        }
    }

    /// The case as NCCL takes it: dense, in equal parts, with nothing behind a sum.
    pub fn by_nccl(mut self) -> Self {
        self.engine = Engine::Nccl;
        let rows = self.rows[0].max(1);
        self.rows.fill(rows);
        self.padding = 0;
        self.by_columns = [false; 3];
        self.chunks = None;
        if self.operation != Operation::AllGather {
            self.bias = false;
            self.activation = Activation::Identity;
        }
        for sides in [&mut self.cols, &mut self.depth] {
            sides.iter_mut().for_each(|side| *side = (*side).max(1));
        }
        self
    }

    /// Runs the case, and compares.
    pub fn run<T: Element, O: Output<T>>(
        &self,
        place: &Place,
        rng: &mut SmallRng,
    ) -> Result<Outcome, String> {
        let outcome = match place {
            Place::Group(group) => self.try_run::<T, O>(group, rng),
            Place::Member(member) => self.try_run_member::<T, O>(member, rng),
        };
        outcome.map_err(|error| error.to_string())
    }

    fn options(&self) -> Options {
        let mut options = Options::new()
            .activation(self.activation())
            .engine(self.engine);
        if self.bias {
            options = options.bias();
        }
        if let Some(chunks) = self.chunks {
            options = options.chunks(chunks);
        }
        options
    }

    fn try_run<T: Element, O: Output<T>>(
        &self,
        group: &Group,
        rng: &mut SmallRng,
    ) -> Result<Outcome, Box<dyn std::error::Error>> {
        let devices = group.devices();
        let options = self.options();
        let mut plan: Option<Plan<T, O>> = None;
        let mut operands = Vec::new();
        for _ in 0..RUNS {
            operands.push(Operands::<T, O>::random(self, devices, rng)?);
        }
        // All runs are enqueued before the first result is read.
        for run in &mut operands {
            if self.delays {
                delay(&devices[rng.random_range(0..devices.len())], rng)?;
            }
            let a: Vec<_> = run.a.iter().map(Padded::view).collect::<Result<_, _>>()?;
            let b: Vec<_> = run.b.iter().map(Padded::view).collect::<Result<_, _>>()?;
            let bias: Vec<_> = run.bias.iter().map(Matrix::view).collect();
            let c = run.c.iter_mut().map(Padded::view_mut);
            let mut c: Vec<_> = c.collect::<Result<_, _>>()?;
            let plan = match &mut plan {
                Some(plan) => plan,
                None => plan.insert({
                    let plan = group.plan(self.operation, &options, &a, &b, &mut c);
                    plan?.shuffled(self.shuffle)
                }),
            };
            match self.bias {
                true => plan.run_with_bias(&a, &b, &mut c, &bias)?,
                false => plan.run(&a, &b, &mut c)?,
            }
        }
        for (number, run) in operands.iter().enumerate() {
            for (rank, device) in devices.iter().enumerate() {
                self.compare(run, number, rank, device)?;
            }
        }
        Ok(Outcome { runs: RUNS as u64 })
    }

    /// Compares the C of `rank` with products of whole matrices on `device`.
    fn compare<T: Element, O: Output<T>>(
        &self,
        run: &Operands<T, O>,
        number: usize,
        rank: usize,
        device: &Device,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let place = |what| format!("{what} of rank {rank}, run {number}");
        let found = run.c[rank].view()?.to_vec()?;
        let expected = self.reference(run, device, rank)?;
        let is_same = match self.has_bits() {
            true => {
                let bits = |e: &O| e.to_f64().to_bits();
                found.iter().map(bits).eq(expected.iter().map(bits))
            }
            false => are_close(&found, &expected, self.rows.len()),
        };
        if !is_same {
            return Err(place("c differs from the reference").into());
        }
        if self.integers && !self.is_exact(run, rank, &found)? {
            return Err(place("c differs from the exact sum").into());
        }
        if !run.c[rank].gaps_are_untouched()? {
            return Err(place("a gap").into());
        }
        Ok(())
    }

    /// Whether C has the bits of the reference. NCCL adds in its own order.
    fn has_bits(&self) -> bool {
        self.engine == Engine::Peer || self.operation == Operation::AllGather
    }

    /// Exact sums have no activation that rounds.
    fn activation(&self) -> Activation {
        match (self.integers, self.activation) {
            (true, Activation::Gelu) => Activation::Relu,
            (_, activation) => activation,
        }
    }

    /// The rows of C that `rank` gets.
    fn rows_of(&self, rank: usize) -> std::ops::Range<usize> {
        match self.operation {
            Operation::ReduceScatter => {
                let first = self.rows[..rank].iter().sum();
                first..first + self.rows[rank]
            }
            Operation::AllGather | Operation::AllReduce => 0..self.m(),
        }
    }

    fn m(&self) -> usize {
        self.rows.iter().sum()
    }
}

/// Whether two sums over `ranks`, each rounded to `O` once for each rank, may be of the same
/// products.
fn are_close<O: Element>(found: &[O], expected: &[O], ranks: usize) -> bool {
    let unit = match O::DTYPE {
        DType::F16 => 1.0 / 2048.0,
        DType::Bf16 => 1.0 / 256.0,
        _ => 1.0 / 65536.0,
    };
    let largest = expected
        .iter()
        .map(|e| e.to_f64().abs())
        .fold(1.0, f64::max);
    let bound = 4.0 * ranks as f64 * unit * largest;
    found.len() == expected.len()
        && (found.iter().zip(expected)).all(|(f, e)| (f.to_f64() - e.to_f64()).abs() <= bound)
}

/// Keeps `device` busy for a moment.
fn delay(device: &Device, rng: &mut SmallRng) -> Result<(), tilewise::Error> {
    let n = [64, 512, 2048][rng.random_range(0..3)];
    let a = device.zeros::<f32>(n, n)?;
    let mut c = device.zeros::<f32>(n, n)?;
    for _ in 0..rng.random_range(0..4) {
        Gemm::new(device).run(&a, &a, &mut c, &Inputs::new())?;
    }
    Ok(())
}
