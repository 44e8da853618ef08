//! Picks a case for the user's options by the rule of [`tilewise::select`], for an H200
//! with as many SMs as are simulated.

use gpu_kernels::entry::KERNELS;
use gpu_kernels::{Block, DType, Family, GemmParams, Major, OutputType, Schedule, TileOrder};
use tilewise::select::{self, Catalog, Problem, Request, Target};
use tilewise_benches::modelled::selection::H200;

use crate::case::{self, Case};
use crate::operand::Placement;

/// The user's choice of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel<'a> {
    /// The kernel of this name.
    Entry(&'a str),
    /// The rule's choice of a family, for this type.
    Family(Family, DType),
}

/// The user's options; `None` leaves the choice to the rule.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    /// The kernel.
    pub kernel: Kernel<'a>,
    /// A CTA's tile.
    pub block: Option<Block>,
    /// The order of tiles.
    pub order: Option<TileOrder>,
    /// The schedule, which assigns tiles to CTAs.
    pub schedule: Option<Schedule>,
    /// Type of C.
    pub output: OutputType,
    /// Whether A is stored K×M, and B N×K. `None`: as the kernel is made for; A M×K
    /// and B N×K for a family.
    pub stored: Option<(bool, bool)>,
    /// Simulated SMs.
    pub sms: u32,
}

impl Wish<'_> {
    /// The case for `m`×`n`×`k`.
    ///
    /// # Errors
    /// A message that there is no such kernel, or that no kernel can compute this.
    pub fn pick(&self, m: u32, n: u32, k: u32) -> Result<Case, String> {
        let (input, made_for) = match self.kernel {
            Kernel::Entry(name) => {
                let kernel = case::kernel(name).ok_or_else(|| format!("no kernel {name}"))?;
                let along = |major: Option<Major>| major.unwrap_or(Major::K);
                let (a, b) = (along(kernel.a_major), along(kernel.b_major));
                // A kernel that writes C along M computes Cᵀ here, of Bᵀ and Aᵀ.
                let stored = match kernel.c_along_m {
                    true => (b == Major::Mn, a == Major::K),
                    false => (a == Major::Mn, b == Major::K),
                };
                (kernel.input, stored)
            }
            Kernel::Family(_, dtype) => (dtype, (false, true)),
        };
        for (name, extent) in [("M", m), ("N", n), ("K", k)] {
            if u64::from(extent) > GemmParams::MAX_DIM {
                let most = GemmParams::MAX_DIM;
                return Err(format!("{name} is {extent}, accepted: at most {most}"));
            }
        }
        let (a_transposed, b_transposed) = self.stored.unwrap_or(made_for);
        let bytes = input.bytes();
        let placed = |transposed: bool, rows: u32, columns: u32| {
            if transposed {
                Placement::columns(rows, bytes)
            } else {
                Placement::rows(columns, bytes)
            }
        };
        let any = &KERNELS[0];
        let mut case = Case {
            output: self.output,
            a: placed(a_transposed, m, k),
            b: placed(b_transposed, k, n),
            c: Placement::rows(n, bytes),
            resident: self.sms,
            ..Case::new(any, m, n, k)
        };
        let problem = Problem {
            input,
            ..case.problem()
        };
        let target = Target {
            sms: self.sms,
            ..H200.target
        };
        let catalog = Catalog {
            kernels: KERNELS,
            is_built: |_| true,
        };
        let request = Request {
            kernel: match self.kernel {
                Kernel::Entry(name) => Some(name.to_owned()),
                Kernel::Family(..) => None,
            },
            family: match self.kernel {
                Kernel::Entry(_) => None,
                Kernel::Family(family, _) => Some(family),
            },
            block: self.block,
            order: self.order,
            schedule: self.schedule,
            ..Request::default()
        };
        case.choice = select::choose(catalog, &problem, &target, &request)
            .map_err(|error| error.to_string())?;
        Ok(case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WISH: Wish = Wish {
        kernel: Kernel::Family(Family::Hopper, DType::F16),
        block: None,
        order: Some(TileOrder::GroupedM { size: 8 }),
        schedule: None,
        output: OutputType::Input,
        stored: None,
        sms: 8,
    };

    #[test]
    fn a_family_gives_the_rules_kernel() {
        let case = WISH.pick(512, 512, 256).unwrap();
        assert_eq!(case.kernel().family, Family::Hopper);
        assert_eq!(case.choice.order, TileOrder::GroupedM { size: 8 });
        assert_eq!((case.a.col_stride, case.b.row_stride), (1, 1));
    }

    #[test]
    fn an_entry_point_is_taken_or_refused() {
        let named = |name, m, n, k| {
            let wish = Wish {
                kernel: Kernel::Entry(name),
                ..WISH
            };
            wish.pick(m, n, k)
        };
        let case = named("hopper_f16_am_bn_64x64x64_split2", 100, 72, 64).unwrap();
        assert_eq!(case.kernel().name, "hopper_f16_am_bn_64x64x64_split2");
        assert_eq!((case.a.row_stride, case.b.col_stride), (1, 1));
        assert!(
            named("hopper_f64", 1, 1, 1)
                .unwrap_err()
                .contains("hopper_f64")
        );
        // This kernel stores C by TMA only, and rows of 99 elements are not a multiple of
        // 16 bytes.
        let refused = named("hopper_f16_ak_bk_256x192x64", 256, 99, 64);
        assert!(refused.is_err());
    }
}
