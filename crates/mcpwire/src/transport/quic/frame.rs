//! Frames of the Orchestra protocol: a big-endian u32 length and that many bytes of Protobuf, at most 16 MiB, each way.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use quinn::{ReadError, ReadExactError, RecvStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The longest frame that either side takes.
pub const LONGEST: usize = 16 * 1024 * 1024;
/// How long a frame may take from its first byte to its last.
const WHOLE_WITHIN: Duration = Duration::from_secs(60);
const HEADER: usize = 4;
/// Memory for frames is counted in pieces of this size.
const PIECE: usize = 1024;

/// Why no message could be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error("the stream ended without a frame")]
    Nothing,
    #[error("the stream ended in the middle of a frame")]
    Truncated,
    #[error("expected a frame of at most {LONGEST} bytes, came one of {0}")]
    TooLong(usize),
    #[error("expected a Protobuf message: {0}")]
    Garbage(#[from] prost::DecodeError),
    #[error("the frame did not come whole within {WHOLE_WITHIN:?}")]
    Slow,
    #[error("{0}")]
    Broken(#[from] ReadError),
}

/// How much memory frames that are still arriving may take, all together.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(super) fn new(bytes: usize) -> Budget {
        Budget(Arc::new(Semaphore::new(bytes / PIECE)))
    }

    async fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX);
        // The semaphore is never closed.
        self.0.clone().acquire_many_owned(pieces).await.ok()
    }
}

/// The frame around a message; `None` if it would be too long.
pub(super) fn encode(message: &impl Message) -> Option<Bytes> {
    let length = message.encoded_len();
    if length > LONGEST {
        return None;
    }
    let mut frame = BytesMut::with_capacity(HEADER + length);
    frame.put_u32(u32::try_from(length).ok()?);
    message.encode(&mut frame).ok()?;
    Some(frame.freeze())
}

/// Reads one frame. Its first byte may take as long as it likes, the others may not.
pub(super) async fn read<M: Message + Default>(stream: &mut RecvStream, budget: &Budget) -> Result<M, Unread> {
    let mut first = [0; 1];
    stream.read_exact(&mut first).await.map_err(|error| match error {
        ReadExactError::FinishedEarly(_) => Unread::Nothing,
        ReadExactError::ReadError(error) => Unread::Broken(error),
    })?;
    timeout(WHOLE_WITHIN, read_rest(stream, first[0], budget)).await.map_err(|_| Unread::Slow)?
}

async fn read_rest<M: Message + Default>(stream: &mut RecvStream, first: u8, budget: &Budget) -> Result<M, Unread> {
    let mut header = [first, 0, 0, 0];
    stream.read_exact(&mut header[1..]).await.map_err(truncated)?;
    let length = u32::from_be_bytes(header) as usize;
    if length > LONGEST {
        return Err(Unread::TooLong(length));
    }
    // What was announced need not come: memory is taken for what has.
    let mut body = BytesMut::new();
    let mut held = Vec::new();
    while body.len() < length {
        let Some(chunk) = stream.read_chunk(length - body.len(), true).await? else { return Err(Unread::Truncated) };
        held.extend(budget.take(chunk.bytes.len()).await);
        if body.is_empty() && chunk.bytes.len() == length {
            return Ok(M::decode(chunk.bytes)?);
        }
        body.extend_from_slice(&chunk.bytes);
    }
    Ok(M::decode(body.freeze())?)
}

fn truncated(error: ReadExactError) -> Unread {
    match error {
        ReadExactError::FinishedEarly(_) => Unread::Truncated,
        ReadExactError::ReadError(error) => Unread::Broken(error),
    }
}
