//! Faults in the hopper kernels whose producers load through registers, one at a time.

mod faults;

use faults::Mutation;
use gpu_kernels::Schedule;
use gpu_kernels::isa::mbarrier;
use gpu_kernels::isa::warpgroup::WARPGROUP;
use tilewise::emulator::{EmulatedGpu, Fault, Instruction, Site};
use tilewise_emulate::{Case, Error, Outcome, case, run};

/// A along M and B along K: a line is one k of A, and one column of B.
const KERNEL: &str = "hopper_f16_am_bk_64x64x64_unaligned";

/// Bytes of a stage.
const STAGE_BYTES: u64 = 2 * 64 * 128;

/// Whether the thread belongs to a producer: the second warpgroup multiplies.
fn is_producer(site: &Site) -> bool {
    site.thread / WARPGROUP != 1
}

const MUTATIONS: &[Mutation] = &[
    Mutation {
        what: "producers send no proxy fence",
        instruction: Instruction::ProxyFence,
        change: |site, _| !is_producer(site),
    },
    Mutation {
        // Their words are ordered by the fences of other lanes, behind the barrier between words
        // and single elements.
        what: "the lanes that store single elements send no proxy fence",
        instruction: Instruction::ProxyFence,
        change: |site, _| !(is_producer(site) && site.thread % 32 < 18),
    },
    Mutation {
        what: "a warp arrives before its lanes have stored",
        instruction: Instruction::SyncWarp,
        change: |site, _| !is_producer(site),
    },
    Mutation {
        what: "one warp never arrives",
        instruction: Instruction::BarrierArrive,
        change: |site, _| site.thread != 3 * WARPGROUP + 32,
    },
    Mutation {
        what: "a warp arrives at the next stage",
        instruction: Instruction::BarrierArrive,
        change: |site, arguments| {
            if site.thread == 32 && site.occurrence == 1 {
                arguments[0] += u64::from(mbarrier::BYTES);
            }
            true
        },
    },
    Mutation {
        what: "producers do not wait until a stage is empty",
        instruction: Instruction::BarrierWait,
        change: |site, _| !is_producer(site),
    },
    Mutation {
        what: "the consumer does not wait until a stage is full",
        instruction: Instruction::BarrierWait,
        change: |site, _| is_producer(site),
    },
    Mutation {
        what: "a word lands in its neighbour's place",
        instruction: Instruction::StoreShared,
        change: |site, arguments| {
            if site.thread == 5 && site.occurrence == 9 {
                arguments[0] ^= 4;
            }
            true
        },
    },
    Mutation {
        what: "a line lands unswizzled",
        instruction: Instruction::StoreShared,
        change: |site, arguments| {
            if site.thread < 32 && site.occurrence == 3 {
                arguments[0] ^= (arguments[0] >> 7 & 7) << 4;
            }
            true
        },
    },
    Mutation {
        what: "a word lands in the next stage",
        instruction: Instruction::StoreShared,
        change: |site, arguments| {
            if site.thread == 40 && site.occurrence == 2 {
                arguments[0] += STAGE_BYTES;
            }
            true
        },
    },
    Mutation {
        what: "an element comes from one further on",
        instruction: Instruction::LoadGlobal,
        change: |site, arguments| {
            if site.thread == 260 && site.occurrence == 4 {
                arguments[0] += 2;
            }
            true
        },
    },
];

/// The same, where four CTAs split K.
const SPLIT: &str = "hopper_f16_am_bk_64x64x64_unaligned_split4";

const SPLIT_MUTATIONS: &[Mutation] = &[
    Mutation {
        what: "a thread of a producer does not arrive for the exchange",
        instruction: Instruction::ClusterArriveRelaxed,
        change: |site, _| !(site.thread == 300 && site.occurrence == 1),
    },
    Mutation {
        what: "the exchange does not wait for the peers",
        instruction: Instruction::ClusterWait,
        change: |site, _| is_producer(site),
    },
    Mutation {
        what: "producers send no proxy fence",
        instruction: Instruction::ProxyFence,
        change: |site, _| !is_producer(site),
    },
];

/// Several tiles a CTA, edges, more k-blocks than stages, and lines that begin anywhere.
fn emulate(kernel: &str, faults: Vec<Fault>, seed: u64) -> Result<Outcome, Error> {
    let kernel = case::kernel(kernel).expect("a kernel");
    let depth = kernel.cluster.k * (kernel.stages + 1) * kernel.block.k + 9;
    let mut case = Case::new(kernel, 2 * 64 + 41, 64 + 33, depth);
    case.choice.schedule = Schedule::Persistent;
    case.resident = 2 * kernel.cluster.ctas();
    let gpu = EmulatedGpu {
        seed,
        faults,
        ..case.gpu()
    };
    run(&case, &gpu)
}

#[test]
fn without_faults_all_is_well() {
    for kernel in [KERNEL, SPLIT] {
        faults::all_is_well(|faults, seed| emulate(kernel, faults, seed));
    }
}

#[test]
fn every_fault_is_caught() {
    faults::all_are_caught(MUTATIONS, |faults, seed| emulate(KERNEL, faults, seed));
    faults::all_are_caught(SPLIT_MUTATIONS, |faults, seed| emulate(SPLIT, faults, seed));
}
