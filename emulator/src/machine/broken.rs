//! Broken rules, on their way to a report.

use super::{Cluster, shared};
use crate::agent::Role;
use crate::memory::Violation;
use crate::report::{Address, Check};
use crate::shadow::Conflict;

/// A broken rule, before the thread that broke it is known.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) check: Check,
    pub(crate) address: Option<Address>,
    pub(crate) detail: String,
}

impl Broken {
    pub(crate) fn new(check: Check, detail: impl Into<String>) -> Broken {
        Broken {
            check,
            address: None,
            detail: detail.into(),
        }
    }

    pub(super) fn at(self, address: Address) -> Broken {
        Broken {
            address: Some(address),
            ..self
        }
    }
}

impl From<Violation> for Broken {
    fn from(violation: Violation) -> Broken {
        Broken {
            check: violation.check,
            address: Some(Address::Global(violation.address)),
            detail: violation.detail,
        }
    }
}

impl Cluster<'_> {
    /// A conflict in words.
    pub(super) fn broken(&self, cta: u32, conflict: Conflict) -> Broken {
        let address = shared::BASE + conflict.offset;
        let detail = format!("conflicts with {}", self.agent_name(conflict.other.agent));
        Broken::new(conflict.check, detail).at(self.shared_address(cta, address))
    }

    fn agent_name(&self, agent: u32) -> String {
        let of = |thread: u32| {
            let thread = &self.threads[thread as usize];
            format!(
                "thread {} of CTA {}",
                thread.index,
                self.grid_index(thread.cta)
            )
        };
        match self.agents.role(agent) {
            Role::Thread(thread) => format!("an access of {}", of(thread)),
            Role::Copies(thread) => format!("a cp.async of {}", of(thread)),
            Role::Loads { cta, address } => format!(
                "a TMA load to CTA {} that signals mbarrier {address:#x}",
                self.grid_index(cta)
            ),
            Role::Stores(thread) | Role::StoreReads(thread) => {
                format!("a TMA store of {}", of(thread))
            }
            Role::Multiplies(warpgroup) => {
                format!("a wgmma of warpgroup {warpgroup} of the cluster")
            }
        }
    }
}
