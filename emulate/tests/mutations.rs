//! Faults in the Hopper kernels, one at a time: the emulator catches each, by a check or
//! by a wrong result. The kernels' source stays as it is: a fault changes the arguments of
//! an instruction that the kernel executes, or drops the instruction.

use gpu_kernels::dtype::AlongK;
use gpu_kernels::element::F16;
use gpu_kernels::isa::warpgroup::WARPGROUP;
use gpu_kernels::kernels::hopper::shared_memory::SharedMemory;
use gpu_kernels::kernels::hopper::traits::KernelTraits;
use gpu_kernels::kernels::hopper::{Cooperative, Hopper, PingPong};
use gpu_kernels::{OutputType, Schedule};
use tilewise::emulator::{EmulatedGpu, Fault, Instruction, Site};
use tilewise_emulate::{Case, Error, Outcome, case, run};

/// Bytes of an mbarrier.
const BARRIER_BYTES: u64 = gpu_kernels::isa::mbarrier::BYTES as u64;

/// Stages and consumers of [`PLAIN`], and bytes of its stages.
const STAGES: u64 = 6;
const STAGE_BYTES: u64 = 2 * 128 * 128;

/// Two consumers, no cluster; a ring that is used several times over.
const PLAIN: &str = "hopper_f16_ak_bk_128x128x64";
/// B along N.
const ALONG_N: &str = "hopper_f16_ak_bn_128x128x64";
/// Two consumers take turns.
const PING_PONG: &str = "hopper_f16_ak_bk_128x128x64_pingpong";
/// Two CTAs share their loads of B.
const CLUSTER: &str = "hopper_f16_ak_bk_128x192x64_cluster2x1";
/// Two CTAs share K.
const SPLIT: &str = "hopper_f16_ak_bk_64x64x64_split2";
/// Elements in two parts.
const PARTS: &str = "hopper_f16x3_ak_bk_128x128x64";
/// A goes through registers, and C is contiguous along M.
const REGISTERS: &str = "hopper_tf32_am_bk_cm_128x128x32";
/// A 16-bit C is contiguous along M.
const ALONG_M: &str = "hopper_f16_am_bk_cm_128x80x64";
/// CTAs share tiles.
const STREAM_K: &str = "hopper_f16_ak_bk_128x128x64_streamk";

/// C is staged in the last stage of a tile, and two CTAs share their loads of A.
const STAGED_IN_A: &str = "hopper_f16_ak_bk_256x192x64_cluster1x2";
/// Batches in which a consumer of [`STAGED_IN_A`] stores a tile: three of each m64 tile.
const BATCHES: u32 = 6;

/// A fault, and the kernel that gets it.
struct Mutation {
    what: &'static str,
    kernel: &'static str,
    instruction: Instruction,
    change: fn(&Site, &mut [u64]) -> bool,
}

/// The shared memory of kernel `name`, which is `K`.
fn shared_memory<K: KernelTraits>(name: &str) -> SharedMemory<K> {
    let bytes = case::kernel(name).expect("a kernel").shared_bytes;
    assert_eq!(SharedMemory::<K>::BYTES, bytes, "{name} is another kernel");
    SharedMemory::of_this_cta()
}

/// Whether an mbarrier of [`PLAIN`] is an `empty` barrier.
fn is_empty_barrier(address: u64) -> bool {
    type Plain = Hopper<F16, AlongK, AlongK, 128, 128, 64, 6, Cooperative, true>;
    let shared = shared_memory::<Plain>(PLAIN);
    (0..STAGES as u32).any(|stage| u64::from(shared.empty(stage).address()) == address)
}

/// Whether an mbarrier of [`PING_PONG`] is an order barrier.
fn is_turn_barrier(address: u64) -> bool {
    type Alternating = Hopper<F16, AlongK, AlongK, 128, 128, 64, 5, PingPong, true>;
    let shared = shared_memory::<Alternating>(PING_PONG);
    (0..2).any(|consumer| u64::from(shared.order(consumer).address()) == address)
}

/// Whether the producer of [`CLUSTER`] waits for stages that it will not fill again: of the six tiles
/// of [`base`], each of two clusters has three.
fn is_behind_the_last_load(site: &Site) -> bool {
    let k_blocks = case::kernel(CLUSTER).expect("a kernel").stages + 2;
    site.thread == 0 && site.occurrence >= 3 * k_blocks
}

/// Waits until two groups are in flight, where one may be.
fn leaves_two_in_flight(_: &Site, arguments: &mut [u64]) -> bool {
    if arguments[0] == 1 {
        arguments[0] = 2;
    }
    true
}

/// An access to shared memory at the address before the 128-byte swizzle.
fn undoes_the_swizzle(_: &Site, arguments: &mut [u64]) -> bool {
    let row = arguments[0] >> 7 & 7;
    arguments[0] ^= row << 4;
    true
}

const MUTATIONS: &[Mutation] = &[
    Mutation {
        what: "no wgmma.fence",
        kernel: PLAIN,
        instruction: Instruction::WgmmaFence,
        change: |_, _| false,
    },
    Mutation {
        what: "no proxy fence before C is stored",
        kernel: PLAIN,
        instruction: Instruction::ProxyFence,
        change: |_, _| false,
    },
    Mutation {
        what: "no fence behind the barriers' initialisation",
        kernel: CLUSTER,
        instruction: Instruction::BarrierFenceInit,
        change: |_, _| false,
    },
    Mutation {
        what: "no barrier of the CTA behind the barriers' initialisation",
        kernel: PLAIN,
        instruction: Instruction::SyncCta,
        change: |_, _| false,
    },
    Mutation {
        what: "the producer does not wait until a stage is empty",
        kernel: PLAIN,
        instruction: Instruction::BarrierWait,
        change: |_, arguments| !is_empty_barrier(arguments[0]),
    },
    Mutation {
        what: "a consumer does not wait until a stage is full",
        kernel: PLAIN,
        instruction: Instruction::BarrierWait,
        change: |_, arguments| is_empty_barrier(arguments[0]),
    },
    Mutation {
        what: "one thread does not wait until a stage is full",
        kernel: PLAIN,
        instruction: Instruction::BarrierWait,
        change: |site, _| !(site.thread == 2 * WARPGROUP - 1 && site.occurrence == 3),
    },
    Mutation {
        what: "the producer begins with the other parity",
        kernel: PLAIN,
        instruction: Instruction::BarrierWait,
        change: |_, arguments| {
            if is_empty_barrier(arguments[0]) {
                arguments[1] ^= 1;
            }
            true
        },
    },
    Mutation {
        what: "consumers begin with the other parity",
        kernel: PLAIN,
        instruction: Instruction::BarrierWait,
        change: |_, arguments| {
            if !is_empty_barrier(arguments[0]) {
                arguments[1] ^= 1;
            }
            true
        },
    },
    Mutation {
        what: "a row too few is expected",
        kernel: PLAIN,
        instruction: Instruction::BarrierArriveExpect,
        change: |_, arguments| {
            arguments[1] -= 128;
            true
        },
    },
    Mutation {
        what: "a row too many is expected",
        kernel: PLAIN,
        instruction: Instruction::BarrierArriveExpect,
        change: |_, arguments| {
            arguments[1] += 128;
            true
        },
    },
    Mutation {
        what: "a consumer releases the stage before",
        kernel: PLAIN,
        instruction: Instruction::BarrierArrive,
        change: |site, arguments| {
            if site.thread == WARPGROUP && site.occurrence == 1 {
                arguments[0] -= BARRIER_BYTES;
            }
            true
        },
    },
    Mutation {
        what: "a consumer never releases a stage",
        kernel: PLAIN,
        instruction: Instruction::BarrierArrive,
        change: |site, _| site.occurrence != 2,
    },
    Mutation {
        what: "a load goes to the next stage",
        kernel: PLAIN,
        instruction: Instruction::TensorLoad,
        change: |site, arguments| {
            if site.occurrence == 4 {
                arguments[0] += STAGE_BYTES;
            }
            true
        },
    },
    Mutation {
        what: "a load starts one element further",
        kernel: PLAIN,
        instruction: Instruction::TensorLoad,
        change: |site, arguments| {
            arguments[2] += u64::from(site.occurrence == 3);
            true
        },
    },
    Mutation {
        what: "a load signals the next stage",
        kernel: PLAIN,
        instruction: Instruction::TensorLoad,
        change: |site, arguments| {
            if site.occurrence == 2 {
                arguments[4] += BARRIER_BYTES;
            }
            true
        },
    },
    Mutation {
        what: "descriptors of the 64-byte swizzle",
        kernel: PLAIN,
        instruction: Instruction::WgmmaMultiply,
        change: |_, arguments| {
            arguments[0] = arguments[0] & !(3 << 62) | 2 << 62;
            true
        },
    },
    Mutation {
        what: "descriptors whose next 64 columns lie where the last ones do",
        kernel: ALONG_N,
        instruction: Instruction::WgmmaMultiply,
        change: |_, arguments| {
            arguments[1] &= !(0x3fff << 16);
            true
        },
    },
    Mutation {
        what: "a tile's first multiply adds to what was there",
        kernel: PLAIN,
        instruction: Instruction::WgmmaMultiply,
        change: |_, arguments| {
            arguments[2] = 1;
            true
        },
    },
    Mutation {
        what: "no multiply adds up",
        kernel: PLAIN,
        instruction: Instruction::WgmmaMultiply,
        change: |_, arguments| {
            arguments[2] = 0;
            true
        },
    },
    Mutation {
        what: "a stage is released while the tensor cores read it",
        kernel: PLAIN,
        instruction: Instruction::WgmmaWait,
        change: leaves_two_in_flight,
    },
    Mutation {
        what: "sums are read before they are finished",
        kernel: PLAIN,
        instruction: Instruction::WgmmaWait,
        change: |_, arguments| arguments[0] != 0,
    },
    Mutation {
        what: "multiplies that are in no group",
        kernel: PLAIN,
        instruction: Instruction::WgmmaCommit,
        change: |_, _| false,
    },
    Mutation {
        what: "C is sent before all have filled it",
        kernel: PLAIN,
        instruction: Instruction::SyncNamed,
        change: |site, _| site.occurrence % 2 == 0,
    },
    Mutation {
        what: "C is filled before it has been sent",
        kernel: PLAIN,
        instruction: Instruction::WaitStoresRead,
        change: |_, _| false,
    },
    Mutation {
        what: "C is staged unswizzled",
        kernel: PLAIN,
        instruction: Instruction::StoreMatrix,
        change: undoes_the_swizzle,
    },
    Mutation {
        what: "a 16-bit C along M is staged unswizzled",
        kernel: ALONG_M,
        instruction: Instruction::StoreMatrix,
        change: undoes_the_swizzle,
    },
    Mutation {
        what: "the CTA ends while its stores read shared memory",
        kernel: PLAIN,
        instruction: Instruction::WaitStores,
        change: |_, _| false,
    },
    Mutation {
        what: "a store goes to the rows above",
        kernel: PLAIN,
        instruction: Instruction::TensorStore,
        change: |site, arguments| {
            if site.occurrence == 1 {
                arguments[3] = arguments[3].saturating_sub(64);
            }
            true
        },
    },
    Mutation {
        what: "stores are in no group",
        kernel: PLAIN,
        instruction: Instruction::CommitStores,
        change: |_, _| false,
    },
    Mutation {
        what: "a barrier that expects an arrival too many",
        kernel: PLAIN,
        instruction: Instruction::BarrierInit,
        change: |site, arguments| {
            arguments[1] += u64::from(site.occurrence == 1);
            true
        },
    },
    Mutation {
        what: "a barrier that is not initialised",
        kernel: PLAIN,
        instruction: Instruction::BarrierInit,
        change: |site, _| site.occurrence != 3,
    },
    Mutation {
        what: "the producer keeps its registers",
        kernel: PLAIN,
        instruction: Instruction::ReleaseRegisters,
        change: |_, _| false,
    },
    Mutation {
        what: "an earlier grid is not waited for",
        kernel: PLAIN,
        instruction: Instruction::WaitDependency,
        change: |_, _| false,
    },
    Mutation {
        what: "a consumer does not wait for its turn",
        kernel: PING_PONG,
        instruction: Instruction::BarrierWait,
        change: |_, arguments| !is_turn_barrier(arguments[0]),
    },
    Mutation {
        what: "a consumer keeps the turn",
        kernel: PING_PONG,
        instruction: Instruction::BarrierArrive,
        change: |_, arguments| !is_turn_barrier(arguments[0]),
    },
    Mutation {
        what: "a CTA leaves its cluster early",
        kernel: CLUSTER,
        instruction: Instruction::ClusterWait,
        change: |site, _| site.occurrence != 1,
    },
    Mutation {
        what: "a CTA does not wait for the last arrivals of its peer",
        kernel: CLUSTER,
        instruction: Instruction::BarrierWait,
        change: |site, _| !is_behind_the_last_load(site),
    },
    Mutation {
        what: "a load does not reach the peer",
        kernel: CLUSTER,
        instruction: Instruction::TensorLoadMulticast,
        change: |site, arguments| {
            if site.cta == 0 {
                arguments[5] &= 1;
            }
            true
        },
    },
    Mutation {
        what: "the peer is not told that a stage is empty",
        kernel: CLUSTER,
        instruction: Instruction::BarrierArriveRemote,
        change: |site, arguments| {
            arguments[1] = u64::from(site.cta % 2);
            true
        },
    },
    Mutation {
        what: "sums for the peer land in the wrong slot",
        kernel: SPLIT,
        instruction: Instruction::StoreCluster,
        change: |site, arguments| {
            if site.occurrence == 0 {
                arguments[0] += 16;
            }
            true
        },
    },
    Mutation {
        what: "sums are added before the peer has sent them",
        kernel: SPLIT,
        instruction: Instruction::ClusterArrive,
        change: |_, _| false,
    },
    Mutation {
        what: "sums are added before they are lent",
        kernel: STREAM_K,
        instruction: Instruction::WaitFlag,
        change: |_, _| false,
    },
    Mutation {
        what: "products are added while they may be in flight",
        kernel: PARTS,
        instruction: Instruction::WgmmaWait,
        change: leaves_two_in_flight,
    },
    Mutation {
        what: "low and high parts change places",
        kernel: PARTS,
        instruction: Instruction::TensorLoad,
        change: |_, arguments| {
            // The third coordinate.
            arguments[4] ^= 1;
            true
        },
    },
    Mutation {
        what: "no wgmma.fence before the products of a k-block",
        kernel: PARTS,
        instruction: Instruction::WgmmaFence,
        change: |_, _| false,
    },
    Mutation {
        what: "no wgmma.fence between the loads of A and the second half of a k-block",
        kernel: REGISTERS,
        instruction: Instruction::WgmmaFence,
        change: |site, _| site.occurrence % 2 == 0,
    },
    Mutation {
        what: "a stage is released before all lanes have loaded A",
        kernel: REGISTERS,
        instruction: Instruction::SyncWarp,
        change: |_, _| false,
    },
    Mutation {
        what: "a stage is released while the tensor cores read B",
        kernel: REGISTERS,
        instruction: Instruction::WgmmaWait,
        change: leaves_two_in_flight,
    },
    Mutation {
        what: "one warp releases no stage",
        kernel: REGISTERS,
        instruction: Instruction::BarrierArrive,
        change: |site, _| site.thread != WARPGROUP + 32,
    },
    Mutation {
        what: "A is loaded unswizzled",
        kernel: REGISTERS,
        instruction: Instruction::LoadShared,
        change: undoes_the_swizzle,
    },
    Mutation {
        what: "C along M is staged unswizzled",
        kernel: REGISTERS,
        instruction: Instruction::StoreShared,
        change: undoes_the_swizzle,
    },
    Mutation {
        what: "a stage is released while C is sent from it",
        kernel: STAGED_IN_A,
        instruction: Instruction::WaitStoresRead,
        // A consumer waits before each batch, and behind the last one.
        change: |site, _| site.occurrence % (BATCHES + 1) != BATCHES,
    },
    Mutation {
        what: "a stage is released to the peer while C is sent from it",
        kernel: STAGED_IN_A,
        instruction: Instruction::SyncNamed,
        // There is a barrier before a batch is filled, one before it is sent, and one behind all.
        change: |site, _| site.occurrence % (2 * BATCHES + 1) != 2 * BATCHES,
    },
    Mutation {
        what: "sums are never lent",
        kernel: STREAM_K,
        instruction: Instruction::RaiseFlag,
        change: |_, _| false,
    },
];

/// A case that reaches every fault: it has several tiles a CTA, edges, and more k-blocks
/// than stages; and it is short enough that its launch overlaps an earlier one.
fn base(kernel: &str) -> Case {
    let kernel = case::kernel(kernel).expect("a kernel");
    let (height, width) = kernel.cluster_tile();
    let depth = (kernel.cluster.k * kernel.stages + 1) * kernel.block.k + 8;
    let mut case = Case::new(kernel, 2 * height + 40, width + 72, depth);
    case.output = OutputType::Input;
    if case.choice.schedule != Schedule::StreamK {
        case.choice.schedule = Schedule::Persistent;
        case.resident = 2 * kernel.cluster.ctas();
    } else {
        case.resident = 5;
        case.choice.stream_k_ctas = 5;
    }
    case
}

fn emulate(kernel: &str, faults: Vec<Fault>, seed: u64) -> Result<Outcome, Error> {
    let case = base(kernel);
    let gpu = EmulatedGpu {
        seed,
        slots: 5,
        faults,
        ..case.gpu()
    };
    run(&case, &gpu)
}

#[test]
fn without_faults_all_is_well() {
    for kernel in [
        PLAIN,
        ALONG_N,
        ALONG_M,
        PING_PONG,
        CLUSTER,
        SPLIT,
        PARTS,
        REGISTERS,
        STREAM_K,
        STAGED_IN_A,
    ] {
        for seed in 0..3 {
            if let Err(error) = emulate(kernel, Vec::new(), seed) {
                panic!("{kernel}, seed {seed}: {error}");
            }
        }
    }
}

#[test]
fn every_fault_is_caught() {
    assert!(MUTATIONS.len() >= 15);
    let mut missed = Vec::new();
    for mutation in MUTATIONS {
        let fault = Fault {
            instruction: mutation.instruction,
            change: mutation.change,
        };
        let caught = (0..3).find_map(|seed| emulate(mutation.kernel, vec![fault], seed).err());
        match caught {
            Some(error) => {
                let text = error.to_string();
                let line = text.lines().next().unwrap_or_default();
                println!("{}: {line}", mutation.what);
            }
            None => missed.push(mutation.what),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:#?}");
}
