//! How members find each other: rank 0 listens, the others connect.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::message::{Hello, Message, receive, send};
use crate::error::Error;
use crate::rank_error::RankError;

/// How often rank 0 looks for connections, and the others try to connect.
const RETRY: Duration = Duration::from_millis(10);

/// How long a connection to rank 0 may be silent before it is closed.
const SILENCE: Duration = Duration::from_secs(10);

/// How much longer than rank 0 the others wait, so that its reason reaches them.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// A connection to a rank.
pub(super) type Peer = (usize, TcpStream);

/// Waits for all ranks but 0, as rank 0.
pub(super) fn host(
    own: Hello,
    listener: &TcpListener,
    limit: Duration,
) -> Result<(Vec<Peer>, Vec<Hello>), Error> {
    let deadline = Instant::now() + limit;
    let listening = |error: io::Error| Error::system("listening for ranks", &error);
    listener.set_nonblocking(true).map_err(listening)?;
    let mut peers: Vec<Peer> = Vec::new();
    let mut members = vec![None; own.ranks];
    members[0] = Some(own.clone());
    let (sender, greetings) = mpsc::channel();
    while let Some(missing) = members.iter().position(Option::is_none) {
        if let Ok((stream, _)) = listener.accept() {
            let sender = sender.clone();
            // Whoever connects and is silent holds up nobody.
            thread::spawn(move || {
                if let Ok(greeting) = greet(stream) {
                    // Nobody listens any more once all have joined.
                    let _ = sender.send(greeting);
                }
            });
        } else {
            thread::sleep(RETRY);
        }
        while let Ok((stream, hello)) = greetings.try_recv() {
            let refusal = disagreement(&own, &hello, &members);
            peers.push((hello.rank, stream));
            if let Some(refusal) = refusal {
                return Err(refuse(peers, refusal));
            }
            let rank = hello.rank;
            members[rank] = Some(hello);
        }
        if Instant::now() >= deadline && members[missing].is_none() {
            let rank = missing;
            return Err(refuse(peers, RankError::Missing { rank, limit }));
        }
    }
    let members: Vec<Hello> = members.into_iter().flatten().collect();
    for (rank, stream) in &mut peers {
        let welcome = Message::Welcome {
            members: members.clone(),
        };
        if let Err(error) = send(stream, &welcome) {
            let (rank, why) = (*rank, error.to_string());
            return Err(refuse(peers, RankError::Lost { rank, why }));
        }
    }
    Ok((peers, members))
}

/// Connects to rank 0 at one of `addresses`.
pub(super) fn connect(
    own: Hello,
    addresses: &[SocketAddr],
    limit: Duration,
) -> Result<(Peer, Vec<Hello>), Error> {
    let deadline = Instant::now() + limit;
    let missing = || Error::from(RankError::Missing { rank: 0, limit });
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(missing());
        }
        let attempt = |address| TcpStream::connect_timeout(address, left).ok();
        if let Some(mut stream) = addresses.iter().find_map(attempt) {
            match introduce(&mut stream, &own, limit + GRACE) {
                Ok(Message::Welcome { members }) => return Ok(((0, stream), members)),
                Ok(Message::Failed(error)) => return Err(error.into()),
                Err(error) if is_timeout(&error) => return Err(missing()),
                // This was the listener of a group that is complete, or of another program.
                Ok(_) | Err(_) => {}
            }
        }
        thread::sleep(RETRY);
    }
}

/// Says who wants to join, and returns the answer.
fn introduce(stream: &mut TcpStream, own: &Hello, limit: Duration) -> io::Result<Message> {
    prepare(stream, limit)?;
    send(stream, &Message::Hello(own.clone()))?;
    receive(stream)
}

/// Reads who has connected.
fn greet(mut stream: TcpStream) -> io::Result<(TcpStream, Hello)> {
    stream.set_nonblocking(false)?;
    prepare(&stream, SILENCE)?;
    match receive(&mut stream)? {
        Message::Hello(hello) => Ok((stream, hello)),
        _ => Err(io::Error::other("a message that is no greeting")),
    }
}

fn prepare(stream: &TcpStream, limit: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(SILENCE))
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// Tells all that have connected why there will be no group.
fn refuse(peers: Vec<Peer>, error: RankError) -> Error {
    for (_, mut stream) in peers {
        // A rank that cannot be told sees that the connection is closed.
        let _ = send(&mut stream, &Message::Failed(error.clone()));
    }
    error.into()
}

/// What a rank has otherwise than rank 0, if anything.
fn disagreement(own: &Hello, hello: &Hello, members: &[Option<Hello>]) -> Option<RankError> {
    let differs = |argument: &str, found: &dyn ToString, accepted: &dyn ToString| {
        Some(RankError::Disagreement {
            argument: argument.into(),
            rank: hello.rank,
            found: found.to_string(),
            accepted: accepted.to_string(),
        })
    };
    if hello.version != own.version {
        let version = format!("{}, as rank 0", own.version);
        return differs("the version of tilewise-parallel", &hello.version, &version);
    }
    if hello.ranks != own.ranks {
        let ranks = format!("{}, as on rank 0", own.ranks);
        return differs("the number of ranks", &hello.ranks, &ranks);
    }
    match members.get(hello.rank) {
        Some(None) => {}
        Some(Some(_)) => return differs("the number", &hello.rank, &"one that no other rank has"),
        None => return differs("the number", &hello.rank, &"less than the number of ranks"),
    }
    if hello.kind != own.kind {
        let kind = format!("{}, as on rank 0", own.kind);
        return differs("the device", &hello.kind, &kind);
    }
    None
}
