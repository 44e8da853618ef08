//! Kernels that are taken before one whose estimated time is slightly less.
//!
//! The estimate leaves out how CTAs wait for each other and for L2. Each rule here has a margin: the
//! kernel that it prefers may be estimated to take so much longer. Each was judged on products that were drawn
//! afterwards where it changes the choice (`docs/perf-log.md`, 2026-11-29).

use gpu_kernels::KernelInfo;

use super::choice::Fit;
use super::cost::Cost;

/// A kernel with its cost, and how it can run the problem.
type Costed = (Cost, KernelInfo, Fit);

/// The percentage by which clusters of eight CTAs have to be better than clusters of four of the same
/// tile, in one wave: they share both operands, so each CTA waits for CTAs that wait for others. 26
/// products take 2.4 % less time back to back, and 0.4 % more cold ("Code that is there, and whole rows of
/// tiles").
const OF_EIGHT_MARGIN: u64 = 4;

/// The percentage by which two or four parts of K inside a cluster have to be better than split-K over
/// clusters, for a deep product of several rows and columns of tiles that fills the GPU: CTAs inside share
/// no loads, and those of clusters do. 35 products take 1.8 % less time cold, and 6.1 back to back
/// ("Split-K costs less than it did").
const SPLIT_INSIDE_MARGIN: u64 = 8;

/// The k-blocks from which on a product is deep in that sense. Of 91 products, the 36 with fewer take 3 %
/// longer cold, and 1 back to back.
const DEEP: u32 = 128;

/// A launch of a kernel for a problem.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Rows of C, as the kernel sees it.
    pub(super) m: u32,
    /// Columns of C, as the kernel sees it.
    pub(super) n: u32,
    /// Columns of A.
    pub(super) k: u32,
    /// Tiles of clusters, of all batches.
    pub(super) tiles: u64,
    /// Clusters that run at once.
    pub(super) at_once: u64,
    /// SMs of the GPU.
    pub(super) sms: u64,
}

impl Size {
    fn is_one_wave(self) -> bool {
        self.tiles <= self.at_once
    }

    /// Whether it is one wave, on more than seven tenths of the SMs.
    fn fills_the_gpu(self, kernel: &KernelInfo) -> bool {
        let ctas = self.tiles * u64::from(kernel.cluster.ctas());
        self.is_one_wave() && 10 * ctas > 7 * self.sms
    }

    /// Whether there are several rows and several columns of tiles, and as many as a cluster has CTAs: the
    /// others would have no tile.
    fn has_tiles_for_all_ctas(self, kernel: &KernelInfo) -> bool {
        let (block, cluster) = (kernel.block, kernel.cluster);
        self.m.div_ceil(block.m) >= cluster.m.max(2) && self.n.div_ceil(block.n) >= cluster.n.max(2)
    }

    fn is_deep(self, kernel: &KernelInfo) -> bool {
        self.k.div_ceil(kernel.block.k) >= DEEP
    }
}

/// Puts the kernel that a rule prefers to the first of `sorted` before it, if there is one. `size` is that of
/// the launch of a kernel.
pub(super) fn put_first(sorted: &mut [Costed], size: impl Fn(&KernelInfo, &Fit) -> Size) {
    prefer(sorted, OF_EIGHT_MARGIN, |(eight, fit), (four, _)| {
        let sharing = [eight, four].map(|kernel| kernel.cluster.sharing());
        let tile = |kernel: &KernelInfo| (kernel.block, kernel.c_along_m, kernel.stream_k_bytes);
        sharing == [8, 4]
            && tile(eight) == tile(four)
            && four.stream_k_bytes == 0
            && size(eight, fit).is_one_wave()
    });
    prefer(
        sorted,
        SPLIT_INSIDE_MARGIN,
        |(inside, fit), (over, fit_over)| {
            let size_inside = size(inside, fit);
            matches!(inside.cluster.k, 2..=4)
                && size_inside.is_deep(inside)
                && size_inside.fills_the_gpu(inside)
                && over.leaves_sums
                && over.cluster.sharing() > 1
                && size(over, fit_over).has_tiles_for_all_ctas(over)
        },
    );
}

/// Puts the first kernel that `is_preferred` to the first of `sorted` before it, unless its estimated time is
/// longer by more than `margin` percent.
fn prefer(
    sorted: &mut [Costed],
    margin: u64,
    is_preferred: impl Fn((&KernelInfo, &Fit), (&KernelInfo, &Fit)) -> bool,
) {
    let Some(((cost, first, fit), others)) = sorted.split_first() else {
        return;
    };
    let most = cost.mean.saturating_mul(100 + margin) / 100;
    let mut near = others.iter().take_while(|(cost, ..)| cost.mean <= most);
    let at = near.position(|(_, other, fit_other)| is_preferred((first, fit), (other, fit_other)));
    if let Some(at) = at {
        sorted[..=at + 1].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use gpu_kernels::entry::KERNELS;

    use super::super::choice::Packed;
    use super::*;

    const WITHOUT_PACKING: Fit = Fit {
        transposed: false,
        packed: Packed { a: false, b: false },
        classes: 1,
    };

    /// 28 clusters of four CTAs on 132 SMs.
    const ONE_WAVE: Size = Size {
        m: 800,
        n: 230,
        k: 10_000,
        tiles: 28,
        at_once: 30,
        sms: 132,
    };

    /// The names of these f16 kernels of row-major A and B along K, which are sorted by their costs,
    /// with those that are preferred first.
    fn reordered<'a>(costs: &[(u64, &'a str)], size: Size) -> Vec<&'a str> {
        let mut sorted: Vec<_> = (costs.iter())
            .map(|&(mean, name)| {
                let name = format!("hopper_f16_ak_bk_{name}");
                let kernel = KERNELS.iter().find(|kernel| kernel.name == name).unwrap();
                let cost = Cost {
                    mean,
                    loads: 0,
                    cycles: mean,
                };
                (cost, *kernel, WITHOUT_PACKING)
            })
            .collect();
        put_first(&mut sorted, |_, _| size);
        let name = |kernel: KernelInfo| kernel.name.strip_prefix("hopper_f16_ak_bk_").unwrap();
        sorted
            .into_iter()
            .map(|(_, kernel, _)| name(kernel))
            .collect()
    }

    fn stay(costs: &[(u64, &str)], size: Size) {
        let names: Vec<_> = costs.iter().map(|&(_, name)| name).collect();
        assert_eq!(reordered(costs, size), names);
    }

    #[test]
    fn four_ctas_stand_before_eight_of_their_tile() {
        let (eight, four) = ("128x80x64_cluster2x4", "128x80x64_cluster1x4");
        let other = "128x128x64";
        let costs = [(1000, eight), (1010, other), (1040, four)];
        assert_eq!(reordered(&costs, ONE_WAVE), [four, eight, other]);
        stay(
            &costs,
            Size {
                tiles: 31,
                ..ONE_WAVE
            },
        );
    }

    #[test]
    fn eight_ctas_stay_where_they_are_clearly_better_or_nothing_is_comparable() {
        let (eight, four) = ("128x80x64_cluster2x4", "128x80x64_cluster1x4");
        let wider = "128x128x64_cluster1x4";
        let along_m = "cm_64x96x64_cluster1x4";
        stay(&[(1000, eight), (1041, four)], ONE_WAVE);
        stay(&[(1000, eight), (1001, wider)], ONE_WAVE);
        stay(&[(1000, "64x96x64_cluster2x4"), (1001, along_m)], ONE_WAVE);
        stay(&[(1000, wider), (1001, eight), (1002, four)], ONE_WAVE);
        stay(&[], ONE_WAVE);
    }

    #[test]
    fn split_k_over_clusters_stands_before_a_split_inside_them_where_they_fill_the_gpu() {
        let (inside, over) = ("128x64x64_split4", "128x64x64_splitk_cluster1x4");
        let (other, two) = ("128x80x64_split4", "64x64x64_split2");
        let of_two = Size {
            tiles: 56,
            at_once: 66,
            ..ONE_WAVE
        };
        for (first, size) in [(inside, ONE_WAVE), (two, of_two)] {
            let costs = [(1000, first), (1001, other), (1080, over)];
            assert_eq!(reordered(&costs, size), [over, first, other]);
            for other_size in [
                // Two waves, and less than one.
                Size {
                    tiles: size.at_once + 1,
                    ..size
                },
                Size {
                    tiles: size.tiles / 2,
                    ..size
                },
                Size {
                    k: 127 * 64,
                    ..size
                },
                // One row of tiles, and three columns for clusters of four.
                Size { m: 128, ..size },
                Size { n: 190, ..size },
            ] {
                stay(&costs, other_size);
            }
        }
    }

    #[test]
    fn a_split_inside_clusters_stays_where_it_is_clearly_better_or_has_eight_parts() {
        let (inside, over) = ("128x64x64_split4", "128x64x64_splitk_cluster1x4");
        stay(&[(1000, inside), (1081, over)], ONE_WAVE);
        stay(&[(1000, "64x64x64_split8"), (1001, over)], ONE_WAVE);
        stay(&[(1000, inside), (1001, "128x64x64_streamk")], ONE_WAVE);
        stay(&[(1000, "128x64x64"), (1001, over)], ONE_WAVE);
    }
}
