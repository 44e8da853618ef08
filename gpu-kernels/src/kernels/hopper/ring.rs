//! Where a role stands in the ring of stages.

use super::Shape;

/// A position in the ring: a stage, and the parity of the round.
#[derive(Clone, Copy)]
pub(super) struct RingPosition {
    pub(super) stage: u32,
    pub(super) parity: u32,
}

impl RingPosition {
    /// The next stage; past the last, the first in the next round.
    #[inline(always)]
    pub(super) fn next<S: Shape>(self) -> Self {
        if self.stage + 1 == S::STAGES {
            RingPosition {
                stage: 0,
                parity: self.parity ^ 1,
            }
        } else {
            RingPosition {
                stage: self.stage + 1,
                parity: self.parity,
            }
        }
    }

    /// The position `steps` further on.
    #[inline(always)]
    pub(super) fn skip<S: Shape>(self, steps: u32) -> Self {
        let stage = self.stage + steps % (2 * S::STAGES);
        let (rounds, stage) = (stage / S::STAGES, stage % S::STAGES);
        RingPosition {
            stage,
            parity: self.parity ^ (rounds & 1),
        }
    }
}
