//! Tests of what a caller forces.

use super::*;

fn half() -> Problem {
    problem(DType::F16, 4096, 4096, 4096)
}

fn of(request: &Request) -> Result<Choice, Error> {
    choose(CATALOG, &half(), &H200, request)
}

fn named(name: &str) -> Request {
    Request {
        kernel: Some(name.into()),
        ..Request::default()
    }
}

#[test]
fn a_family_an_order_and_a_schedule_are_taken() {
    let request = Request {
        family: Some(Family::TensorCore),
        order: Some(TileOrder::ColumnMajor),
        schedule: Some(Schedule::Persistent),
        ..Request::default()
    };
    let choice = of(&request).unwrap();
    assert_eq!(choice.kernel.name, "tc_f16_kn");
    assert_eq!(choice.order, TileOrder::ColumnMajor);
    assert_eq!(choice.schedule, Schedule::Persistent);
}

#[test]
fn a_2d_grid_has_the_order_of_its_indices() {
    let grid2d = Request {
        schedule: Some(Schedule::Grid2d),
        ..Request::default()
    };
    let choice = of(&grid2d).unwrap();
    assert_eq!(choice.kernel.name, "hopper_kn", "the pair is a cluster");
    assert_eq!(choice.order, TileOrder::RowMajor);
    assert_eq!(ctas(&choice, 132), (16, 32));
    let order = TileOrder::GroupedM { size: 4 };
    let error = of(&Request {
        order: Some(order),
        ..grid2d
    });
    assert_eq!(error.unwrap_err(), Error::OrderIgnored { order });
}

#[test]
fn a_tile_is_taken() {
    let block = Block {
        m: 64,
        n: 128,
        k: 64,
    };
    let request = Request {
        block: Some(block),
        ..Request::default()
    };
    assert_eq!(of(&request).unwrap().kernel.name, "hopper_kn_64");
}

#[test]
fn a_kernel_that_does_not_exist_is_refused_with_those_that_do() {
    let error = of(&named("hopper")).unwrap_err();
    let Error::UnknownKernel { name, known } = error else {
        panic!("{error}");
    };
    assert_eq!((name.as_str(), known.len()), ("hopper", KERNELS.len()));
    let refusal = of(&named("kn_hopper")).unwrap_err().to_string();
    let most_similar = "the most similar are hopper_kn";
    assert!(refusal.contains(most_similar), "{refusal}");
}

#[test]
fn a_kernel_that_cannot_run_is_refused_with_the_reason() {
    let refused = |request: &Request, catalog: Catalog| {
        let error = choose(catalog, &half(), &H200, request).unwrap_err();
        match error {
            Error::KernelCannotRun { reason, .. } => reason,
            other => panic!("{other}"),
        }
    };
    let input = Rejection::Input {
        reads: DType::F32,
        problem: DType::F16,
    };
    assert_eq!(refused(&named("tiled_f32"), CATALOG), input);
    let request = Request {
        family: Some(Family::Naive),
        ..named("hopper_kn")
    };
    let family = Rejection::Family {
        family: Family::Hopper,
    };
    assert_eq!(refused(&request, CATALOG), family);
    let unbuilt = Catalog {
        is_built: |_| false,
        ..CATALOG
    };
    assert_eq!(refused(&named("hopper_kn"), unbuilt), Rejection::NotBuilt);
    assert_eq!(candidates(unbuilt, &half(), &H200).count(), 0);
}
