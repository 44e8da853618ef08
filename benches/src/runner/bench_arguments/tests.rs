use super::*;
use crate::cli::{Cli, Command};
use clap::Parser as _;
use std::path::Path;

fn bench(arguments: &[&str]) -> Result<BenchArgs, String> {
    let all = ["tilewise-bench", "bench"].iter().chain(arguments);
    match Cli::try_parse_from(all)
        .map_err(|error| error.to_string())?
        .command
    {
        Command::Bench(args) => Ok(*args),
        other => unreachable!("the arguments say bench, not {other:?}"),
    }
}

#[test]
fn nothing_said_means_the_defaults() {
    let args = bench(&[]).unwrap();
    assert_eq!(args.dtypes(), [DType::F16]);
    assert_eq!(args.layouts(), [BlasLayout::NN]);
    let shapes: Vec<GemmShape> = args.problems(&[]).iter().map(|p| p.shape).collect();
    assert_eq!(shapes, GemmShape::DEFAULT);
    assert!(args.wants_triton() && args.compares_choice() && !args.only_choice());
    assert_eq!(args.regimes, [Regime::Cold, Regime::Sustained]);
    assert_eq!(args.sustain, Duration::from_secs(1));
    assert!(args.shapes.is_empty() && args.forces_nothing());
}

#[test]
fn lists_are_split_at_commas() {
    let args = bench(&[
        "--shapes=64x32x16,128",
        "--dtypes=bf16,f32",
        "--orders=row,grouped:4",
        "--schedules=grid1d,persistent",
        "--layouts=nt,tn",
        "--regimes=cold",
        "--sustain=0.25",
        "--wait-limit=2.5",
    ])
    .unwrap();
    assert_eq!(
        args.shapes,
        [GemmShape::new(64, 32, 16), GemmShape::new(128, 128, 128)]
    );
    assert_eq!(args.dtypes, [DType::Bf16, DType::F32]);
    assert_eq!(
        args.orders,
        [TileOrder::RowMajor, TileOrder::GroupedM { size: 4 }]
    );
    assert_eq!(args.schedules, [Schedule::Grid1d, Schedule::Persistent]);
    assert!(!args.forces_nothing());
    assert_eq!(args.regimes, [Regime::Cold]);
    assert_eq!(args.sustain, Duration::from_millis(250));
    assert_eq!(args.wait.wait_limit, Some(Duration::from_millis(2500)));
}

#[test]
fn a_suite_is_measured_whole_or_in_part() {
    let whole = bench(&["--suite=hopper"]).unwrap();
    assert_eq!(whole.dtypes(), [DType::F16, DType::Bf16]);
    assert_eq!(whole.layouts(), BlasLayout::ALL);
    assert_eq!(whole.problems(&[]).len(), 17 * 2 * 4);
    assert!(whole.only_choice() && !whole.compares_choice());
    assert!(!whole.wants_triton());
    let part = bench(&[
        "--suite=hopper",
        "--layouts=nn",
        "--dtypes=f16",
        "--triton",
        "--row-major",
        "--smoke",
    ])
    .unwrap();
    assert_eq!(part.dtypes(), [DType::F16]);
    assert_eq!(part.layouts(), [BlasLayout::NN]);
    assert_eq!(part.problems(&[]).len(), 2);
    assert!(part.wants_triton() && part.compares_choice());
}

#[test]
fn transformers_are_measured_as_linear_layers_are_stored() {
    let args = bench(&["--suite=transformer"]).unwrap();
    assert_eq!(args.dtypes(), [DType::Bf16]);
    assert_eq!(args.layouts(), [BlasLayout::NT]);
    assert_eq!(args.problems(&[]).len(), 96);
}

#[test]
fn random_problems_are_those_of_the_seed() {
    let args = bench(&["--suite=random:7:20"]).unwrap();
    assert_eq!(args.problems(&[]).len(), 20);
    let bf16 = bench(&["--suite=random:7:20", "--dtypes=bf16"]).unwrap();
    for (problem, any) in bf16.problems(&[]).iter().zip(args.problems(&[])) {
        assert_eq!((problem.shape, problem.layout), (any.shape, any.layout));
        assert_eq!(problem.dtype, DType::Bf16);
    }
}

#[test]
fn the_librarys_choice_is_measured_on_any_shapes() {
    let args = bench(&["--choice", "--shapes=64x32x16", "--layouts=nt"]).unwrap();
    assert!(args.only_choice() && args.forces_nothing());
    assert!(!args.compares_choice() && !args.wants_triton());
    let shapes: Vec<GemmShape> = args.problems(&[]).iter().map(|p| p.shape).collect();
    assert_eq!(shapes, [GemmShape::new(64, 32, 16)]);
    assert!(
        bench(&["--choice", "--row-major"])
            .unwrap()
            .compares_choice()
    );
    assert!(bench(&["--choice", "--triton"]).unwrap().wants_triton());
}

#[test]
fn a_suite_and_the_choice_force_nothing() {
    for forced in ["--kernels=hopper", "--orders=row", "--schedules=grid1d"] {
        for flag in ["--suite=hopper", "--choice"] {
            let message = bench(&[flag, forced]).unwrap_err();
            assert!(message.contains("cannot be used with"), "{message}");
        }
    }
    let message = bench(&["--suite=hopper", "--shapes=64"]).unwrap_err();
    assert!(message.contains("cannot be used with"), "{message}");
    for flag in ["--triton", "--row-major"] {
        let message = bench(&[flag]).unwrap_err();
        assert!(message.contains("--suite"), "{message}");
        assert!(message.contains("--choice"), "{message}");
    }
}

#[test]
fn tuning_is_asked_for() {
    assert!(bench(&[]).unwrap().tuner().is_none());
    let args = bench(&["--tune", "--tune-budget=0.5", "--tune-cache=here.json"]).unwrap();
    assert_eq!(args.tune_budget, Duration::from_millis(500));
    let tuner = args.tuner().unwrap();
    assert_eq!(tuner.cache_file(), Some(Path::new("here.json")));
    for arguments in [["--tune-cache=here.json"].as_slice(), &["--tune", "--ncu"]] {
        assert!(bench(arguments).is_err(), "{arguments:?}");
    }
}

#[test]
fn wrong_values_name_what_is_accepted() {
    for (argument, expected) in [
        ("--orders=zigzag", "grouped:SIZE"),
        ("--dtypes=f8", "bf16"),
        ("--shapes=4x4", "MxNxK"),
        ("--sustain=-1", "seconds"),
        ("--wait-limit=0", "more than 0"),
        ("--kernels=fast", "tensor_core"),
        ("--suite=volta", "transformer"),
        ("--suite=random:1", "random:SEED:COUNT"),
        ("--suite=random:one:5", "whole number from 0"),
        ("--suite=random:1:0", "from 1 to 10000"),
    ] {
        let message = bench(&[argument]).unwrap_err();
        assert!(message.contains(expected), "{message}");
        // Clap names the flag and the value.
        let (flag, value) = argument.split_once('=').unwrap();
        assert!(
            message.contains(flag) && message.contains(value),
            "{message}"
        );
    }
}

#[test]
fn batch_invariant_results_are_measured_beside_anything() {
    assert!(!bench(&[]).unwrap().batch_invariant);
    for beside in ["--suite=hopper", "--choice", "--kernels=hopper", "--tune"] {
        assert!(
            bench(&["--batch-invariant", beside])
                .unwrap()
                .batch_invariant
        );
    }
}
