//! Limits of time and memory, checked before a product begins.

use std::time::Duration;

use tilewise::emulator::{EmulatedGpu, Estimate};

/// Why a product is refused. The messages name the options that lift the limits.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum TooMuch {
    /// It would take too long.
    #[error(
        "this would take about {}, the limit is {}; --time-limit SECONDS allows more",
        in_words(*time), in_words(*limit)
    )]
    Time {
        /// The estimated time.
        time: Duration,
        /// The limit.
        limit: Duration,
    },
    /// Its operands and workspaces do not fit.
    #[error(
        "the operands take {} of emulated memory, and {host} of this machine's; the limit is {}; \
         --memory-limit MIB allows more",
        mebibytes(*bytes), mebibytes(*limit), host = mebibytes(*host_bytes)
    )]
    Memory {
        /// Bytes of emulated memory.
        bytes: u64,
        /// Bytes of the host's memory that they take, with the stacks of threads.
        host_bytes: u64,
        /// Bytes that are available.
        limit: u64,
    },
}

/// An error unless `estimate` is within the limits of `gpu`.
///
/// # Errors
/// [`TooMuch`].
pub fn check(estimate: &Estimate, gpu: &EmulatedGpu) -> Result<(), TooMuch> {
    if estimate.time > gpu.time_limit {
        return Err(TooMuch::Time {
            time: estimate.time,
            limit: gpu.time_limit,
        });
    }
    if estimate.device_bytes > gpu.memory_bytes {
        return Err(TooMuch::Memory {
            bytes: estimate.device_bytes,
            host_bytes: estimate.host_bytes,
            limit: gpu.memory_bytes,
        });
    }
    Ok(())
}

/// A time in its natural unit, with two digits or so.
pub fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        _ if seconds < 1.0 => format!("{seconds:.1} s"),
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7200.0 => format!("{:.0} minutes", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.0} hours", seconds / 3600.0),
        _ if seconds < 6.3e7 => format!("{:.0} days", seconds / 86_400.0),
        _ => format!("{:.0} years", seconds / 31_557_600.0),
    }
}

/// Bytes in MiB.
pub fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_their_unit() {
        let texts = [0.04, 3.0, 600.0, 36_000.0, 864_000.0, 6.4e9]
            .map(|seconds| in_words(Duration::from_secs_f64(seconds)));
        let expected = [
            "0.0 s",
            "3 s",
            "10 minutes",
            "10 hours",
            "10 days",
            "203 years",
        ];
        assert_eq!(texts, expected);
    }
}
