//! The agents of a cluster: its threads, and the asynchronous units beside them.

use std::collections::HashMap;

use super::clock::Agent;

/// The kind of an agent. CTAs and threads are numbered within the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    /// A thread.
    Thread(u32),
    /// The `cp.async` of a thread; epochs are its groups.
    Copies(u32),
    /// TMA loads that signal the mbarrier at `address` of CTA `cta`; epochs are
    /// its phases.
    Loads {
        /// CTA.
        cta: u32,
        /// Shared address.
        address: u32,
    },
    /// TMA stores of a thread; epochs are its bulk groups.
    Stores(u32),
    /// The reads of shared memory by the TMA stores of a thread.
    StoreReads(u32),
    /// The multiplies of a warpgroup; epochs are its groups.
    Multiplies(u32),
}

impl Role {
    /// The proxy by which the agent accesses shared memory.
    pub(super) fn proxy(self) -> Proxy {
        match self {
            Role::Thread(_) | Role::Copies(_) => Proxy::Generic,
            _ => Proxy::Async,
        }
    }
}

/// The proxy by which an access reaches memory (PTX ISA, "Proxies").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proxy {
    /// Ordinary loads and stores, `cp.async`, `ldmatrix` and `stmatrix`.
    Generic,
    /// TMA and wgmma.
    Async,
}

/// The agents, numbered in the order in which they first act: threads first.
#[derive(Debug)]
pub(super) struct Agents {
    roles: Vec<Role>,
    numbers: HashMap<Role, Agent>,
}

impl Agents {
    pub(super) fn new(threads: u32) -> Agents {
        Agents {
            roles: (0..threads).map(Role::Thread).collect(),
            numbers: HashMap::new(),
        }
    }

    pub(super) fn role(&self, agent: Agent) -> Role {
        match self.roles.get(agent as usize) {
            Some(role) => *role,
            None => unreachable!("agent {agent} of {}", self.roles.len()),
        }
    }

    /// The number of an asynchronous unit.
    pub(super) fn number(&mut self, role: Role) -> Agent {
        *self.numbers.entry(role).or_insert_with(|| {
            self.roles.push(role);
            self.roles.len() as Agent - 1
        })
    }
}
