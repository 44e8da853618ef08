//! Tests of the choice whether a launch overlaps the launch before it.

use super::*;
use crate::select::overlap;

fn overlaps(m: u32, n: u32, k: u32) -> bool {
    let mut nt = problem(DType::Bf16, m, n, k);
    nt.b = Strides::new(1, k.into());
    let choice = choose(LIBRARY, &nt, &H200, &Request::default()).unwrap();
    let (x, y) = grid::ctas(&choice, H200.sms);
    let cycles = cost::of_choice(&choice, &nt, &H200).cycles;
    overlap::pays(&choice.kernel, (x, y), cycles, &H200)
}

#[test]
fn products_measured_both_ways_get_the_faster_one() {
    let faster = [
        (512, 512, 512),
        (16, 8192, 1024),
        (1536, 1536, 1536),
        (256, 5120, 5120),
    ];
    for (m, n, k) in faster {
        assert!(overlaps(m, n, k), "{m}×{n}×{k}");
    }
    let slower = [
        (16, 5120, 5120),
        (8, 6144, 6144),
        (160, 4608, 3584),
        (256, 4096, 4096),
    ];
    for (m, n, k) in slower {
        assert!(!overlaps(m, n, k), "{m}×{n}×{k}");
    }
    assert!(!overlaps(4096, 4096, 4096), "at the power limit");
}

#[test]
fn other_families_never_overlap() {
    let others = LIBRARY
        .kernels
        .iter()
        .filter(|kernel| kernel.family != Family::Hopper);
    for kernel in others {
        assert!(
            !overlap::pays(kernel, (132, 1), 1000, &H200),
            "{}",
            kernel.name
        );
    }
}
