//! The copy engine: the boxes that threads have started to copy, and how they move.

use super::{Broken, Check, Cluster, Status, Wait, poison};
use crate::agent::{Proxy, Role};
use crate::clock::{Epoch, Knowledge};
use crate::instruction::Instruction;
use crate::memory::Reads;
use crate::report::{Address, Report};
use crate::semantics::convert::tf32_by_tma;
use crate::semantics::format::Format;
use crate::semantics::tensor_map::{self, Direction, TensorMap};
use crate::shadow::Access;

/// Bytes of a chunk of a box.
const CHUNK: u32 = 16;

/// A copy that a thread has started and the copy engine has yet to perform.
#[derive(Debug)]
pub(super) struct BoxCopy {
    /// The thread that started it.
    thread: u32,
    /// The thread's epoch and knowledge at the start of the copy.
    issuer: Epoch,
    knowledge: Knowledge,
    map: TensorMap,
    /// CTA and shared address of the box.
    place: (u32, u32),
    /// Coordinates in the tensor.
    at: (i32, i32),
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// To shared memory; signals the mbarrier at `barrier` of the same CTA.
    Load { barrier: u32, epoch: Epoch },
    /// To global memory, in a bulk group of the thread.
    Store { group: u32 },
}

/// A thread's bulk groups, counted from 1.
#[derive(Debug, Default)]
pub(super) struct BulkGroups {
    /// Groups that are closed.
    pub(super) committed: u32,
    /// Copies in the open group.
    pub(super) open: u32,
    /// Groups whose stores the thread knows to have read shared memory.
    pub(super) read: u32,
}

/// The coordinates of a box, contiguous direction first, and its plane if the instruction
/// has three dimensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    at: (i32, i32),
    plane: Option<i32>,
}

impl Start {
    /// The coordinates that are an instruction's arguments.
    pub(super) fn new(x: u64, y: u64, plane: Option<u64>) -> Self {
        Start {
            at: (x as i32, y as i32),
            plane: plane.map(|plane| plane as i32),
        }
    }
}

impl Cluster<'_> {
    pub(super) fn tensor_map(&self, thread: u32, address: u64) -> Result<TensorMap, Broken> {
        let mut halves = [0; tensor_map::BYTES / 2];
        let memory = self.launch.memory;
        memory.load(
            address,
            tensor_map::ALIGNMENT,
            &mut halves,
            self.actor(thread),
            Reads::NonCoherently,
        )?;
        let mut bytes = [0; tensor_map::BYTES];
        for (pair, half) in bytes.chunks_exact_mut(2).zip(halves) {
            pair.copy_from_slice(&half.to_le_bytes());
        }
        TensorMap::decode(&bytes).map_err(|error| {
            Broken::new(Check::InvalidArgument, error.to_string()).at(Address::Global(address))
        })
    }

    /// The tensor map at `address`, or the plane of it.
    fn plane(&self, thread: u32, address: u64, plane: Option<i32>) -> Result<TensorMap, Broken> {
        let map = self.tensor_map(thread, address)?;
        map.plane(plane).map_err(|error| {
            Broken::new(Check::InvalidArgument, error.to_string()).at(Address::Global(address))
        })
    }

    pub(super) fn start_loads(
        &mut self,
        thread: u32,
        (shared, map, start, barrier): (u32, u64, Start, u32),
        ctas: u32,
    ) -> Result<(), Broken> {
        self.check_dependency(thread)?;
        let map = self.plane(thread, map, start.plane)?;
        let at = start.at;
        check_start(&map, at, Direction::Load)?;
        let own = self.threads[thread as usize].cta;
        if self.launch.options.trace {
            self.request_box(own, &map, at, false);
        }
        for cta in (0..32).filter(|cta| ctas >> cta & 1 != 0) {
            if cta as usize >= self.ctas.len() || self.ctas[cta as usize].alive == 0 {
                let detail = format!("a load to rank {cta}, which has ended or does not exist");
                return Err(Broken::new(Check::PeerGone, detail));
            }
            let place = (cta, shared);
            self.locate(place, map.shared_bytes(), tensor_map::SHARED_ALIGNMENT)?;
            let epoch = self.expect_load(thread, (cta, barrier))?;
            self.start_copy(thread, map, place, at, Kind::Load { barrier, epoch });
        }
        Ok(())
    }

    pub(super) fn start_store(
        &mut self,
        thread: u32,
        map: u64,
        shared: u32,
        Start { at, plane }: Start,
    ) -> Result<(), Broken> {
        self.check_dependency(thread)?;
        let map = self.plane(thread, map, plane)?;
        check_start(&map, at, Direction::Store)?;
        let cta = self.threads[thread as usize].cta;
        let place = (cta, shared);
        self.locate(place, map.shared_bytes(), tensor_map::SHARED_ALIGNMENT)?;
        let groups = &mut self.threads[thread as usize].stores;
        groups.open += 1;
        let kind = Kind::Store {
            group: groups.committed + 1,
        };
        self.start_copy(thread, map, place, at, kind);
        Ok(())
    }

    fn start_copy(
        &mut self,
        thread: u32,
        map: TensorMap,
        place: (u32, u32),
        at: (i32, i32),
        kind: Kind,
    ) {
        let (knowledge, issuer) = self.start(thread);
        self.copies.push(BoxCopy {
            thread,
            issuer,
            knowledge,
            map,
            place,
            at,
            kind,
        });
    }

    /// The copy engine performs `copy`.
    pub(super) fn perform(&mut self, copy: BoxCopy) -> Result<(), Report> {
        let result = match copy.kind {
            Kind::Load { barrier, epoch } => self.perform_load(&copy, barrier, epoch),
            Kind::Store { group } => self.perform_store(&copy, group),
        };
        result.map_err(|broken| {
            let instruction = match copy.kind {
                Kind::Load { .. } => Instruction::TensorLoad,
                Kind::Store { .. } => Instruction::TensorStore,
            };
            Report {
                instruction: Some(instruction),
                ..self.report(Some(copy.thread), broken)
            }
        })
    }

    fn perform_load(&mut self, copy: &BoxCopy, barrier: u32, epoch: Epoch) -> Result<(), Broken> {
        let access = Access {
            epoch,
            knowledge: &copy.knowledge,
            issuer: Some(copy.issuer),
            proxy: Proxy::Async,
        };
        let (cta, shared) = copy.place;
        if self.ctas[cta as usize].alive == 0 {
            let detail = "the CTA has ended, and its shared memory with it";
            let address = self.shared_address(cta, shared);
            return Err(Broken::new(Check::PeerGone, detail).at(address));
        }
        let memory = self.launch.memory;
        for chunk in chunks(copy, Direction::Load)? {
            let mut halves = [0; CHUNK as usize / 2];
            let inside = chunk.first as usize / 2..chunk.end as usize / 2;
            if !inside.is_empty() {
                self.counts.global_read_bytes += 2 * inside.len() as u64;
                let actor = self.engine_actor(epoch, &copy.knowledge);
                memory.load(chunk.global, 2, &mut halves[inside], actor, Reads::ByTma)?;
            }
            let mut bytes = halves.map(u16::to_le_bytes);
            if copy.map.dtype == Format::Tf32 {
                round_to_tf32(bytes.as_flattened_mut());
            }
            let offset = self.locate((cta, chunk.shared), CHUNK, CHUNK)?;
            self.engine_write(cta, offset, bytes.as_flattened(), access)?;
        }
        self.land((cta, barrier), epoch, copy.map.box_bytes())
    }

    fn perform_store(&mut self, copy: &BoxCopy, group: u32) -> Result<(), Broken> {
        let reads = Epoch {
            agent: self.agents.number(Role::StoreReads(copy.thread)),
            clock: group,
        };
        let writes = Epoch {
            agent: self.agents.number(Role::Stores(copy.thread)),
            clock: group,
        };
        let access = Access {
            epoch: reads,
            knowledge: &copy.knowledge,
            issuer: Some(copy.issuer),
            proxy: Proxy::Async,
        };
        let (cta, _) = copy.place;
        let memory = self.launch.memory;
        if self.launch.options.trace {
            self.request_box(cta, &copy.map, copy.at, true);
        }
        for chunk in chunks(copy, Direction::Store)? {
            if chunk.first == chunk.end {
                continue;
            }
            let offset = self.locate((cta, chunk.shared), CHUNK, CHUNK)?;
            self.engine_reads(cta, offset, access)?;
            let Some(bytes) = self.engine_data(cta, offset) else {
                let address = self.shared_address(cta, chunk.shared);
                return Err(Broken::new(Check::Uninitialized, "nothing wrote it").at(address));
            };
            let bytes = &bytes[chunk.first as usize..chunk.end as usize];
            let mut halves = [0; CHUNK as usize / 2];
            for (half, pair) in halves.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *half = u16::from_le_bytes(*pair);
            }
            self.counts.global_written_bytes += bytes.len() as u64;
            let actor = self.engine_actor(writes, &copy.knowledge);
            memory.store(chunk.global, 2, &halves[..bytes.len() / 2], actor)?;
        }
        if let Status::Waiting(Wait::Stores(_)) = self.threads[copy.thread as usize].status {
            self.wake_one(copy.thread);
        }
        Ok(())
    }

    /// Whether stores of groups up to `upto` of a thread are still to be performed.
    pub(super) fn stores_upto(&self, thread: u32, upto: u32) -> bool {
        self.copies.iter().any(|copy| match copy.kind {
            Kind::Store { group } => copy.thread == thread && group <= upto,
            Kind::Load { .. } => false,
        })
    }

    /// Lets `thread` know of epoch `clock` of another agent.
    pub(super) fn learn_of(&mut self, thread: u32, role: Role, clock: u32) {
        let agent = self.agents.number(role);
        self.learn(thread, Epoch { agent, clock });
    }

    /// Called when a thread ends: its stores must have read shared memory, which may be gone
    /// afterwards.
    pub(super) fn end_stores(&self, thread: u32) -> Result<(), Broken> {
        let groups = &self.threads[thread as usize].stores;
        if groups.open == 0 && groups.read == groups.committed {
            return Ok(());
        }
        let detail = "the thread ends, and has not waited for its TMA stores to read shared memory";
        Err(Broken::new(Check::PeerGone, detail))
    }

    /// Records a request to L2 for the part of a box that is inside the tensor.
    fn request_box(&mut self, cta: u32, map: &TensorMap, (x, y): (i32, i32), writes: bool) {
        let inside = |at: i32, size: u32, dim: u64| {
            let (start, end) = (i64::from(at).max(0), i64::from(at) + i64::from(size));
            (start, end.min(dim as i64).saturating_sub(start).max(0))
        };
        let (column, width) = inside(x, map.box_dims[0], map.dims[0]);
        let (line, height) = inside(y, map.box_dims[1], map.dims[1]);
        let element = map.dtype.bytes();
        let bytes = width * height * i64::from(element);
        if bytes > 0 {
            let start = line as u64 * map.pitch_bytes + column as u64 * u64::from(element);
            self.request(cta, map.address + start, bytes as u32, writes);
        }
    }
}

/// Rounds each f32 of a chunk.
fn round_to_tf32(chunk: &mut [u8]) {
    for word in chunk.as_chunks_mut::<4>().0 {
        let value = f32::from_bits(u32::from_le_bytes(*word));
        *word = poison::keep(value, tf32_by_tma).to_le_bytes();
    }
}

/// Whether the hardware accepts a box that starts `at` this element. If it does not, the
/// grid ends with an illegal instruction, and so does the context; the PTX ISA does not
/// mention it. Measured on an H200 (`docs/emulator.md`, "What it showed"): every box must
/// start at a multiple of 16 bytes; a load may start before the tensor, but a store may
/// not, in either coordinate. The first rule is known elsewhere (tilelang issue 2527;
/// Triton's tutorial "TMA in Gluon").
fn check_start(map: &TensorMap, at: (i32, i32), direction: Direction) -> Result<(), Broken> {
    let refuse = |detail: String| Err(Broken::new(Check::InvalidArgument, detail));
    if direction == Direction::Store && (at.0 < 0 || at.1 < 0) {
        return refuse(format!("a store at {at:?}, accepted: not before (0, 0)"));
    }
    let elements = (CHUNK / map.dtype.bytes()) as i32;
    if at.0 % elements != 0 {
        return refuse(format!(
            "a box at {at:?}, accepted: columns that are multiples of {elements}, 16 bytes"
        ));
    }
    Ok(())
}

fn chunks(
    copy: &BoxCopy,
    direction: Direction,
) -> Result<impl Iterator<Item = tensor_map::Chunk>, Broken> {
    let (x, y) = copy.at;
    copy.map
        .chunks(copy.place.1, x, y, direction)
        .map_err(|error| Broken::new(Check::Misaligned, error.to_string()))
}
