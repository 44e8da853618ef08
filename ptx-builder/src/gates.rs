//! The checks that the machine code of every kernel must pass.
//!
//! Each gate stands for a way in which Rust that looks right becomes machine code that
//! hangs or is slow: a warp-aligned instruction that was copied into the arms of a
//! branch, an accumulator array that went to memory, a bounds check that kept its panic,
//! a `wgmma` that was serialised. None of these shows in the sources, and few show in a
//! result, so the gates look for them in the PTX, in the messages of `ptxas` and in the
//! SASS.

use std::fmt;

use gpu_kernels::Family;

use crate::Error;
use crate::convergence;
use crate::divergence::Divergence;
use crate::ptxas::Report;

/// A kernel that did not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A warp-aligned instruction stands in divergent code.
    Divergent(Divergence),
    /// Registers were spilled to local memory.
    Spill {
        /// Bytes stored.
        store_bytes: u32,
        /// Bytes loaded.
        load_bytes: u32,
    },
    /// A thread has a stack frame.
    StackFrame {
        /// Its size.
        bytes: u32,
    },
    /// The PTX declares local memory: an array that did not become registers.
    LocalMemory {
        /// The declaration.
        line: String,
    },
    /// The PTX calls a function: one not inlined, or a panic.
    Call {
        /// The instruction.
        line: String,
    },
    /// A function or a variable stands outside the entry points.
    Leftover {
        /// Its first line.
        line: String,
    },
    /// `ptxas` gave up something that matters (its notes C7500 to C7599:
    /// `wgmma` serialised, `setmaxnreg` ignored).
    Note {
        /// The note.
        text: String,
    },
    /// The SASS reads or writes local memory between its first and its last multiply.
    LocalInMainLoop {
        /// The first such instruction.
        line: String,
    },
    /// The SASS lacks the instruction that the kernel is for.
    NoInstruction {
        /// The instruction.
        mnemonic: &'static str,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Divergent(divergence) => write!(f, "could hang: {divergence}"),
            Violation::Spill {
                store_bytes,
                load_bytes,
            } => write!(f, "spills: {store_bytes} bytes stored, {load_bytes} loaded"),
            Violation::StackFrame { bytes } => write!(f, "stack frame of {bytes} bytes"),
            Violation::LocalMemory { line } => write!(f, "local memory: {line}"),
            Violation::Call { line } => write!(f, "call: {line}"),
            Violation::Leftover { line } => write!(f, "outside the kernel: {line}"),
            Violation::Note { text } => write!(f, "ptxas: {text}"),
            Violation::LocalInMainLoop { line } => {
                write!(f, "local memory in the main loop: {line}")
            }
            Violation::NoInstruction { mnemonic } => write!(f, "no {mnemonic} in the SASS"),
        }
    }
}

/// Checks the PTX of one program.
pub fn check_ptx(ptx: &str) -> Vec<Violation> {
    let lines = ptx.lines().map(str::trim);
    lines
        .filter_map(|line| {
            let text = || line.to_owned();
            // An instruction may follow a predicate: `@%p1 call …`.
            let mut words = line
                .split([' ', '\t'])
                .filter(|word| !word.starts_with('@'));
            let first = words.next().unwrap_or_default();
            match first.split('.').find(|part| !part.is_empty())? {
                "local" => Some(Violation::LocalMemory { line: text() }),
                "call" => Some(Violation::Call { line: text() }),
                _ => None,
            }
        })
        .collect()
}

/// Proves of one program that no warp-aligned instruction stands in divergent code
/// ([`convergence`]).
///
/// # Errors
/// [`Error::Syntax`] where the text is no PTX that this crate reads.
pub fn check_convergence(ptx: &str) -> Result<Vec<Violation>, Error> {
    let divergences = convergence::check(ptx)?.into_iter();
    Ok(divergences.map(Violation::Divergent).collect())
}

/// Refuses all code and data outside the entry points of a module.
pub fn check_leftovers(leftovers: &[String]) -> Vec<Violation> {
    let violation = |line: &String| Violation::Leftover { line: line.clone() };
    leftovers.iter().map(violation).collect()
}

/// Checks the messages of `ptxas`.
pub fn check_report(report: &Report) -> Vec<Violation> {
    let mut violations = Vec::new();
    if report.spill_store_bytes + report.spill_load_bytes > 0 {
        violations.push(Violation::Spill {
            store_bytes: report.spill_store_bytes,
            load_bytes: report.spill_load_bytes,
        });
    }
    if report.stack_bytes > 0 {
        violations.push(Violation::StackFrame {
            bytes: report.stack_bytes,
        });
    }
    let serious = report.notes.iter().filter(|note| note.starts_with("(C75"));
    violations.extend(serious.map(|note| Violation::Note { text: note.clone() }));
    violations
}

/// The SASS instruction a family lives by.
pub fn required_instruction(family: Family) -> Option<&'static str> {
    match family {
        Family::Pack
        | Family::Split
        | Family::Reduce
        | Family::Placement
        | Family::Naive
        | Family::Tiled => None,
        Family::TensorCore => Some("HMMA"),
        Family::Hopper => Some("HGMMA"),
    }
}

/// The SASS instruction that a family multiplies with. What stands between the first
/// and the last is the main loop.
pub fn multiply_instruction(family: Family) -> Option<&'static str> {
    match family {
        Family::Pack | Family::Split | Family::Reduce | Family::Placement => None,
        Family::Naive | Family::Tiled => Some("FFMA"),
        Family::TensorCore | Family::Hopper => required_instruction(family),
    }
}

/// Checks the SASS of one program.
pub fn check_sass(family: Family, sass: &str) -> Vec<Violation> {
    let Some(multiply) = multiply_instruction(family) else {
        return Vec::new();
    };
    let lines: Vec<&str> = sass.lines().map(instruction).collect();
    let first = lines.iter().position(|line| is(line, multiply));
    let last = lines.iter().rposition(|line| is(line, multiply));
    let violation = match (first, last) {
        (Some(first), Some(last)) => lines[first..last]
            .iter()
            .find(|line| is(line, "LDL") || is(line, "STL"))
            .map(|&line| Violation::LocalInMainLoop { line: line.into() }),
        _ => required_instruction(family).map(|mnemonic| Violation::NoInstruction { mnemonic }),
    };
    violation.into_iter().collect()
}

/// The instruction in a line of SASS, which has an address before it and its code after
/// it, as comments.
fn instruction(line: &str) -> &str {
    let after_address = line.split_once("*/").map_or(line, |(_, rest)| rest);
    after_address
        .split("/*")
        .next()
        .unwrap_or(after_address)
        .trim()
}

/// Whether an instruction has this mnemonic, with or without a predicate before it and
/// modifiers behind it.
fn is(instruction: &str, mnemonic: &str) -> bool {
    let mut words = instruction.split_whitespace();
    words.any(|word| word.split('.').next() == Some(mnemonic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::Module;

    const CLEAN: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n\
        .extern .shared .align 1024 .b8 dyn_smem[];\n\
        .visible .entry one(\n\t.param .u64 one_param_0\n)\n.maxntid 64, 1, 1\n{\n\
        \t.reg .b32 \t%r<4>;\n\tld.shared.b32 \t%r1, [dyn_smem];\n\tbar.sync \t0;\n\tret;\n}\n";

    #[test]
    fn a_clean_kernel_passes() {
        assert_eq!(check_ptx(CLEAN), []);
        assert_eq!(
            check_leftovers(&Module::parse(CLEAN).unwrap().leftovers()),
            []
        );
        let note = "Value of threads per SM is out of range, ignored".to_owned();
        let report = Report {
            registers: 128,
            shared_bytes: 1024,
            notes: vec![note],
            ..Report::default()
        };
        assert_eq!(check_report(&report), []);
        let sass = "/*0100*/  HGMMA.64x256x16.F32 R24, gdesc[UR8], R24, gsb0 ;";
        assert_eq!(check_sass(Family::Hopper, sass), []);
        assert_eq!(check_sass(Family::Tiled, "FFMA R1, R2, R3, R1 ;"), []);
        assert_eq!(check_sass(Family::Pack, "STL [R1], R4 ;"), []);
    }

    #[test]
    fn a_spill_fails() {
        for report in [
            Report {
                spill_store_bytes: 4,
                ..Report::default()
            },
            Report {
                spill_load_bytes: 4,
                ..Report::default()
            },
        ] {
            assert!(matches!(
                check_report(&report)[..],
                [Violation::Spill { .. }]
            ));
        }
    }

    #[test]
    fn a_stack_frame_fails() {
        let report = Report {
            stack_bytes: 16,
            ..Report::default()
        };
        assert_eq!(check_report(&report), [Violation::StackFrame { bytes: 16 }]);
    }

    #[test]
    fn local_memory_fails() {
        let ptx = CLEAN.replace(
            "\tbar.sync",
            "\t.local .align 4 .b8 \t__local_depot0[64];\n\tbar.sync",
        );
        assert!(matches!(
            check_ptx(&ptx)[..],
            [Violation::LocalMemory { .. }]
        ));
    }

    #[test]
    fn a_call_fails_with_and_without_a_predicate() {
        for call in ["call.uni \n", "call.uni panic, ();", "@%p1 call panic, ();"] {
            let ptx = CLEAN.replace("\tret;", &format!("\t{call}\n\tret;"));
            assert!(
                matches!(check_ptx(&ptx)[..], [Violation::Call { .. }]),
                "{call}"
            );
        }
    }

    #[test]
    fn a_function_or_a_variable_fails() {
        for statement in [
            ".func panic()\n.noreturn\n{\n\ttrap;\n}\n",
            ".global .align 4 .b8 table[64];\n",
        ] {
            let module = Module::parse(&format!("{CLEAN}{statement}")).unwrap();
            let violations = check_leftovers(&module.leftovers());
            assert!(matches!(violations[..], [Violation::Leftover { .. }]));
        }
    }

    #[test]
    fn a_note_of_ptxas_fails() {
        let messages = "ptxas info    : (C7510) Potential Performance Loss: \
            wgmma.mma_async instructions are serialized due to non wgmma instructions";
        let violations = check_report(&Report::parse(messages));
        assert!(matches!(violations[..], [Violation::Note { .. }]));
    }

    #[test]
    fn local_memory_fails_in_the_main_loop_alone() {
        let sass = |places: [&str; 3]| {
            let [before, among, after] = places;
            format!(
                "        /*0010*/  {before}  /* 0x0000005e58467223 */\n\
                 /*0020*/  HGMMA.64x256x16.F32 R24, gdesc[UR8], R24, gsb0 ;\n\
                 /*0030*/  {among}  /* 0x040fe40000000046 */\n\
                 /*0040*/  @P1 HGMMA.64x256x16.F32 R24, gdesc[UR8], R24 ;\n\
                 /*0050*/  {after}\n"
            )
        };
        let check = |places| check_sass(Family::Hopper, &sass(places));
        assert_eq!(check(["STL [R1], R4 ;", "NOP ;", "LDL.LU R4, [R1] ;"]), []);
        for among in ["@!P0 STL.64 [R1+0x18], R4 ;", "LDL.LU R16, [R1+0x10] ;"] {
            let line = among.to_owned();
            assert_eq!(
                check(["NOP ;", among, "NOP ;"]),
                [Violation::LocalInMainLoop { line }]
            );
        }
    }

    #[test]
    fn a_kernel_without_its_instruction_fails() {
        let sass = "FFMA R1, R2, R3, R1 ;";
        for (family, mnemonic) in [(Family::Hopper, "HGMMA"), (Family::TensorCore, "HMMA")] {
            assert_eq!(
                check_sass(family, sass),
                [Violation::NoInstruction { mnemonic }]
            );
        }
        // HGMMA is no HMMA.
        assert_eq!(
            check_sass(Family::TensorCore, "HGMMA.64x64x16 R1 ;").len(),
            1
        );
    }
}
