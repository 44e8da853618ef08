//! Tuning on a GPU: the winner is right, is remembered, and can be captured.
//!
//! Elements are small integers, so that sums are exact in f32 and every kernel
//! must give the same bits as the naive one.

use std::path::Path;
use std::time::{Duration, Instant};

use tilewise::{
    Device, Error, Family, Gemm, GpuPlanInfo, Matrix, MatrixView, Origin, Plan, Tuner, f16,
};

use crate::case::Failure;
use crate::errors::ErrorCase;
use crate::graph::Graph;
use crate::test::is_emulated;

/// All tests of tuning. They are not in the set for compute-sanitizer, because it slows
/// some kernels more than others.
pub const CASES: [ErrorCase; 6] = [
    ("tune/measured-then-remembered", remembered, false),
    ("tune/layouts", layouts, false),
    ("tune/narrow", narrow, false),
    ("tune/no-budget", no_budget, false),
    ("tune/within-budget", within_budget, false),
    ("tune/capture", capture, false),
];

/// One product, with its operands stored row-major or transposed.
struct Product {
    a: Matrix<f16>,
    b: Matrix<f16>,
    c: Matrix<f32>,
    /// Whether A, B and C are seen transposed.
    transposed: [bool; 3],
}

impl Product {
    fn new(
        device: &Device,
        (m, n, k): (usize, usize, usize),
        transposed: [bool; 3],
    ) -> Result<Product, Error> {
        let stored = |transposed, rows, cols| {
            if transposed {
                (cols, rows)
            } else {
                (rows, cols)
            }
        };
        let integers = |(rows, cols), step: usize| {
            let value = |index: usize| f16::from_f32((index * step % 7) as f32 - 3.0);
            let elements: Vec<f16> = (0..rows * cols).map(value).collect();
            device.from_slice(&elements, rows, cols)
        };
        let (rows, cols) = stored(transposed[2], m, n);
        Ok(Product {
            a: integers(stored(transposed[0], m, k), 5)?,
            b: integers(stored(transposed[1], k, n), 11)?,
            c: device.zeros(rows, cols)?,
            transposed,
        })
    }

    /// Plans by `plan`, runs, and compares with the naive kernel.
    fn check(
        &mut self,
        plan: impl FnOnce(&mut Self) -> Result<Plan<f16, f32>, Error>,
    ) -> Result<GpuPlanInfo, String> {
        let device = self.c.device().clone();
        self.check_on(&device, plan).map_err(|e| e.to_string())?
    }

    fn check_on(
        &mut self,
        device: &Device,
        plan: impl FnOnce(&mut Self) -> Result<Plan<f16, f32>, Error>,
    ) -> Result<Result<GpuPlanInfo, String>, Error> {
        let naive = Gemm::new(device).family(Family::Naive);
        let mut naive = self.with_views(|a, b, c| naive.plan(a, b, c))?;
        self.with_views(|a, b, c| naive.run(a, b, c))?;
        let expected = self.c.to_vec()?;

        let mut plan = plan(self)?;
        let info = *plan.info().gpu().expect("it is planned for a GPU");
        // After measuring, C holds the product, whichever contender ran last.
        if info.origin == Origin::Measured && self.c.to_vec()? != expected {
            return Ok(Err(format!("wrong after measuring: {info:?}")));
        }
        self.c.view_mut().fill(f32::NAN)?;
        self.with_views(|a, b, c| plan.run(a, b, c))?;
        if self.c.to_vec()? != expected {
            return Ok(Err(format!("wrong: {info:?}")));
        }
        Ok(Ok(info))
    }

    fn with_views<R>(
        &mut self,
        call: impl FnOnce(MatrixView<f16>, MatrixView<f16>, tilewise::MatrixViewMut<f32>) -> R,
    ) -> R {
        let [a_turned, b_turned, c_turned] = self.transposed;
        fn view(matrix: &Matrix<f16>, turned: bool) -> MatrixView<'_, f16> {
            let view = matrix.view();
            if turned { view.t() } else { view }
        }
        let c = self.c.view_mut();
        let c = if c_turned { c.t() } else { c };
        call(view(&self.a, a_turned), view(&self.b, b_turned), c)
    }

    fn tune(&mut self, tuner: &mut Tuner) -> Result<Plan<f16, f32>, Error> {
        let gemm = Gemm::new(self.c.device());
        self.with_views(|a, b, c| gemm.tune(a, b, c, tuner))
    }
}

fn message(error: Error) -> String {
    error.to_string()
}

fn expect(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn tuner(file: &Path) -> Tuner {
    Tuner::with_cache_file(file).budget(Duration::from_millis(300))
}

/// `on_gpu`, or the smaller `emulated` on an emulated GPU, where a launch takes a thousand
/// times as long.
fn shapes<const N: usize>(device: &Device, on_gpu: [Shape; N], emulated: [Shape; N]) -> [Shape; N] {
    if is_emulated(device) {
        emulated
    } else {
        on_gpu
    }
}

/// M, N and K.
type Shape = (usize, usize, usize);

fn remembered(device: &Device) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("tune.json");
    let [shape] = shapes(device, [(1024, 768, 512)], [(96, 72, 64)]);
    let mut product = Product::new(device, shape, [false; 3]).map_err(message)?;
    let first = product.check(|product| product.tune(&mut tuner(&file)))?;
    expect(first.origin == Origin::Measured, || format!("{first:?}"))?;
    // The next process would use the cache file in the same way.
    let next = product.check(|product| product.tune(&mut tuner(&file)))?;
    let mut expected = first;
    expected.origin = Origin::Remembered;
    expect(next == expected, || format!("{first:?}, then {next:?}"))
}

/// All eight combinations, in lines that TMA can read and in lines that it cannot read.
fn layouts(device: &Device) -> Result<(), String> {
    let on_gpu = [(512, 384, 320), (511, 385, 321)];
    for shape in shapes(device, on_gpu, [(64, 48, 40), (63, 49, 41)]) {
        for bits in 0..8 {
            let transposed = [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
            let mut product = Product::new(device, shape, transposed).map_err(message)?;
            let mut tuner = Tuner::in_memory().budget(Duration::from_millis(50));
            let info = product.check(|product| product.tune(&mut tuner))?;
            expect(info.origin == Origin::Measured, || format!("{info:?}"))?;
        }
    }
    Ok(())
}

/// The product and its transpose are both measured.
fn narrow(device: &Device) -> Result<(), String> {
    let on_gpu = [
        (16, 1024, 2048),
        (1024, 16, 2048),
        (1, 512, 512),
        (1, 1, 64),
    ];
    let emulated = [(16, 128, 256), (128, 16, 256), (1, 64, 64), (1, 1, 64)];
    for shape in shapes(device, on_gpu, emulated) {
        let mut product = Product::new(device, shape, [false; 3]).map_err(message)?;
        let mut tuner = Tuner::in_memory().budget(Duration::from_millis(100));
        product.check(|product| product.tune(&mut tuner))?;
    }
    Ok(())
}

/// The rule's choice is timed first, and then there is no time for others.
fn no_budget(device: &Device) -> Result<(), String> {
    let [shape] = shapes(device, [(1024, 1024, 256)], [(128, 128, 64)]);
    let mut product = Product::new(device, shape, [false; 3]).map_err(message)?;
    let mut tuner = Tuner::in_memory().budget(Duration::ZERO);
    let tuned = product.check(|product| product.tune(&mut tuner))?;
    let chosen = product.check(|product| {
        let gemm = Gemm::new(product.c.device());
        product.with_views(|a, b, c| gemm.plan(a, b, c))
    })?;
    let mut expected = chosen;
    expected.origin = Origin::Measured;
    expect(tuned == expected, || format!("{tuned:?}, not {chosen:?}"))
}

/// Kernels are loaded by the first tuner; the second only measures.
fn within_budget(device: &Device) -> Result<(), String> {
    let mut product = Product::new(device, (2048, 2048, 2048), [false; 3]).map_err(message)?;
    let budget = Duration::from_millis(500);
    let mut seconds = 0.0;
    for _ in 0..2 {
        let begin = Instant::now();
        let mut tuner = Tuner::in_memory().budget(budget);
        product.tune(&mut tuner).map_err(message)?;
        seconds = begin.elapsed().as_secs_f64();
    }
    // Plans and workspaces, and the sample under way, come on top.
    expect(seconds < 3.0 * budget.as_secs_f64(), || {
        format!("{seconds:.2} s for a budget of {budget:?}")
    })
}

/// Tuning fails while the stream captures, but a plan that was tuned before runs there.
fn capture(device: &Device) -> Result<(), String> {
    let mut product = Product::new(device, (512, 512, 256), [false; 3]).map_err(message)?;
    let mut tuner = Tuner::in_memory().budget(Duration::from_millis(50));
    let mut plan = product.tune(&mut tuner).map_err(message)?;
    let expected = product.c.to_vec().map_err(message)?;
    product.c.view_mut().fill(f32::NAN).map_err(message)?;

    let mut refusal = None;
    let graph = Graph::captured(device, || {
        refusal = product.tune(&mut tuner).err();
        Ok(product.with_views(|a, b, c| plan.run(a, b, c))?)
    });
    expect(refusal == Some(Error::TuningWhileCapturing), || {
        format!("tuning in a capture: {refusal:?}")
    })?;
    let graph = graph.map_err(|failure| match failure {
        Failure::Wrong(why) => why,
        Failure::Error(error) => error.to_string(),
        Failure::NotRun => "the device had failed".into(),
    })?;
    // SAFETY: the operands, and the plan with its workspaces, are still alive.
    unsafe { graph.launch() }.map_err(message)?;
    let found = product.c.to_vec().map_err(message)?;
    expect(found == expected, || {
        "the graph computes another product".into()
    })
}
