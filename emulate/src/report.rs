//! The report of a launch that the program prints, and the trace that it writes.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use gpu_kernels::TileOrder;
use tilewise::emulator::{Counts, Instruction};
use tilewise::l2::{self, Replayed};
use tilewise_benches::text_table::Table;

/// Prints the counts of one launch. `l2_bytes` is the capacity of the modelled L2 that
/// serves its requests.
pub fn print_counts(counts: &Counts, l2_bytes: u64) {
    println!("\n{:>14}  instruction (by thread)", "executed");
    for &instruction in Instruction::ALL {
        let executed = counts.executed(instruction);
        if executed > 0 {
            println!("{executed:>14}  {}", instruction.name());
        }
    }
    let replayed = replayed(counts, l2_bytes);
    println!();
    for (number, what) in [
        (counts.global_read_bytes, "bytes read from global memory"),
        (counts.global_written_bytes, "bytes written to it"),
        (counts.tensor_operations, "tensor-core operations"),
        (counts.shared_accesses, "accesses of warps to shared memory"),
        (counts.bank_conflicts, "cycles more, for bank conflicts"),
        (replayed.requests, "reads of L2: TMA boxes, or lines"),
        (replayed.hits, "of them hits in L2"),
        (replayed.dram_read_bytes, "bytes read from DRAM"),
    ] {
        println!("{number:>14}  {what}");
    }
}

/// Prints the counts of launches of one product in several orders of tiles.
pub fn print_orders(launches: &[(TileOrder, Counts)], l2_bytes: u64) {
    let mut table = Table::new([
        "order",
        "reads of L2",
        "MB",
        "hits",
        "DRAM read MB",
        "C write MB",
        "tensor-core ops",
        "shared accesses",
        "bank conflicts",
    ]);
    let megabytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1e6);
    for (order, counts) in launches {
        let replayed = replayed(counts, l2_bytes);
        table.row([
            order.to_string(),
            replayed.requests.to_string(),
            megabytes(replayed.requested_bytes),
            replayed.hits.to_string(),
            megabytes(replayed.dram_read_bytes),
            megabytes(counts.global_written_bytes),
            counts.tensor_operations.to_string(),
            counts.shared_accesses.to_string(),
            counts.bank_conflicts.to_string(),
        ]);
    }
    println!("\n{}", table.render());
    println!(
        "Reads of L2 are the TMA boxes that the kernel loaded, in the order of time; hits and \
         DRAM\nare from a model of an L2 of {} KiB that serves these reads.",
        l2_bytes >> 10
    );
}

/// The reads of L2, in the order of time, through an L2 of `l2_bytes`.
fn replayed(counts: &Counts, l2_bytes: u64) -> Replayed {
    let reads = counts.requests.iter().filter(|request| !request.writes);
    l2::replay(
        reads.map(|request| (request.address, request.bytes.into())),
        l2_bytes,
    )
}

/// Writes the requests to L2 as CSV: all, or nothing.
pub fn write_trace(path: &Path, counts: &Counts) -> std::io::Result<()> {
    let mut text = Vec::new();
    writeln!(text, "time,cta,access,address,bytes")?;
    for request in &counts.requests {
        let access = if request.writes { "write" } else { "read" };
        let (time, cta, address) = (request.time, request.cta, request.address);
        writeln!(text, "{time},{cta},{access},{address:#x},{}", request.bytes)?;
    }
    let partial = path.with_added_extension("partial");
    let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, path));
    if written.is_err() {
        // A partial file is of no use.
        let _ = fs::remove_file(&partial);
    }
    written?;
    println!("\n{} requests in {}", counts.requests.len(), path.display());
    Ok(())
}
