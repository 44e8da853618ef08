//! Tests of the tuner without a GPU: the winners it recalls, and the choices it leaves out.

use gpu_kernels::entry::KERNELS;
use gpu_kernels::{DType, Family, KernelInfo, OutputType};

use super::*;
use crate::select::{Catalog, EpilogueForm, Strides, Target};

const H200: Target = Target {
    compute_capability: (9, 0),
    sms: 132,
    shared_bytes_per_cta: 232_448,
    l2_bytes: 60 << 20,
};

const TIMES: finals::Times = finals::Times {
    cold: 1.0,
    sustained: Some(0.9),
};

fn problem(m: u32, n: u32, k: u32) -> Problem {
    let rows = |pitch: u32| Strides::new(pitch.into(), 1);
    Problem {
        m,
        n,
        k,
        batches: 1,
        input: DType::F16,
        output: OutputType::Input,
        a: rows(k),
        b: rows(n),
        c: rows(n),
        epilogue: EpilogueForm::PLAIN,
    }
}

fn choices(problem: &Problem, kernels: &[KernelInfo]) -> Vec<Choice> {
    let catalog = Catalog {
        kernels,
        is_built: |_| true,
    };
    let request = Request::default();
    let choices = select::choices(catalog, problem, &H200, &request);
    choices.unwrap().collect()
}

#[test]
fn what_was_remembered_is_planned() {
    let all = choices(&problem(4096, 4096, 4096), KERNELS);
    for choice in [all[0], all[3]] {
        let winner = Winner::new(&choice, TIMES);
        assert_eq!(recall(&winner, &all, Ok), Ok(choice));
    }
}

#[test]
fn a_kernel_that_is_gone_or_cannot_run_is_never_planned() {
    let aligned = problem(4096, 4096, 4096);
    let hopper = Winner::new(&choices(&aligned, KERNELS)[0], TIMES);
    let must_not_plan = |_| -> Result<(), Error> { panic!("planned what cannot run") };
    // Another build has no such kernel.
    let others: Vec<KernelInfo> = KERNELS
        .iter()
        .copied()
        .filter(|kernel| kernel.family != Family::Hopper)
        .collect();
    let reason = recall(&hopper, &choices(&aligned, &others), must_not_plan).unwrap_err();
    assert!(
        reason.contains("hopper_f16") && reason.ends_with("cannot run"),
        "{reason}"
    );
    // The file was edited: a kernel of another type.
    let mut edited = serde_json::to_value(&hopper).unwrap();
    edited["kernel"] = "hopper_bf16_ak_bn_128x256x64".into();
    let edited: Winner = serde_json::from_value(edited).unwrap();
    assert!(recall(&edited, &choices(&aligned, KERNELS), must_not_plan).is_err());
}

#[test]
fn what_cannot_be_planned_is_measured_again() {
    let all = choices(&problem(512, 512, 512), KERNELS);
    let winner = Winner::new(&all[0], TIMES);
    let broken = |choice: Choice| -> Result<(), Error> {
        Err(Error::Compile {
            kernel: choice.kernel.name,
            code: 218,
            log: "no such instruction".into(),
        })
    };
    let reason = recall(&winner, &all, broken).unwrap_err();
    assert!(reason.contains("no such instruction"), "{reason}");
}

#[test]
fn hopeless_choices_are_not_measured() {
    let large = problem(8192, 8192, 8192);
    let all = choices(&large, KERNELS);
    let families = |choices: &[Choice]| {
        let mut families: Vec<_> = choices.iter().map(|c| c.kernel.family).collect();
        families.dedup();
        families
    };
    use Family::{Hopper, Naive, TensorCore, Tiled};
    assert_eq!(families(&all), [Hopper, TensorCore, Tiled, Naive]);
    let mut left = all.clone();
    leave_out_hopeless(&mut left, |choice| {
        cost::of_choice(choice, &large, &H200).cycles
    });
    assert_eq!(families(&left), [Hopper, TensorCore]);
    assert_eq!(left[0], all[0]);
    // The first stays, whatever the estimate says of it.
    let mut left = all.clone();
    leave_out_hopeless(&mut left, |choice| u64::from(*choice == all[0]) * 1000 + 1);
    assert_eq!(left, all);
}

#[test]
fn a_group_is_one_kernel_one_way_round() {
    let all = choices(&problem(16, 4096, 4096), KERNELS);
    let groups = measure::groups(&all);
    assert_eq!(groups.len(), all.len());
    assert!(all.iter().any(|choice| choice.transposed));
    for (i, a) in all.iter().enumerate() {
        for (j, b) in all.iter().enumerate() {
            let same = a.kernel == b.kernel && a.transposed == b.transposed;
            assert_eq!(groups[i] == groups[j], same);
        }
    }
}

#[test]
fn a_launch_may_take_far_longer_than_estimated_but_not_for_ever() {
    assert_eq!(longest_wait(Duration::ZERO), LEAST_WAIT);
    let estimate = Duration::from_millis(700);
    assert_eq!(longest_wait(estimate), LEAST_WAIT + Duration::from_secs(70));
    assert_eq!(longest_wait(Duration::MAX), Duration::MAX);
}
