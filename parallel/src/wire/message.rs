//! What members send to each other: a length in four bytes, and JSON.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::rank_error::RankError;

/// The longest message that is read. What is longer does not come from a member.
const LONGEST: u32 = 16 << 20;

/// One message.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// To rank 0: who wants to join.
    Hello(Hello),
    /// From rank 0: all have joined.
    Welcome { members: Vec<Hello> },
    /// To rank 0: one rank's part of an exchange.
    Part { round: u64, part: Value },
    /// From rank 0: the parts of all, or why there are none.
    Parts {
        round: u64,
        parts: Result<Vec<Value>, RankError>,
    },
    /// Nothing works any more; while joining, rank 0 refuses.
    Failed(RankError),
    /// A rank has left, with all its work done.
    Leaves { rank: usize },
}

/// Who a member is. All but the version may be missing, so that another version can be named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Hello {
    /// The version of this crate.
    pub version: String,
    pub rank: usize,
    pub ranks: usize,
    /// The host since it was started.
    pub host: String,
    /// The process on that host.
    pub process: String,
    /// The kind of its device.
    pub kind: String,
}

/// Sends a message.
pub(super) fn send(stream: &mut TcpStream, message: &Message) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let length = u32::try_from(text.len()).ok();
    let length = length.filter(|&length| length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("a message is too long"))?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(text);
    stream.write_all(&bytes)
}

/// Receives a message.
pub(super) fn receive(stream: &mut TcpStream) -> io::Result<Message> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LONGEST {
        return Err(io::Error::other("a message is too long"));
    }
    let mut text = vec![0; length as usize];
    stream.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}
