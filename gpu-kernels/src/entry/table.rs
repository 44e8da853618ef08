//! From the rows of the list to [`ENTRIES`](super::ENTRIES) and [`KERNELS`](super::KERNELS).

use crate::cluster::Cluster;
use crate::kernel::KernelInfo;
use crate::kernels::hopper::stream_k::part_bytes;

/// An entry point.
pub(super) struct Row {
    /// The kernel, but for the shape of its clusters where it has several.
    pub(super) compiled: KernelInfo,
    /// The shapes of its clusters, each with the name of the kernel of that shape; none where the
    /// kernel's type has the shape.
    pub(super) shapes: &'static [(&'static str, &'static str)],
}

impl Row {
    /// Kernels with this entry point.
    const fn count(&self) -> usize {
        match self.shapes.len() {
            0 => 1,
            count => count,
        }
    }

    /// Kernel `index`, its cluster checked.
    const fn kernel(&self, index: usize) -> KernelInfo {
        let mut kernel = self.compiled;
        if !self.shapes.is_empty() {
            let (name, shape) = self.shapes[index];
            kernel.name = name;
            kernel.cluster = cluster(shape);
            if kernel.stream_k_bytes > 0 {
                let (m, n) = kernel.cluster_tile();
                kernel.stream_k_bytes = part_bytes(m, n);
            }
        }
        kernel.check_cluster();
        kernel
    }

    /// The entry point, as the first of its kernels.
    const fn entry(&self) -> KernelInfo {
        KernelInfo {
            name: self.compiled.entry,
            ..self.kernel(0)
        }
    }
}

/// The cluster of a shape such as `2x1`: CTAs along M, and along N.
const fn cluster(shape: &str) -> Cluster {
    let [m, b'x', n] = *shape.as_bytes() else {
        panic!("the shape of a cluster is a digit, an x and a digit");
    };
    Cluster {
        m: (m - b'0') as u32,
        n: (n - b'0') as u32,
        k: 1,
    }
}

/// Kernels of all rows.
pub(super) const fn count(table: &[Row]) -> usize {
    let (mut kernels, mut at) = (0, 0);
    while at < table.len() {
        kernels += table[at].count();
        at += 1;
    }
    kernels
}

/// The entry points.
pub(super) const fn entries<const COUNT: usize>(table: &[Row]) -> [KernelInfo; COUNT] {
    let mut entries = [table[0].compiled; COUNT];
    let mut at = 0;
    while at < COUNT {
        entries[at] = table[at].entry();
        at += 1;
    }
    entries
}

/// The kernels, `COUNT` of them.
pub(super) const fn kernels<const COUNT: usize>(table: &[Row]) -> [KernelInfo; COUNT] {
    let mut kernels = [table[0].compiled; COUNT];
    let (mut at, mut kernel) = (0, 0);
    while at < table.len() {
        let mut index = 0;
        while index < table[at].count() {
            kernels[kernel] = table[at].kernel(index);
            (kernel, index) = (kernel + 1, index + 1);
        }
        at += 1;
    }
    kernels
}
