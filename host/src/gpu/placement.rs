//! Which clusters share a GPC, and the ids that they take for it.
//!
//! A launch with clusters deals them to the GPCs in turn, so that clusters with consecutive indices
//! do not share one. Requests of one GPC for the same line that meet on their way to L2 are made once
//! (`docs/tile-order.md`, "Clusters of one GPC"). So clusters can be renumbered: those of a GPC have
//! consecutive places, and by these the ids of tiles that lie together in the tile order. A launch that finds the GPU busy
//! may be dealt otherwise, which costs time and changes no result.

use std::cmp::Reverse;

use gpu_kernels::{Cluster, ClusterIds};

/// The GPCs of the clusters of a launch, by the cluster's index; none where it is not known.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    of_twos: Vec<usize>,
    of_fours: Vec<usize>,
}

impl Placement {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Placement = Placement {
        of_twos: Vec::new(),
        of_fours: Vec::new(),
    };

    /// The placement that three launches show: the SM of each CTA of clusters of two, of four, and of 16.
    pub(crate) fn of_launches(twos: &[usize], fours: &[usize], sixteens: &[usize]) -> Self {
        if sixteens.is_empty() {
            return Placement::default();
        }
        // An SM that no large cluster has counts as a GPC of its own.
        let gpc = |sm: &usize| match sixteens.iter().position(|other| other == sm) {
            Some(cta) => cta / 16,
            None => sixteens.len() + sm,
        };
        Placement {
            of_twos: twos.iter().step_by(2).map(gpc).collect(),
            of_fours: fours.iter().step_by(4).map(gpc).collect(),
        }
    }

    /// The GPCs of clusters of this shape.
    fn gpcs(&self, cluster: Cluster) -> &[usize] {
        match cluster.ctas() {
            2 => &self.of_twos,
            4 => &self.of_fours,
            _ => &[],
        }
    }

    /// Whether it is known where `clusters` clusters of a launch run at once.
    pub(crate) fn knows(&self, cluster: Cluster, clusters: u32) -> bool {
        clusters as usize <= self.gpcs(cluster).len() && clusters <= ClusterIds::MAX
    }

    /// The ids of the clusters of a launch of `clusters` clusters: `id` of their places, of which those of
    /// a GPC have consecutive ones. If it is not known where they run, the indices.
    ///
    /// GPCs with as many clusters as most of them come first, so that the others, which hold a fraction of
    /// it, do not shift them against the groups of a tile order.
    pub(crate) fn ids(
        &self,
        cluster: Cluster,
        clusters: u32,
        id: impl Fn(u32) -> u32,
    ) -> ClusterIds {
        let mut ids = ClusterIds::INDICES;
        if !self.knows(cluster, clusters) {
            return ids;
        }
        let gpcs = &self.gpcs(cluster)[..clusters as usize];
        let held = |gpc: usize| gpcs.iter().filter(|&&other| other == gpc).count();
        // Each of them is counted once for each of its clusters.
        let of_most = (gpcs.iter().map(|&gpc| held(gpc))).max_by_key(|&count| {
            (
                gpcs.iter().filter(|&&gpc| held(gpc) == count).count(),
                count,
            )
        });
        let mut order: Vec<usize> = (0..gpcs.len()).collect();
        order.sort_by_key(|&index| {
            let count = held(gpcs[index]);
            (Some(count) != of_most, Reverse(count), gpcs[index], index)
        });
        for (place, index) in order.into_iter().enumerate() {
            ids.0[index] = id(place as u32) as u8;
        }
        ids
    }

    /// Clusters that run backwards: to see that no result depends on where they run.
    #[cfg(feature = "emulator")]
    pub(crate) fn reversed() -> Self {
        let backwards = || (0..ClusterIds::MAX as usize).rev().collect();
        Placement {
            of_twos: backwards(),
            of_fours: backwards(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clusters of two on three GPCs with 16 SMs each, one with six, and an SM pair of its own, dealt
    /// in turn as a GPU deals them.
    fn placement() -> Placement {
        let sm = |gpc: usize, pair: usize| [16 * gpc + 2 * pair, 16 * gpc + 2 * pair + 1];
        let turn = |pair| {
            (0..4)
                .filter(move |&gpc| gpc < 3 || pair < 3)
                .map(move |gpc| sm(gpc, pair))
        };
        let pairs = [sm(4, 0)].into_iter().chain((0..8).flat_map(turn));
        let sixteens: Vec<usize> = (0..48).collect();
        let fours: Vec<usize> = (0..48).rev().collect();
        Placement::of_launches(&pairs.flatten().collect::<Vec<_>>(), &fours, &sixteens)
    }

    const TWO: Cluster = Cluster { m: 2, n: 1, k: 1 };
    const FOUR: Cluster = Cluster { m: 1, n: 4, k: 1 };

    /// The ids by place.
    fn ids(cluster: Cluster, clusters: u32) -> ClusterIds {
        placement().ids(cluster, clusters, |place| place)
    }

    #[test]
    fn clusters_of_one_gpc_have_consecutive_ids() {
        let ids = ids(TWO, 28);
        // The first is alone, and the fourth GPC has three that no large cluster joins.
        let expected = [
            27, 0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 4, 12, 20,
        ];
        let alone: Vec<u8> = [0, 4, 8, 12].map(|index| ids.0[index]).to_vec();
        assert!(alone.iter().all(|&id| id >= 24), "{alone:?}");
        for (index, id) in expected.into_iter().enumerate() {
            if ![0, 4, 8, 12].contains(&index) {
                assert_eq!(ids.0[index], id, "{index}");
            }
        }
    }

    #[test]
    fn ids_are_a_permutation() {
        for (cluster, most) in [(TWO, 28), (FOUR, 12)] {
            for clusters in 0..=most {
                let mut ids = ids(cluster, clusters).0[..clusters as usize].to_vec();
                ids.sort_unstable();
                assert!(ids.iter().copied().eq(0..clusters as u8));
            }
            assert!(placement().knows(cluster, most) && !placement().knows(cluster, most + 1));
            assert_eq!(ids(cluster, most + 1), ClusterIds::INDICES);
        }
        let eight = Cluster { m: 8, n: 1, k: 1 };
        assert!(!placement().knows(eight, 1));
    }

    #[test]
    fn fours_have_a_placement_of_their_own() {
        // Dealt backwards: the last three GPCs of 16 SMs, of four clusters each.
        let ids = ids(FOUR, 12).0[..12].to_vec();
        assert_eq!(ids, [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3]);
    }

    #[test]
    fn a_place_is_mapped_to_an_id() {
        let ids = placement().ids(FOUR, 12, |place| 11 - place).0[..12].to_vec();
        assert_eq!(ids, [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8]);
    }

    #[test]
    fn nothing_is_known_of_a_gpu_without_large_clusters() {
        assert!(!Placement::of_launches(&[0, 1], &[], &[]).knows(TWO, 1));
        assert!(!Placement::default().knows(TWO, 1));
    }
}
