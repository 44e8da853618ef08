//! Bad input: errors that name the argument, the rank, the value and what would be accepted.

use tilewise::{Activation, Device, Layout, Matrix};
use tilewise_parallel::{Engine, Error, Group, Options, Plan};

/// Matrices of the given shapes, one a rank.
fn matrices(device: &Device, shapes: &[(usize, usize)]) -> Vec<Matrix<f32>> {
    let zeros = |&(rows, cols): &(usize, usize)| device.zeros(rows, cols).expect("memory");
    shapes.iter().map(zeros).collect()
}

/// What [`Group`] says to an operation with operands of these shapes.
fn planned(
    operation: &str,
    [a, b, c]: [&[(usize, usize)]; 3],
    options: Options,
) -> Result<Plan<f32, f32>, Error> {
    let device = Device::cpu();
    let group = Group::new(&[device.clone(), device.clone()])?;
    let (a, b) = (matrices(&device, a), matrices(&device, b));
    let mut c = matrices(&device, c);
    let a: Vec<_> = a.iter().map(Matrix::view).collect();
    let b: Vec<_> = b.iter().map(Matrix::view).collect();
    let mut c: Vec<_> = c.iter_mut().map(Matrix::view_mut).collect();
    match operation {
        "gather" => group.all_gather_matmul(&options, &a, &b, &mut c),
        "scatter" => group.matmul_reduce_scatter(&options, &a, &b, &mut c),
        _ => group.matmul_all_reduce(&options, &a, &b, &mut c),
    }
}

/// The message of the error.
fn message<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn groups_need_devices_of_one_kind() {
    assert_eq!(Group::new(&[]).err(), Some(Error::NoRanks));
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let say = |operation, shapes| message(planned(operation, shapes, Options::new()));
    assert_eq!(
        say("gather", [&[(4, 8)], &[(8, 2); 2], &[(8, 2); 2]]),
        "a: 1 matrices for 2 ranks; give one for each"
    );
    assert_eq!(
        say("gather", [&[(4, 8), (4, 7)], &[(8, 2); 2], &[(8, 2); 2]]),
        "b of rank 1 is 8×2 with strides (2, 1); accepted: 7×2"
    );
    assert_eq!(
        say(
            "gather",
            [&[(4, 8), (4, 7)], &[(8, 2), (7, 2)], &[(8, 2); 2]]
        ),
        "a of rank 1 is 4×7 with strides (7, 1); accepted: 4×8"
    );
    assert_eq!(
        say("gather", [&[(4, 8), (3, 8)], &[(8, 2); 2], &[(8, 2); 2]]),
        "c of rank 0 is 8×2 with strides (2, 1); accepted: 7×2"
    );
    assert_eq!(
        say("scatter", [&[(4, 8); 2], &[(8, 2); 2], &[(2, 2), (1, 2)]]),
        "c of rank 0 is 2×2 with strides (2, 1); accepted: 4 rows in all ranks together, as A has"
    );
    assert_eq!(
        say("reduce", [&[(4, 8); 2], &[(8, 2), (8, 3)], &[(4, 2); 2]]),
        "b of rank 1 is 8×3 with strides (3, 1); accepted: 8×2"
    );
}

#[test]
fn layouts_that_no_copy_can_move_are_refused() {
    let device = Device::cpu();
    let group = Group::new(&[device.clone(), device.clone()]).expect("CPUs");
    let wide = matrices(&device, &[(4, 16); 2]);
    let b = matrices(&device, &[(8, 2); 2]);
    let mut c = matrices(&device, &[(8, 2); 2]);
    let stepped = |a: &Matrix<f32>| a.view().step(1, 2).map(|a| a.layout());
    assert_eq!(stepped(&wide[0]), Ok(Layout::strided(4, 8, 16, 2)));
    let a: Vec<_> = (wide.iter())
        .map(|a| a.view().step(1, 2).expect("a view"))
        .collect();
    let b: Vec<_> = b.iter().map(Matrix::view).collect();
    let mut c: Vec<_> = c.iter_mut().map(Matrix::view_mut).collect();
    assert_eq!(
        message(group.all_gather_matmul(&Options::new(), &a, &b, &mut c)),
        "a of rank 0 is 4×8 with strides (16, 2); accepted: contiguous rows or contiguous \
         columns, because other ranks copy it"
    );
}

#[test]
fn all_reduce_wants_one_direction() {
    let device = Device::cpu();
    let group = Group::new(&[device.clone(), device.clone()]).expect("CPUs");
    let (a, b) = (
        matrices(&device, &[(4, 8); 2]),
        matrices(&device, &[(8, 2); 2]),
    );
    let a: Vec<_> = a.iter().map(Matrix::view).collect();
    let b: Vec<_> = b.iter().map(Matrix::view).collect();
    let (mut by_rows, mut by_columns) = (
        device.zeros::<f32>(4, 2).expect("memory"),
        device.zeros::<f32>(2, 4).expect("memory"),
    );
    let mut c = [by_rows.view_mut(), by_columns.view_mut().t()];
    assert_eq!(
        message(group.matmul_all_reduce(&Options::new(), &a, &b, &mut c)),
        "c of rank 1 is 4×2 with strides (1, 4); accepted: contiguous in the direction of rank 0's"
    );
}

#[test]
fn runs_take_what_was_planned() {
    let shapes: [&[(usize, usize)]; 3] = [&[(4, 8); 2], &[(8, 2); 2], &[(8, 2); 2]];
    let mut plan = planned("gather", shapes, Options::new().bias()).expect("a plan");
    let device = Device::cpu();
    let run = |plan: &mut Plan<f32, f32>, rows: usize, bias: Option<usize>| {
        let (a, b) = (
            matrices(&device, &[(rows, 8); 2]),
            matrices(&device, &[(8, 2); 2]),
        );
        let mut c = matrices(&device, &[(8, 2); 2]);
        let bias = bias.map(|cols| matrices(&device, &[(1, cols); 2]));
        let a: Vec<_> = a.iter().map(Matrix::view).collect();
        let b: Vec<_> = b.iter().map(Matrix::view).collect();
        let mut c: Vec<_> = c.iter_mut().map(Matrix::view_mut).collect();
        match &bias {
            None => plan.run(&a, &b, &mut c),
            Some(bias) => {
                let bias: Vec<_> = bias.iter().map(Matrix::view).collect();
                plan.run_with_bias(&a, &b, &mut c, &bias)
            }
        }
    };
    assert_eq!(
        message(run(&mut plan, 5, Some(2))),
        "a of rank 0 is 5×8 with strides (8, 1); accepted: 4×8 with strides (8, 1), as planned"
    );
    assert_eq!(
        message(run(&mut plan, 4, None)),
        "bias of rank 0 is not given; accepted: one, by Plan::run_with_bias"
    );
    assert_eq!(
        message(run(&mut plan, 4, Some(3))),
        "bias of rank 0 is 1×3 with strides (3, 1); accepted: contiguous, 1×2"
    );
    // What was refused has changed nothing: the plan still runs.
    assert_eq!(run(&mut plan, 4, Some(2)), Ok(()));
}

#[test]
fn what_nccl_cannot_do_is_named() {
    let nccl = Options::new().engine(Engine::Nccl);
    let say = |operation, shapes, options| message(planned(operation, shapes, options));
    let even = [&[(4, 8); 2][..], &[(8, 2); 2], &[(8, 2); 2]];
    assert_eq!(
        say("gather", even, nccl),
        "NCCL cannot run this operation: the devices are not GPUs of the driver; \
         accepted: on one host, Engine::Auto or Engine::Peer"
    );
    let uneven = [&[(4, 8), (3, 8)][..], &[(8, 2); 2], &[(7, 2); 2]];
    let why = "a of rank 1 has 3 rows, that of rank 0 has 4";
    assert!(say("gather", uneven, nccl).contains(why));
    let sums = [&[(4, 8); 2][..], &[(8, 2); 2], &[(2, 2); 2]];
    let why = "a bias or an activation follows the sum over ranks";
    let relu = nccl.activation(Activation::Relu);
    assert!(say("scatter", sums, relu).contains(why));
    assert!(say("scatter", sums, nccl.bias()).contains(why));

    // Where NCCL is not there, Auto copies.
    let auto = planned("gather", even, Options::new().engine(Engine::Auto)).expect("copies");
    assert_eq!(auto.info().engine, Engine::Peer);
    assert!(auto.program().is_some());
}
