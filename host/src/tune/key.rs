//! The keys of the cache. A measurement is valid for a machine with a build of the
//! kernels, and for a problem with its forced choices.

use std::fs;

use gpu_kernels::OutputType;

use crate::embedded;
use crate::gpu::opened::GpuInfo;
use crate::select::{Packing, Problem, Request, Strides};

/// A GPU, and the versions whose change makes old measurements stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Name and number of SMs of the GPU: GPUs of the same name may differ in their SMs.
    pub(crate) gpu: String,
    /// The driver, which compiles the kernels.
    pub(crate) driver: String,
    /// The digest of the kernels' PTX.
    pub(crate) kernels: String,
}

impl Machine {
    /// `gpu` with this library's kernels and the driver that runs.
    pub(crate) fn of(gpu: &GpuInfo) -> Machine {
        let (major, minor) = gpu.driver_version;
        let mut driver = format!("CUDA {major}.{minor}");
        // The Linux kernel module reports the full version.
        if let Ok(version) = fs::read_to_string("/sys/module/nvidia/version") {
            driver += &format!(", {}", version.trim());
        }
        Machine {
            gpu: format!("{}, {} SMs", gpu.name, gpu.sms),
            driver,
            kernels: format!("{:016x}", embedded::DIGEST),
        }
    }
}

/// `problem` and the forced choices in words: types, M×N×K, and the strides and
/// alignments of A, B and C.
pub(crate) fn of_problem(problem: &Problem, request: &Request) -> String {
    let Problem {
        m,
        n,
        k,
        batches,
        input,
        output,
        a,
        b,
        c,
        epilogue,
    } = problem;
    let output = match output {
        OutputType::Input => "",
        OutputType::F16 => "-f16",
        OutputType::Bf16 => "-bf16",
        OutputType::F32 => " into f32",
    };
    let [a, b, c] = [a, b, c].map(strides);
    let input = input.name();
    let batches = match batches {
        1 => String::new(),
        _ => format!("{batches} x "),
    };
    let epilogue = if epilogue.is_plain() {
        String::new()
    } else {
        format!(" then {epilogue}")
    };
    format!(
        "{input}{output} {batches}{m}x{n}x{k} a {a} b {b} c {c}{epilogue}{}",
        forced(request)
    )
}

/// Strides, outermost first, and alignment, such as `4096:1@128`. The alignment matters because TMA
/// requires 16 bytes, and lines that straddle two cache lines cost more.
fn strides(operand: &Strides) -> String {
    let Strides {
        row_stride,
        col_stride,
        batch_stride,
        alignment,
    } = operand;
    let batch_stride = match batch_stride {
        0 => String::new(),
        _ => format!("{batch_stride}:"),
    };
    format!("{batch_stride}{row_stride}:{col_stride}@{alignment}")
}

/// ` with …`, or nothing.
fn forced(request: &Request) -> String {
    let Request {
        kernel,
        family,
        block,
        order,
        schedule,
        packing,
        line_classes,
        batch_invariant,
    } = request;
    let mut forced = Vec::new();
    forced.extend(kernel.clone());
    forced.extend(family.map(|family| family.name().to_owned()));
    forced.extend(block.map(|block| format!("{block:?}")));
    forced.extend(order.map(|order| order.to_string()));
    forced.extend(schedule.map(|schedule| format!("{schedule:?}")));
    match packing {
        Packing::Auto => {}
        Packing::Never => forced.push("no packing".into()),
    }
    forced.extend(line_classes.map(|classes| format!("{classes} line classes")));
    forced.extend(batch_invariant.then(|| "batch-invariant".to_owned()));
    if forced.is_empty() {
        String::new()
    } else {
        format!(" with {}", forced.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epilogue::Epilogue;
    use crate::epilogue_form::{EpilogueForm, Gated};
    use gpu_kernels::{DType, Family, Schedule};

    fn problem() -> Problem {
        let operand = |alignment, row_stride, col_stride| Strides {
            row_stride,
            col_stride,
            batch_stride: 0,
            alignment,
        };
        Problem {
            m: 300,
            n: 104,
            k: 200,
            batches: 1,
            input: DType::F16,
            output: OutputType::Input,
            a: operand(128, 200, 1),
            b: operand(16, 1, 208),
            c: operand(2, 104, 1),
            epilogue: EpilogueForm::PLAIN,
        }
    }

    #[test]
    fn a_problem_is_its_types_shape_layouts_and_alignment() {
        let key = of_problem(&problem(), &Request::default());
        assert_eq!(key, "f16 300x104x200 a 200:1@128 b 1:208@16 c 104:1@2");
    }

    #[test]
    fn whatever_selection_sees_is_in_the_key() {
        let open = Request::default();
        let base = problem();
        let mut keys = vec![of_problem(&base, &open)];
        let changes: [fn(&mut Problem); 13] = [
            |p| p.m += 1,
            |p| p.n += 1,
            |p| p.k += 1,
            |p| p.input = DType::Bf16,
            |p| p.output = OutputType::F32,
            |p| p.a.row_stride += 8,
            |p| p.b.col_stride += 8,
            |p| p.c.col_stride += 1,
            |p| p.a.alignment = 8,
            |p| p.batches = 2,
            |p| p.a.batch_stride = 1,
            |p| p.epilogue = Epilogue::new().alpha(2.0).form(),
            |p| p.epilogue = Epilogue::new().gated(Gated::Halves).form(),
        ];
        for change in changes {
            let mut changed = base;
            change(&mut changed);
            keys.push(of_problem(&changed, &open));
        }
        let requests: [fn(&mut Request); 6] = [
            |r| r.kernel = Some("naive_f16".into()),
            |r| r.family = Some(Family::Naive),
            |r| r.order = Some(gpu_kernels::TileOrder::RowMajor),
            |r| r.schedule = Some(Schedule::Grid1d),
            |r| r.packing = Packing::Never,
            |r| r.batch_invariant = true,
        ];
        for force in requests {
            let mut request = Request::default();
            force(&mut request);
            keys.push(of_problem(&base, &request));
        }
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all);
    }
}
