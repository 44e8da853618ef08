//! The instructions that the emulator knows, by name.

macro_rules! instructions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// An instruction of `isa`, for reports, counts and faults.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "`name` is the documentation")]
        pub enum Instruction {
            $($variant,)*
        }

        impl Instruction {
            /// All instructions.
            pub const ALL: &[Instruction] = &[$(Instruction::$variant,)*];

            /// The instruction's name in the PTX ISA.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Instruction::$variant => $name,)*
                }
            }
        }
    };
}

instructions! {
    Broadcast = "shfl.sync.idx";
    ShuffleDown = "shfl.sync.down";
    SyncCta = "bar.sync 0";
    SyncNamed = "bar.sync";
    SyncWarp = "bar.warp.sync";
    Trap = "trap";
    LoadConstant = "ld.global.nc";
    LoadGlobal = "ld.global";
    StoreGlobal = "st.global";
    RaiseFlag = "st.release.gpu.global";
    WaitFlag = "ld.acquire.gpu.global";
    LoadShared = "ld.shared";
    StoreShared = "st.shared";
    StoreCluster = "st.shared::cluster";
    CopyAsync = "cp.async.cg";
    CommitCopies = "cp.async.commit_group";
    WaitCopies = "cp.async.wait_group";
    LoadMatrix = "ldmatrix";
    StoreMatrix = "stmatrix";
    MultiplyF16 = "mma.m16n8k16.f16";
    MultiplyF16K8 = "mma.m16n8k8.f16";
    MultiplyBf16 = "mma.m16n8k16.bf16";
    MultiplyTf32 = "mma.m16n8k8.tf32";
    BarrierInit = "mbarrier.init";
    BarrierFenceInit = "fence.mbarrier_init";
    BarrierArrive = "mbarrier.arrive";
    BarrierArriveExpect = "mbarrier.arrive.expect_tx";
    BarrierArriveRemote = "mbarrier.arrive.shared::cluster";
    BarrierWait = "mbarrier.try_wait.parity";
    PrefetchMap = "prefetch.tensormap";
    TensorLoad = "cp.async.bulk.tensor.shared.global";
    TensorLoadMulticast = "cp.async.bulk.tensor.shared.global.multicast";
    TensorStore = "cp.async.bulk.tensor.global.shared";
    CommitStores = "cp.async.bulk.commit_group";
    WaitStoresRead = "cp.async.bulk.wait_group.read";
    WaitStores = "cp.async.bulk.wait_group";
    ProxyFence = "fence.proxy.async";
    WgmmaFence = "wgmma.fence";
    WgmmaMultiply = "wgmma.mma_async";
    WgmmaCommit = "wgmma.commit_group";
    WgmmaWait = "wgmma.wait_group";
    ReleaseRegisters = "setmaxnreg.dec";
    ClaimRegisters = "setmaxnreg.inc";
    ClusterArrive = "barrier.cluster.arrive.release";
    ClusterArriveRelaxed = "barrier.cluster.arrive.relaxed";
    ClusterWait = "barrier.cluster.wait";
    LaunchDependents = "griddepcontrol.launch_dependents";
    WaitDependency = "griddepcontrol.wait";
}

impl Instruction {
    /// Whether other threads can observe when the instruction executes, so that the
    /// scheduler may run another thread just before it. All instructions of a thread between
    /// two such instructions execute without a switch.
    pub(super) const fn synchronises(self) -> bool {
        use Instruction as I;
        matches!(
            self,
            I::SyncCta
                | I::SyncNamed
                | I::SyncWarp
                | I::RaiseFlag
                | I::WaitFlag
                | I::BarrierArrive
                | I::BarrierArriveExpect
                | I::BarrierArriveRemote
                | I::BarrierWait
                | I::TensorLoad
                | I::TensorLoadMulticast
                | I::TensorStore
                | I::WaitStoresRead
                | I::WaitStores
                | I::WgmmaFence
                | I::WgmmaWait
                | I::ClusterArrive
                | I::ClusterArriveRelaxed
                | I::ClusterWait
                | I::StoreCluster
        )
    }
}
