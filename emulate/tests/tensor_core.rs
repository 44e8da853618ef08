//! The tensor_core kernels: their bank conflicts, and faults in those whose copies go through
//! registers, one at a time: the emulator catches each, by a check or by a wrong result.

mod faults;

use faults::Mutation;
use gpu_kernels::entry::KERNELS;
use gpu_kernels::{Arch, DType, Family, KernelInfo, Schedule};
use tilewise::emulator::{EmulatedGpu, Fault, Instruction};
use tilewise_emulate::{Case, Error, Outcome, case, run};

/// The kernels of f16 and TF32. Those of bf16 have the layouts of f16.
fn kernels() -> impl Iterator<Item = &'static KernelInfo> {
    KERNELS
        .iter()
        .filter(|kernel| kernel.family == Family::TensorCore && kernel.input != DType::Bf16)
}

/// A CTA of whole blocks but one, and a CTA at an edge that is cut between chunks; and operands
/// whose lines begin anywhere.
#[test]
fn there_are_no_bank_conflicts() {
    let mut targets = Vec::new();
    for kernel in kernels() {
        let (height, width) = kernel.cluster_tile();
        // Elements in parts are packed, so their lines never begin anywhere.
        let beyond: &[u32] = if kernel.input.parts() == 1 {
            &[0, 1]
        } else {
            &[0]
        };
        for &more in beyond {
            let (m, n) = (height + 40 + more, width + more);
            let case = Case::new(kernel, m, n, 2 * kernel.block.k + 8 + more);
            let outcome = match run(&case, &case.gpu()) {
                Ok(outcome) => outcome,
                Err(error) => panic!("{} {m}×{n}: {error}", kernel.name),
            };
            let counts = outcome.counts;
            assert!(counts.shared_accesses > 0, "{}", kernel.name);
            assert_eq!(counts.bank_conflicts, 0, "{} {m}×{n}", kernel.name);
        }
        targets.push(kernel.arch);
    }
    assert!(targets.contains(&Arch::Sm75) && targets.contains(&Arch::Sm80));
}

/// A tile whose accumulators leave in two parts.
const IN_PARTS: &str = "tensor_core_f16_ak_bn_128x128x32_sm75";

/// Faults in [`IN_PARTS`].
const MUTATIONS: &[Mutation] = &[
    Mutation {
        what: "no barrier between the stores of a stage and its loads",
        instruction: Instruction::SyncCta,
        change: |_, _| false,
    },
    Mutation {
        what: "one thread does not wait for the others' stores",
        instruction: Instruction::SyncCta,
        change: |site, _| !(site.thread == 70 && site.occurrence == 2),
    },
    Mutation {
        what: "the next tile does not wait for the store of C",
        instruction: Instruction::SyncCta,
        // A tile of five blocks has one barrier before its loop, one a block, and two after.
        change: |site, _| site.occurrence % 8 != 7,
    },
    Mutation {
        what: "accumulators are stored before the warp has staged them",
        instruction: Instruction::SyncWarp,
        change: |site, _| site.occurrence % 3 != 0,
    },
    Mutation {
        what: "the second part of a tile overwrites the first before it is stored",
        instruction: Instruction::SyncWarp,
        change: |site, _| site.occurrence % 3 != 1,
    },
    Mutation {
        what: "a chunk lands in its neighbour's place",
        instruction: Instruction::StoreShared,
        change: |site, arguments| {
            if site.occurrence == 9 {
                arguments[0] ^= 16;
            }
            true
        },
    },
    Mutation {
        what: "a chunk lands in the other stage",
        instruction: Instruction::StoreShared,
        change: |site, arguments| {
            if site.thread == 3 && site.occurrence == 9 {
                arguments[0] ^= 16 << 10;
            }
            true
        },
    },
    Mutation {
        what: "a row of fragments comes from the next chunk",
        instruction: Instruction::LoadMatrix,
        change: |site, arguments| {
            if site.thread == 5 {
                arguments[0] ^= 16;
            }
            true
        },
    },
];

/// Several tiles a CTA, edges, and more blocks than stages.
fn emulate(faults: Vec<Fault>, seed: u64) -> Result<Outcome, Error> {
    let kernel = case::kernel(IN_PARTS).expect("a kernel");
    let mut case = Case::new(kernel, 2 * 128 + 40, 128 + 72, 4 * 32 + 8);
    case.choice.schedule = Schedule::Persistent;
    case.resident = 2;
    let gpu = EmulatedGpu {
        seed,
        faults,
        ..case.gpu()
    };
    run(&case, &gpu)
}

#[test]
fn without_faults_all_is_well() {
    faults::all_is_well(emulate);
}

#[test]
fn every_fault_is_caught() {
    faults::all_are_caught(MUTATIONS, emulate);
}
