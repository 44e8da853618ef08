//! [`Member`]: one rank of a group whose ranks are processes.

mod control;
mod create;
mod describe;
mod gpu;
mod host;
mod nccl;
mod order;
mod places;
mod plan;
mod segment;
mod shared;
mod task;
mod watch;

use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tilewise::{AsView, AsViewMut, Device, Element, MatrixView, MatrixViewMut, Output};

use crate::cuda::Rank;
use crate::error::Error;
use crate::operands;
use crate::options::Options;
use crate::program::Operation;
use crate::rank_error::RankError;
use crate::wire::{Hello, Meeting, Wire};
use order::Order;
pub use plan::MemberPlan;
use segment::Segment;
use shared::{Shared, agree};
use watch::Watch;

/// One rank of a group whose ranks are processes, one a GPU; or on the CPU, for tests, also threads
/// of one process.
///
/// All ranks join at one address, where rank 0 listens. Then all make the same calls in the same
/// order: each plans the same operations, with its own matrices alone, and runs the plans. Results
/// have the bits of [`Group`](crate::Group).
///
/// Ranks on one host exchange rows by copies between GPUs, and by NCCL if
/// [`Options::engine`] says [`Engine::Nccl`](crate::Engine::Nccl). Ranks on several hosts exchange
/// them by NCCL; there, [`Engine::Auto`](crate::Engine::Auto) takes it, and
/// [`Engine::Peer`](crate::Engine::Peer) is refused.
///
/// What a rank does otherwise than the others is refused when they plan, on all ranks, with the
/// argument, the rank and both values ([`RankError::Disagreement`], [`Error::Operand`]). A process
/// that ends is seen by the others as soon as the system closes its connection; a rank that does
/// not come, after the time limit that was given to [`Member::join`]. Then the runs under way end on
/// all ranks, and calls return [`Error::Rank`].
///
/// Whoever can connect to the address can take part; so it belongs into a network that is trusted.
///
/// ```
/// use std::net::TcpListener;
/// use std::thread;
/// use std::time::Duration;
///
/// use tilewise::Device;
/// use tilewise_parallel::{Error, Member, Options};
///
/// fn rank(member: Member, rows: [f32; 2], column: [f32; 2]) -> Result<Vec<f32>, Error> {
///     let device = member.device();
///     let a = device.from_slice(&rows, 1, 2)?;
///     let b = device.from_slice(&column, 2, 1)?;
///     let mut c = device.zeros::<f32>(2, 1)?;
///     let mut plan = member.all_gather_matmul(&Options::new(), &a, &b, &mut c)?;
///     plan.run(&a, &b, &mut c)?;
///     plan.finish()?;
///     Ok(c.to_vec()?)
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Two threads here; processes on machines with GPUs.
/// let limit = Duration::from_secs(30);
/// let listener = TcpListener::bind("127.0.0.1:0")?;
/// let address = listener.local_addr()?;
/// let other = thread::spawn(move || {
///     let member = Member::join(&Device::cpu(), 1, 2, address, limit)?;
///     rank(member, [3.0, 4.0], [1.0, 1.0])
/// });
/// let member = Member::listen(&Device::cpu(), 2, listener, limit)?;
/// assert_eq!(rank(member, [1.0, 2.0], [1.0, 0.0])?, [1.0, 3.0]);
/// assert_eq!(other.join().expect("no panic")?, [3.0, 7.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Member(Arc<Shared>);

impl Member {
    /// Joins as `rank` of `ranks`, each with a device of the same kind. Rank 0 listens at `address`,
    /// and the others connect to it. `limit` is how long ranks wait for each other: here, when they
    /// plan, and for progress of a run. A run under way counts the work that was enqueued before it.
    ///
    /// # Errors
    /// [`RankError::Missing`] after `limit`; [`RankError::Disagreement`] on the version of this
    /// crate, the number of ranks, a rank that is there twice, the kind of device, or the host;
    /// [`Error::NoRanks`], [`Error::NoSuchRank`], [`Error::System`] and [`Error::Driver`].
    pub fn join(
        device: &Device,
        rank: usize,
        ranks: usize,
        address: impl ToSocketAddrs,
        limit: Duration,
    ) -> Result<Self, Error> {
        let failed = |what: &'static str| move |error: io::Error| Error::system(what, &error);
        let meeting = match rank {
            0 => Meeting::Listener(TcpListener::bind(address).map_err(failed("listening"))?),
            _ => {
                let addresses = address.to_socket_addrs();
                let addresses = addresses.map_err(failed("finding the address of rank 0"))?;
                Meeting::Addresses(addresses.collect())
            }
        };
        Member::meet(device, rank, ranks, meeting, limit)
    }

    /// Joins as rank 0 of `ranks`, which connect to `listener`: where the system chooses the port.
    ///
    /// # Errors
    /// Those of [`Member::join`].
    pub fn listen(
        device: &Device,
        ranks: usize,
        listener: TcpListener,
        limit: Duration,
    ) -> Result<Self, Error> {
        Member::meet(device, 0, ranks, Meeting::Listener(listener), limit)
    }

    fn meet(
        device: &Device,
        rank: usize,
        ranks: usize,
        meeting: Meeting,
        limit: Duration,
    ) -> Result<Self, Error> {
        if ranks == 0 {
            return Err(Error::NoRanks);
        }
        if rank >= ranks {
            return Err(Error::NoSuchRank { rank, ranks });
        }
        let is_gpu = device.stream().is_some();
        let own = Hello {
            version: env!("CARGO_PKG_VERSION").into(),
            rank,
            ranks,
            host: host(),
            process: process(),
            kind: match is_gpu {
                true => "a GPU of the driver".into(),
                false => "no GPU of the driver".into(),
            },
        };
        let (wire, members) = Wire::join(own, meeting, limit)?;
        let wire = Arc::new(wire);
        let elsewhere = elsewhere(&members);
        check(&members, is_gpu, elsewhere.as_ref())?;
        let order = match elsewhere {
            None => Some(order(&wire, rank, ranks, limit)?),
            Some(_) => None,
        };
        let gpu = match is_gpu {
            true => Some((
                Arc::new(Rank::new(device)?),
                Watch::new(&wire, rank, limit)?,
            )),
            false => None,
        };
        Ok(Member(Arc::new(Shared {
            device: device.clone(),
            rank,
            ranks,
            limit,
            gpu,
            planning: Mutex::new(()),
            plans: AtomicU32::new(0),
            order,
            elsewhere,
            graves: Mutex::default(),
            closing: Arc::default(),
            runs: Mutex::new(0),
            wire,
        })))
    }

    /// The device of this rank.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// The number of this rank.
    pub fn rank(&self) -> usize {
        self.0.rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.0.ranks
    }

    /// The failure that has ended the group, if one has. All later calls return it.
    pub fn failure(&self) -> Option<RankError> {
        self.0.wire.failure()
    }

    /// C = A·B with A split along M and B along N: `a` is this rank's rows of A, Mᵣ×K; `b` its
    /// columns of B, K×Nᵣ; `c` becomes M×Nᵣ, all rows of these columns. (A column-parallel layer:
    /// all-gather, then GEMM.)
    ///
    /// # Errors
    /// [`Error::Operand`] for operands of any rank that do not fit, [`Error::Capturing`],
    /// [`Error::Rank`], and errors of the library and the driver. No rank has a plan then, and all may plan again, unless
    /// [`Member::failure`] says that the group is over: a rank is lost or late, or NCCL could not
    /// connect the ranks.
    pub fn all_gather_matmul<T: Element, O: Output<T>>(
        &self,
        options: &Options,
        a: impl AsView<T>,
        b: impl AsView<T>,
        c: impl AsViewMut<O>,
    ) -> Result<MemberPlan<T, O>, Error> {
        self.plan(Operation::AllGather, options, a, b, c)
    }

    /// C = Σ Aᵣ·Bᵣ, with the sum over the ranks and its rows split among them: `a` is M×Kᵣ, `b`
    /// Kᵣ×N, and `c` becomes the Mᵣ×N rows of C that belong to this rank. (A row-parallel layer:
    /// GEMM, then reduce-scatter.)
    ///
    /// # Errors
    /// Those of [`Member::all_gather_matmul`].
    pub fn matmul_reduce_scatter<T: Element, O: Output<T>>(
        &self,
        options: &Options,
        a: impl AsView<T>,
        b: impl AsView<T>,
        c: impl AsViewMut<O>,
    ) -> Result<MemberPlan<T, O>, Error> {
        self.plan(Operation::ReduceScatter, options, a, b, c)
    }

    /// C = Σ Aᵣ·Bᵣ as in [`Member::matmul_reduce_scatter`], but the `c` of every rank becomes all
    /// M×N of C. (GEMM, then all-reduce.)
    ///
    /// # Errors
    /// Those of [`Member::all_gather_matmul`].
    pub fn matmul_all_reduce<T: Element, O: Output<T>>(
        &self,
        options: &Options,
        a: impl AsView<T>,
        b: impl AsView<T>,
        c: impl AsViewMut<O>,
    ) -> Result<MemberPlan<T, O>, Error> {
        self.plan(Operation::AllReduce, options, a, b, c)
    }

    /// The operation of this name: for programs that choose it when they run.
    ///
    /// # Errors
    /// Those of [`Member::all_gather_matmul`].
    pub fn plan<T: Element, O: Output<T>>(
        &self,
        operation: Operation,
        options: &Options,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
    ) -> Result<MemberPlan<T, O>, Error> {
        let planning = self.0.planning.lock();
        let _planning = planning.unwrap_or_else(PoisonError::into_inner);
        let own = self.own_operands(a.as_view(), b.as_view(), &c.as_view_mut());
        let operands = create::describe::<T, O>(&self.0, operation, options, own)?;
        let created = create::create(&self.0, options, &operands)?;
        Ok(MemberPlan::new(&self.0, options, operands, created))
    }

    /// The layouts and alignments of this rank's operands.
    fn own_operands<T: Element, O: Element>(
        &self,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: &MatrixViewMut<O>,
    ) -> Result<([tilewise::Layout; 3], [u64; 3]), Error> {
        let (rank, device) = (self.rank(), self.device());
        let layouts = [
            operands::layout("a", rank, device, (a.layout(), a.device()))?,
            operands::layout("b", rank, device, (b.layout(), b.device()))?,
            operands::layout("c", rank, device, (c.layout(), c.device()))?,
        ];
        self.0.refuse_capture()?;
        let addresses = [a.address(), b.address(), c.address()];
        let alignments = addresses.map(|address| operands::alignment(device, address));
        Ok((layouts, alignments))
    }
}

/// The memory in which all members of a host note their runs.
fn order(wire: &Wire, rank: usize, ranks: usize, limit: Duration) -> Result<Order, Error> {
    let bytes = Order::bytes(ranks);
    let mut own = None;
    let path = match rank {
        0 => Segment::create(bytes).map(|(segment, name)| {
            let path = name.path().to_owned();
            own = Some((segment, name));
            Some(path)
        }),
        _ => Ok(None),
    };
    let path = agree(wire, path, limit)?.into_iter().next().flatten();
    let path = path.ok_or(Error::NoRanks)?;
    let (segment, _name) = match own {
        Some((segment, name)) => (Ok(segment), Some(name)),
        None => (Segment::open(&path, bytes), None),
    };
    // Behind this, all have opened it, and it needs no name.
    let opened = segment.as_ref().map(drop).map_err(Error::clone);
    agree(wire, opened, limit)?;
    Ok(Order::new(segment?, rank, ranks))
}

/// The host since it was started.
fn host() -> String {
    // Elsewhere than on Linux, ranks on several hosts find no shared memory when they plan.
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// The process: its number, and where numbers of processes are counted.
fn process() -> String {
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} of {}", std::process::id(), namespace.display())
}

/// A rank of another host than rank 0, as an error, if there is one.
fn elsewhere(members: &[Hello]) -> Option<RankError> {
    let is_elsewhere = |member: &Hello| member.host != members[0].host;
    let rank = members.iter().position(is_elsewhere)?;
    let here = members[0].host.trim_end();
    Some(RankError::Disagreement {
        argument: "the host".into(),
        rank,
        found: members[rank].host.trim_end().into(),
        accepted: format!("{here}, as of rank 0; on GPUs also others, with Engine::Nccl"),
    })
}

/// Checks that the members can work together.
fn check(members: &[Hello], is_gpu: bool, elsewhere: Option<&RankError>) -> Result<(), Error> {
    if let (false, Some(elsewhere)) = (is_gpu, elsewhere) {
        return Err(elsewhere.clone().into());
    }
    for (rank, member) in members.iter().enumerate() {
        let is_same =
            |other: &Hello| (&other.host, &other.process) == (&member.host, &member.process);
        if is_gpu && members[..rank].iter().any(is_same) {
            return Err(Error::Rank(RankError::Disagreement {
                argument: "the process".into(),
                rank,
                found: member.process.clone(),
                accepted: "one that has no other rank; a Group has several GPUs".into(),
            }));
        }
    }
    Ok(())
}
