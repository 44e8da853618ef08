//! [`Wire`]: the connections between members, by which they plan and learn of failures.
//!
//! Every member has a connection to rank 0, which passes on what concerns the others. No data of
//! matrices goes this way, and no run waits for it.

mod inbox;
mod message;
mod rendezvous;

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::rank_error::RankError;
use inbox::Inbox;
pub(crate) use message::Hello;
use message::{Message, receive, send};
use rendezvous::{GRACE, Peer};

/// How long a member that leaves waits for the others to have read that it does.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where rank 0 is found.
pub(crate) enum Meeting {
    /// This is rank 0, and listens here.
    Listener(TcpListener),
    /// Rank 0 listens at one of these.
    Addresses(Vec<SocketAddr>),
}

/// The connections of one member.
#[derive(Debug)]
pub(crate) struct Wire {
    shared: Arc<Shared>,
    readers: Vec<JoinHandle<()>>,
    /// The number of the next exchange, which one thread at a time may begin.
    next_round: Mutex<u64>,
}

/// What the threads of a wire share.
#[derive(Debug)]
struct Shared {
    rank: usize,
    ranks: usize,
    inbox: Inbox,
    /// Whether this member says good-bye, so that connections end without a failure.
    is_leaving: AtomicBool,
    /// The neighbours: all ranks but 0 on rank 0, and rank 0 on the others.
    peers: Vec<(usize, Mutex<TcpStream>)>,
}

impl Wire {
    /// Joins the others, and returns who they are, by rank.
    pub fn join(
        own: Hello,
        meeting: Meeting,
        limit: Duration,
    ) -> Result<(Self, Vec<Hello>), Error> {
        let (rank, ranks) = (own.rank, own.ranks);
        let (peers, members) = match meeting {
            Meeting::Listener(listener) => rendezvous::host(own, &listener, limit)?,
            Meeting::Addresses(addresses) => {
                let (peer, members) = rendezvous::connect(own, &addresses, limit)?;
                (vec![peer], members)
            }
        };
        let starting = |error: io::Error| Error::system("reading from a rank", &error);
        let reading = |(rank, stream): &Peer| {
            stream.set_read_timeout(None)?;
            Ok((*rank, stream.try_clone()?))
        };
        let reading: io::Result<Vec<Peer>> = peers.iter().map(reading).collect();
        let reading = reading.map_err(starting)?;
        let lock = |(rank, stream)| (rank, Mutex::new(stream));
        let shared = Arc::new(Shared {
            rank,
            ranks,
            inbox: Inbox::new(),
            is_leaving: AtomicBool::new(false),
            peers: peers.into_iter().map(lock).collect(),
        });
        let mut wire = Wire {
            shared: Arc::clone(&shared),
            readers: Vec::new(),
            next_round: Mutex::new(0),
        };
        for (peer, stream) in reading {
            let shared = Arc::clone(&shared);
            let reader = thread::Builder::new()
                .name(format!("rank {peer}"))
                .spawn(move || shared.read(peer, stream))
                .map_err(starting)?;
            wire.readers.push(reader);
        }
        Ok((wire, members))
    }

    /// Gives `part` to all ranks, and returns the parts of all. Every rank has to call it, within
    /// `limit` of the first.
    pub fn exchange<T: Serialize + DeserializeOwned>(
        &self,
        part: &T,
        limit: Duration,
    ) -> Result<Vec<T>, RankError> {
        let mut next_round = (self.next_round.lock()).unwrap_or_else(PoisonError::into_inner);
        let round = *next_round;
        *next_round += 1;
        let shared = &self.shared;
        let garbled = |why: serde_json::Error| {
            let (rank, why) = (shared.rank, why.to_string());
            let error = RankError::Failed { rank, why };
            shared.fail(&error);
            error
        };
        let part = serde_json::to_value(part).map_err(garbled)?;
        let parts = match shared.rank {
            0 => shared.collect(round, part, limit)?,
            _ => shared.contribute(round, part, limit)?,
        };
        let parts: Result<_, _> = parts.into_iter().map(serde_json::from_value).collect();
        parts.map_err(garbled)
    }

    /// Ends the group: all members learn of `error`, unless there was another one before.
    pub fn fail(&self, error: &RankError) {
        self.shared.fail(error);
    }

    /// The failure that ended the group, if one has.
    pub fn failure(&self) -> Option<RankError> {
        self.shared.inbox.failure()
    }

    /// The failure that ends the group, if it comes within `limit`.
    pub fn failure_within(&self, limit: Duration) -> Option<RankError> {
        let nothing = self
            .shared
            .inbox
            .wait(Instant::now() + limit, |_| None::<()>);
        nothing.err()
    }

    /// The ranks that have left, each after its last run, in that order.
    pub fn departed(&self) -> Vec<usize> {
        self.shared.inbox.change(|state| state.departed.clone())
    }
}

impl Drop for Wire {
    /// Says good-bye, so that the others do not take the end of the connection for a failure.
    fn drop(&mut self) {
        let rank = self.shared.rank;
        self.shared.is_leaving.store(true, Ordering::Release);
        self.shared.tell(None, &Message::Leaves { rank });
        for (_, stream) in &self.shared.peers {
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = stream.shutdown(Shutdown::Write);
        }
        // A connection that is closed with something unread may take the good-bye with it.
        let deadline = Instant::now() + FAREWELL;
        let is_reading = |readers: &[JoinHandle<()>]| readers.iter().any(|r| !r.is_finished());
        while is_reading(&self.readers) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        for (_, stream) in &self.shared.peers {
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = stream.shutdown(Shutdown::Both);
        }
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

impl Shared {
    /// Waits for the parts of all ranks, on rank 0, and gives them to all.
    fn collect(
        &self,
        round: u64,
        part: serde_json::Value,
        limit: Duration,
    ) -> Result<Vec<serde_json::Value>, RankError> {
        let ranks = self.ranks;
        let first_missing =
            |parts: &[Option<serde_json::Value>]| parts.iter().position(Option::is_none);
        self.inbox.change(|state| {
            let parts = state
                .parts
                .entry(round)
                .or_insert_with(|| vec![None; ranks]);
            parts[0] = Some(part);
        });
        let collected = self.inbox.wait(Instant::now() + limit, |state| {
            let parts = state.parts.get(&round)?;
            match first_missing(parts) {
                None => {
                    let parts = state.parts.remove(&round)?;
                    Some(Ok(parts.into_iter().flatten().collect::<Vec<_>>()))
                }
                Some(rank) if state.has_left(rank) => Some(Err(left(rank))),
                Some(_) => None,
            }
        })?;
        let Some(parts) = collected else {
            let missing = self.inbox.change(|state| {
                let parts = state.parts.get(&round);
                parts.and_then(|parts| first_missing(parts)).unwrap_or(0)
            });
            return Err(self.late(missing, limit));
        };
        let message = Message::Parts { round, parts };
        self.tell(None, &message);
        match message {
            Message::Parts { parts, .. } => parts,
            _ => Ok(Vec::new()),
        }
    }

    /// Gives the own part to rank 0, and waits for those of all.
    fn contribute(
        &self,
        round: u64,
        part: serde_json::Value,
        limit: Duration,
    ) -> Result<Vec<serde_json::Value>, RankError> {
        self.tell(None, &Message::Part { round, part });
        let deadline = Instant::now() + limit + GRACE;
        let parts = self.inbox.wait(deadline, |state| {
            let parts = state.rounds.remove(&round);
            parts.or_else(|| state.has_left(0).then(|| Err(left(0))))
        })?;
        match parts {
            Some(parts) => parts,
            None => Err(self.late(0, limit)),
        }
    }

    /// Ends the group because a rank did not take part in time.
    fn late(&self, rank: usize, limit: Duration) -> RankError {
        let what = "plan".into();
        let error = RankError::Late { rank, what, limit };
        self.fail(&error);
        error
    }

    fn fail(&self, error: &RankError) {
        if self.inbox.fail(error.clone()) {
            self.tell(None, &Message::Failed(error.clone()));
        }
    }

    /// Sends a message to all neighbours but `except`. One that cannot be reached is lost, which
    /// its reader sees.
    fn tell(&self, except: Option<usize>, message: &Message) {
        for (rank, stream) in &self.peers {
            if Some(*rank) != except {
                let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = send(&mut stream, message);
            }
        }
    }

    /// Reads what `peer` sends, until the connection ends.
    fn read(&self, peer: usize, mut stream: TcpStream) {
        let mut has_left = false;
        loop {
            match receive(&mut stream) {
                Ok(Message::Failed(error)) => {
                    if self.inbox.fail(error.clone()) && self.rank == 0 {
                        self.tell(Some(peer), &Message::Failed(error));
                    }
                }
                Ok(Message::Leaves { rank }) if rank < self.ranks => {
                    self.inbox.change(|state| state.departed.push(rank));
                    if rank == peer {
                        has_left = true;
                        if self.rank == 0 {
                            self.tell(Some(peer), &Message::Leaves { rank });
                        }
                        // The other end waits for this.
                        let _ = stream.shutdown(Shutdown::Write);
                    }
                }
                Ok(Message::Part { round, part }) => self.inbox.change(|state| {
                    let parts = state.parts.entry(round);
                    let parts = parts.or_insert_with(|| vec![None; self.ranks]);
                    parts[peer] = Some(part);
                }),
                Ok(Message::Parts { round, parts }) => {
                    self.inbox.change(|state| state.rounds.insert(round, parts));
                }
                Ok(_) => {}
                Err(error) => {
                    if !has_left && !self.is_leaving.load(Ordering::Acquire) {
                        let (rank, why) = (peer, ended(&error));
                        self.fail(&RankError::Lost { rank, why });
                    }
                    return;
                }
            }
        }
    }
}

/// Why a connection has ended.
fn ended(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "its process has ended, or has closed the connection".into()
        }
        _ => error.to_string(),
    }
}

/// A rank that is needed has left.
fn left(rank: usize) -> RankError {
    let why = "it has left the group".into();
    RankError::Lost { rank, why }
}
