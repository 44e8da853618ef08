//! Which parts of the [`epilogue`](crate::epilogue) a launch has ([`Form`]), and what they
//! read ([`EpilogueArguments`]).

use crate::cluster::ClusterShape;
use crate::dtype::DType;
use crate::tensor_ref::TensorRef;

/// What the source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SourceUse {
    /// There is no source.
    None = 0,
    /// β·S is added.
    Add = 1,
    /// The value is multiplied by act(S), and act is not applied to the value. A gated
    /// product is computed so, in two launches, where no kernel can compute it in one.
    Gate = 2,
}

/// Which elements of C share an element of the bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum BiasAxis {
    /// There is no bias.
    None = 0,
    /// The bias has M elements, one for each row.
    PerRow = 1,
    /// The bias has N elements, one for each column.
    PerColumn = 2,
}

/// What the planes of the operands and of C are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Planes {
    /// There is one product, and no planes.
    None = 0,
    /// The matrices of a batch of products.
    Batch = 1,
    /// The classes of the lines of one product
    /// ([`line_classes`](crate::kernels::hopper::line_classes)).
    LineClasses = 2,
}

impl Planes {
    /// The planes of `batches` products.
    pub const fn of_batch(batches: u32) -> Self {
        match batches {
            0 | 1 => Planes::None,
            _ => Planes::Batch,
        }
    }
}

/// How many sixteenths of the lines of each operand L2 is to evict before others, 0 to 16. The
/// hardware decides which ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct EvictFirst {
    /// Of A.
    pub a: u8,
    /// Of B.
    pub b: u8,
}

impl EvictFirst {
    /// No line is evicted before others.
    pub const NONE: EvictFirst = EvictFirst { a: 0, b: 0 };

    /// The same lines of the operands of Cᵀ = Bᵀ·Aᵀ.
    pub const fn transposed(self) -> EvictFirst {
        EvictFirst {
            a: self.b,
            b: self.a,
        }
    }
}

/// An activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Activation {
    /// x.
    Identity = 0,
    /// max(x, 0).
    Relu = 1,
    /// x for x > 0, else slope·x.
    LeakyRelu = 2,
    /// x·Φ(x), with Φ the standard normal distribution function (Hendrycks and Gimpel,
    /// arXiv 1606.08415).
    Gelu = 3,
    /// x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2 (the same paper).
    GeluTanh = 4,
    /// x·σ(x).
    Silu = 5,
}

/// The structure of a launch: what its epilogue does, C's type, whether it has a batch, which
/// operands stay in L2 for less time than others, how many CTAs share loads, and whether clusters are
/// renumbered.
///
/// These values decide which instructions run, and the host folds them into the PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Form {
    /// Element type of C: [`DType::F32`], [`DType::F16`] or [`DType::Bf16`].
    pub output: DType,
    /// Element type of the source; one of the same three.
    pub source_type: DType,
    /// Element type of the bias; one of the same three.
    pub bias_type: DType,
    /// What the source does.
    pub source: SourceUse,
    /// The shape of the bias.
    pub bias: BiasAxis,
    /// The activation.
    pub activation: Activation,
    /// Nonzero if pairs of columns of A·B, gate and up, become one column of C:
    /// act(gate) · up. The tensor map of B then has two planes of N/2 columns each, first
    /// the gates, so that one kernel serves pairs side by side and pairs half a matrix
    /// apart. Only Hopper kernels take it, for one product.
    pub gated: u32,
    /// Nonzero if sums are multiplied by α.
    pub scaled: u32,
    /// Nonzero if row i of the sums is multiplied by rᵢ.
    pub row_scale: u32,
    /// Nonzero if column j of the sums is multiplied by cⱼ.
    pub col_scale: u32,
    /// What the planes of A, B and C are.
    pub planes: Planes,
    /// Nonzero if clusters take the ids of [`GemmParams::cluster_ids`](crate::GemmParams), of which
    /// there are [`ClusterIds::MAX`](crate::ClusterIds) at most.
    pub renumbered: u16,
    /// What L2 is to evict first. Only kernels that load through TMA take it.
    pub evict_first: EvictFirst,
    /// The CTAs of a cluster that share loads. Kernels for several shapes read it
    /// ([`Clusters`](crate::kernels::hopper::Clusters)); it says the same as
    /// [`KernelInfo::cluster`](crate::KernelInfo) for all others.
    pub cluster: ClusterShape,
}

impl Form {
    /// One product C = A·B with C of type `output`.
    pub const fn plain(output: DType) -> Form {
        Form {
            output,
            source_type: output,
            bias_type: output,
            source: SourceUse::None,
            bias: BiasAxis::None,
            activation: Activation::Identity,
            gated: 0,
            scaled: 0,
            row_scale: 0,
            col_scale: 0,
            planes: Planes::None,
            renumbered: 0,
            evict_first: EvictFirst::NONE,
            cluster: ClusterShape::NONE,
        }
    }

    /// The fields in the order of their addresses, as words of four bytes.
    pub const fn words(&self) -> [u32; 12] {
        let words = [
            self.output as u32,
            self.source_type as u32,
            self.bias_type as u32,
            self.source as u32,
            self.bias as u32,
            self.activation as u32,
            self.gated,
            self.scaled,
            self.row_scale,
            self.col_scale,
            self.planes as u32 | (self.renumbered as u32) << 16,
            u32::from_le_bytes([
                self.evict_first.a,
                self.evict_first.b,
                self.cluster.log2_m,
                self.cluster.log2_n,
            ]),
        ];
        assert!(size_of_val(&words) == size_of::<Form>());
        words
    }

    /// Whether C is the product itself.
    pub const fn is_plain(&self) -> bool {
        matches!(self.source, SourceUse::None)
            && matches!(self.bias, BiasAxis::None)
            && matches!(self.activation, Activation::Identity)
            && self.gated == 0
            && self.scaled == 0
            && self.row_scale == 0
            && self.col_scale == 0
    }
}

/// What an epilogue reads. Fields that the [`Form`] does not use have no meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct EpilogueArguments {
    /// S, M×N.
    pub source: TensorRef,
    /// Device address of the bias: contiguous elements of the bias type, the same for each
    /// matrix of a batch.
    pub bias: u64,
    /// Device address of r: M contiguous f32, the same for each matrix of a batch.
    pub row_scale: u64,
    /// Device address of c: N contiguous f32, the same for each matrix of a batch.
    pub col_scale: u64,
    /// Column of B of gate j + 1, less that of gate j: 1 or 2.
    pub gate_stride: u32,
    /// Column of B of up j, less that of gate j: N/2 or 1.
    pub up_offset: u32,
    /// α.
    pub alpha: f32,
    /// β.
    pub beta: f32,
    /// The slope of [`Activation::LeakyRelu`] for negative values.
    pub slope: f32,
}

impl EpilogueArguments {
    /// The arguments of a plain product.
    pub const NONE: EpilogueArguments = EpilogueArguments {
        source: TensorRef::NONE,
        bias: 0,
        row_scale: 0,
        col_scale: 0,
        gate_stride: 1,
        up_offset: 0,
        alpha: 1.0,
        beta: 0.0,
        slope: 0.0,
    };
}
