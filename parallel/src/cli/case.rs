//! One random case of an operation, and its reference on one device.

use rand::RngExt as _;
use rand::rngs::SmallRng;
use tilewise::{
    Activation, Bias, Device, Element, Epilogue, Gemm, Inputs, Layout, Matrix, MatrixView, Output,
};
use tilewise_parallel::{Group, Options, Plan};

/// The three operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    AllGather,
    ReduceScatter,
    AllReduce,
}

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
        }
    }

    /// Runs the case, and compares.
    pub fn run<T: Element, O: Output<T>>(
        &self,
        group: &Group,
        rng: &mut SmallRng,
    ) -> Result<Outcome, String> {
        self.try_run::<T, O>(group, rng)
            .map_err(|error| error.to_string())
    }

    fn try_run<T: Element, O: Output<T>>(
        &self,
        group: &Group,
        rng: &mut SmallRng,
    ) -> Result<Outcome, Box<dyn std::error::Error>> {
        let devices = group.devices();
        let mut options = Options::new().activation(self.activation());
        if self.bias {
            options = options.bias();
        }
        if let Some(chunks) = self.chunks {
            options = options.chunks(chunks);
        }
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
                    let plan = match self.operation {
                        Operation::AllGather => group.all_gather_matmul(&options, &a, &b, &mut c),
                        Operation::ReduceScatter => {
                            group.matmul_reduce_scatter(&options, &a, &b, &mut c)
                        }
                        Operation::AllReduce => group.matmul_all_reduce(&options, &a, &b, &mut c),
                    };
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
                let place = |what| format!("{what} of rank {rank}, run {number}");
                let found = run.c[rank].view()?.to_vec()?;
                let expected = self.reference(run, device, rank)?;
                let bits = |e: &O| e.to_f64().to_bits();
                if !found.iter().map(bits).eq(expected.iter().map(bits)) {
                    return Err(place("c differs from the reference").into());
                }
                if self.integers && !self.is_exact(run, rank, &found)? {
                    return Err(place("c differs from the exact sum").into());
                }
                if !run.c[rank].gaps_are_untouched()? {
                    return Err(place("a gap").into());
                }
            }
        }
        Ok(Outcome { runs: RUNS as u64 })
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

    /// The elements of the C of `rank`, by products of whole matrices on `device` alone.
    fn reference<T: Element, O: Output<T>>(
        &self,
        run: &Operands<T, O>,
        device: &Device,
        rank: usize,
    ) -> Result<Vec<O>, tilewise::Error> {
        let ranks = self.rows.len();
        let mut last = Epilogue::new().activation(self.activation());
        if self.bias {
            last = last.bias(Bias::PerColumn);
        }
        let bias = match self.bias {
            true => Some(device.from_slice(&run.bias[rank].to_vec()?, 1, self.cols[rank])?),
            false => None,
        };
        let gemm = |epilogue| Gemm::new(device).batch_invariant(true).epilogue(epilogue);
        if self.operation == Operation::AllGather {
            let mut rows = Vec::new();
            for a in &run.a {
                rows.extend(a.view()?.to_vec()?);
            }
            let a = device.from_slice(&rows, self.m(), self.depth[0])?;
            let b = run.b[rank].view()?.to_vec()?;
            let b = device.from_slice(&b, self.depth[rank], self.cols[rank])?;
            let mut c = device.zeros::<O>(self.m(), self.cols[rank])?;
            let mut inputs = Inputs::new();
            if let Some(bias) = &bias {
                inputs = inputs.bias(bias.view());
            }
            gemm(last).run(&a, &b, &mut c, &inputs)?;
            return c.to_vec();
        }
        // The sums of all ranks' rows, each begun behind the rank that owns them.
        let owned = |owner: usize| match self.operation {
            Operation::ReduceScatter => {
                let first = self.rows[..owner].iter().sum::<usize>();
                first..first + self.rows[owner]
            }
            _ => {
                let even = self.m().div_ceil(ranks).next_multiple_of(256);
                (owner * even).min(self.m())..((owner + 1) * even).min(self.m())
            }
        };
        let owners = match self.operation {
            Operation::ReduceScatter => rank..rank + 1,
            _ => 0..ranks,
        };
        let mut result = Vec::new();
        for owner in owners {
            let (rows, n) = (owned(owner), self.cols[rank]);
            let mut sum: Option<Matrix<O>> = None;
            for hop in 0..ranks {
                let part = (owner + 1 + hop) % ranks;
                let k = self.depth[part];
                let a = run.a[part].view()?.slice(rows.clone(), 0..k)?.to_vec()?;
                let a = device.from_slice(&a, rows.len(), k)?;
                let b = device.from_slice(&run.b[part].view()?.to_vec()?, k, n)?;
                let mut c = device.zeros::<O>(rows.len(), n)?;
                let mut epilogue = match hop + 1 == ranks {
                    true => last,
                    false => Epilogue::new(),
                };
                let mut inputs = Inputs::new();
                if let (Some(bias), true) = (&bias, hop + 1 == ranks) {
                    inputs = inputs.bias(bias.view());
                }
                if let Some(sum) = &sum {
                    epilogue = epilogue.beta(1.0);
                    inputs = inputs.source(sum.view());
                }
                gemm(epilogue).run(&a, &b, &mut c, &inputs)?;
                sum = Some(c);
            }
            if let Some(sum) = sum {
                result.extend(sum.to_vec()?);
            }
        }
        Ok(result)
    }

    /// Whether `found`, the C of `rank`, holds the exact sums.
    fn is_exact<T: Element, O: Output<T>>(
        &self,
        run: &Operands<T, O>,
        rank: usize,
        found: &[O],
    ) -> Result<bool, tilewise::Error> {
        let n = self.cols[rank];
        let rows = self.rows_of(rank);
        let mut sums = vec![0.0; rows.len() * n];
        let is_gather = self.operation == Operation::AllGather;
        let mut first = 0;
        for part in 0..self.rows.len() {
            let (a, b) = (
                &run.a[part],
                if is_gather {
                    &run.b[rank]
                } else {
                    &run.b[part]
                },
            );
            let (a_rows, k) = (a.view()?.rows(), self.depth[part]);
            let (a, b) = (a.view()?.to_vec()?, b.view()?.to_vec()?);
            let own = match is_gather {
                true => 0..a_rows,
                false => rows.clone(),
            };
            for (row, to) in own.zip(if is_gather { first.. } else { 0.. }) {
                for i in 0..k {
                    let factor = a[row * k + i].to_f64();
                    for j in 0..n {
                        sums[to * n + j] += factor * b[i * n + j].to_f64();
                    }
                }
            }
            first += a_rows;
        }
        let bias = match self.bias {
            true => run.bias[rank].to_vec()?,
            false => vec![O::from_f64(0.0); n],
        };
        let expected = sums.iter().enumerate().map(|(i, sum)| {
            let sum = sum + bias[i % n].to_f64();
            match self.activation() {
                Activation::Relu => sum.max(0.0),
                _ => sum,
            }
        });
        Ok(found.iter().map(|e| e.to_f64()).eq(expected))
    }
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

/// The operands of one run.
struct Operands<T, O> {
    a: Vec<Padded<T>>,
    b: Vec<Padded<T>>,
    c: Vec<Padded<O>>,
    bias: Vec<Matrix<O>>,
}

impl<T: Element, O: Output<T>> Operands<T, O> {
    fn random(
        case: &Case,
        devices: &[Device],
        rng: &mut SmallRng,
    ) -> Result<Self, tilewise::Error> {
        let mut value = || match case.integers {
            // Sums stay below 2⁸, which every type holds.
            true => f64::from(u8::from(rng.random_bool(0.2))) * f64::from(rng.random_range(-1..=1)),
            false => rng.random_range(-1.0..1.0),
        };
        let mut run = Operands {
            a: Vec::new(),
            b: Vec::new(),
            c: Vec::new(),
            bias: Vec::new(),
        };
        for (rank, device) in devices.iter().enumerate() {
            let a_rows = match case.operation {
                Operation::AllGather => case.rows[rank],
                _ => case.m(),
            };
            let (k, n) = (case.depth[rank], case.cols[rank]);
            let [a, b, c] = case.by_columns.map(|by_columns| (by_columns, case.padding));
            let nan = O::from_f64(f64::NAN);
            run.a.push(Padded::new(device, (a_rows, k), a, |_| {
                T::from_f64(value())
            })?);
            run.b
                .push(Padded::new(device, (k, n), b, |_| T::from_f64(value()))?);
            run.c.push(Padded::new(
                device,
                (case.rows_of(rank).len(), n),
                c,
                |_| nan,
            )?);
            let mut bias: Vec<O> = (0..n).map(|_| O::from_f64(value())).collect();
            if let (Operation::AllReduce, Some(first)) = (case.operation, run.bias.first()) {
                // One C has one bias.
                bias = first.to_vec()?;
            }
            run.bias.push(device.from_slice(&bias, 1, n)?);
        }
        Ok(run)
    }
}

/// A matrix inside a larger one, whose gaps hold a pattern.
struct Padded<E> {
    /// Lines with their gaps, in rows.
    whole: Matrix<E>,
    shape: (usize, usize),
    by_columns: bool,
}

impl<E: Element> Padded<E> {
    fn new(
        device: &Device,
        shape: (usize, usize),
        (by_columns, padding): (bool, usize),
        mut value: impl FnMut(usize) -> E,
    ) -> Result<Self, tilewise::Error> {
        let (lines, length) = match by_columns {
            true => (shape.1, shape.0),
            false => shape,
        };
        let pitch = length + padding;
        let elements: Vec<E> = (0..lines * pitch)
            .map(|index| match index % pitch.max(1) < length {
                true => value(index),
                false => E::from_f64(GAP),
            })
            .collect();
        Ok(Padded {
            whole: device.from_slice(&elements, lines, pitch)?,
            shape,
            by_columns,
        })
    }

    fn layout(&self) -> Layout {
        let pitch = self.whole.cols();
        match self.by_columns {
            true => Layout::strided(self.shape.0, self.shape.1, 1, pitch),
            false => Layout::strided(self.shape.0, self.shape.1, pitch, 1),
        }
    }

    fn view(&self) -> Result<MatrixView<'_, E>, tilewise::Error> {
        self.whole.view().with_layout(self.layout())
    }

    fn view_mut(&mut self) -> Result<tilewise::MatrixViewMut<'_, E>, tilewise::Error> {
        let layout = self.layout();
        self.whole.view_mut().with_layout(layout)
    }

    fn gaps_are_untouched(&self) -> Result<bool, tilewise::Error> {
        let length = match self.by_columns {
            true => self.shape.0,
            false => self.shape.1,
        };
        let pitch = self.whole.cols().max(1);
        let elements = self.whole.to_vec()?;
        let mut gaps = elements
            .iter()
            .enumerate()
            .filter(|(index, _)| index % pitch >= length);
        Ok(gaps.all(|(_, element)| element.to_f64() == GAP))
    }
}

/// What gaps hold.
const GAP: f64 = 77.0;
