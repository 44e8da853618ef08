//! `cargo xtask ptx`: compiles and assembles all kernels, prints registers and bytes of
//! each, and applies the gates.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use gpu_kernels::fold::fold;
use gpu_kernels::{Arch, ClusterShape, DType, Form};
use ptx_builder::gates::{self, Violation};
use ptx_builder::ptxas::{Report, Tools};
use ptx_builder::{Build, Codegen, Error, Generator, GeneratorChoice, OptLevel, Program, compare};
use rayon::prelude::*;

use crate::{generator, project, setup};

pub mod levels;

/// One kernel, assembled for one GPU.
struct Row<'a> {
    /// Its place in the table.
    position: usize,
    program: &'a Program,
    /// The GPU it was assembled for.
    gpu: Arch,
    report: Report,
    violations: Vec<Violation>,
}

/// Builds and checks the kernels of `archs`, or of all of them, with what
/// `codegen` or else the environment asks for.
pub fn run(archs: &[Arch], codegen: Option<Codegen>) -> Result<()> {
    let archs = if archs.is_empty() { &Arch::ALL } else { archs };
    let choice = generator::choose(codegen.map_or_else(Codegen::from_env, Ok)?)?;
    let Some(tools) = setup::nvidia_tools() else {
        bail!("the kernels cannot be checked without the above");
    };
    let cache = project::ptx_cache()?;
    // The gates below judge divergent code, and name all that is wrong at once.
    let unchecked = |generator: &Generator, arch, cache: &Path| {
        ptx_builder::build_unchecked(generator, arch, OptLevel::default(), cache)
    };
    let (generator, (programs, leftovers)) =
        compile_or_fall_back(choice, archs, &cache, unchecked)?;
    let tools = match &generator {
        // Its libNVVM writes the PTX version of its own release, which an older
        // assembler refuses.
        Generator::RustCuda(rust_cuda) => Tools::find(&rust_cuda.cuda_root).unwrap_or(tools),
        Generator::Rustc(_) => tools,
    };

    let start = Instant::now();
    // Each code generator's own, so that `--compare` has two.
    let dir = cache.join("programs").join(generator.codegen().name());
    remove_programs(&dir)?;
    let jobs = Job::of(&programs);
    let of_jobs = jobs
        .par_iter()
        .map(|job| job.rows(&tools, &dir))
        .collect::<Result<Vec<_>>>()?;
    let mut rows: Vec<Row> = of_jobs.into_iter().flatten().collect();
    rows.sort_by_key(|row| row.position);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "assembled {} texts of {} kernels in {seconds:.1} s\n",
        jobs.len(),
        rows.len()
    );

    print_table(&rows);
    println!("\nPTX: {}", dir.display());
    let mut failures = 0;
    for (arch, violation) in &leftovers {
        println!("{arch}: {violation}");
        failures += 1;
    }
    for row in &rows {
        for violation in &row.violations {
            println!(
                "{} on {}: {violation}",
                row.program.kernel.name,
                row.gpu.name()
            );
            failures += 1;
        }
    }
    if failures > 0 {
        bail!("{failures} violations of the gates");
    }
    println!("gates: {} kernels passed", rows.len());
    Ok(())
}

/// Compiles all kernels as a build of the library does, which refuses a kernel that could
/// hang, and returns the code generator whose kernels it accepts.
pub fn compiled_by() -> Result<Generator> {
    let choice = generator::choose(Codegen::from_env()?)?;
    let cache = project::ptx_cache()?;
    let (generator, _) = compile_or_fall_back(choice, &Arch::ALL, &cache, ptx_builder::build)?;
    Ok(generator)
}

/// Compares the entry points in two folders of PTX.
pub fn compare(first: &Path, second: &Path) -> Result<()> {
    let (a, b) = (compare::read(first)?, compare::read(second)?);
    let differences = compare::differences(&a, &b);
    println!("first: {}, {} entry points", first.display(), a.len());
    println!("second: {}, {} entry points", second.display(), b.len());
    for difference in &differences {
        println!("{difference}");
    }
    if !differences.is_empty() {
        bail!("{} differences", differences.len());
    }
    println!("the same names with the same parameters");
    Ok(())
}

/// Compiles `archs` by `build` with the chosen code generator; where that fails and the
/// choice was free, with the other one.
fn compile_or_fall_back(
    mut choice: GeneratorChoice,
    archs: &[Arch],
    cache: &Path,
    build: impl Fn(&Generator, Arch, &Path) -> Result<Build, Error> + Sync,
) -> Result<(Generator, (Vec<Program>, Leftovers))> {
    loop {
        let compiled = generator::prepare(&choice.generator, cache)
            .and_then(|()| compile(archs, |arch| build(&choice.generator, arch, cache)));
        match compiled {
            Ok(compiled) => return Ok((choice.generator, compiled)),
            Err(failure) => {
                // The whole text: the reason of the next choice has one line of it.
                let text = failure.to_string();
                choice = choice.after(failure)?;
                println!("{text}\ncode generator: {choice}");
            }
        }
    }
}

/// Removes what an earlier build left.
fn remove_programs(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot empty {}", dir.display()))
        }
        _ => Ok(()),
    }
}

/// Code and data outside the entry points, with the target they were compiled for.
type Leftovers = Vec<(&'static str, Violation)>;

/// Compiles the targets side by side; a compiler is single-threaded here.
fn compile(
    archs: &[Arch],
    build: impl Fn(Arch) -> Result<Build, Error> + Sync,
) -> Result<(Vec<Program>, Leftovers), Error> {
    let timed = |&arch: &Arch| {
        let start = Instant::now();
        let build = build(arch)?;
        let (name, count) = (arch.name(), build.programs.len());
        let seconds = start.elapsed().as_secs_f64();
        println!("compiled {name}: {count} kernels in {seconds:.1} s");
        Ok((name, build))
    };
    let builds: Vec<_> = archs.par_iter().map(timed).collect::<Result<_, Error>>()?;
    let mut programs = Vec::new();
    let mut leftovers = Vec::new();
    for (name, build) in builds {
        for warning in &build.warnings {
            println!("{warning}\n");
        }
        let found = gates::check_leftovers(&build.leftovers);
        leftovers.extend(found.into_iter().map(|violation| (name, violation)));
        programs.extend(build.programs);
    }
    Ok((programs, leftovers))
}

/// The GPUs to assemble for: the kernel's own target, and Hopper, where all
/// kernels are measured against each other.
fn targets(arch: Arch) -> impl Iterator<Item = Arch> {
    let also = (arch != Arch::Sm90a).then_some(Arch::Sm90a);
    std::iter::once(arch).chain(also)
}

/// Kernels of one text for one GPU, but for names of 16-bit types. They take as many registers,
/// so that one of them is assembled.
struct Job<'a> {
    /// The GPU.
    gpu: Arch,
    /// The kernels, with their places in the table. The first one is assembled.
    programs: Vec<(usize, &'a Program)>,
    /// Its text as a plain product, with C of the input type.
    plain: Program,
}

impl<'a> Job<'a> {
    /// The jobs for all GPUs that these kernels are assembled for.
    fn of(programs: &'a [Program]) -> Vec<Job<'a>> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut places = HashMap::new();
        let all = programs
            .iter()
            .flat_map(|program| targets(program.kernel.arch).map(move |gpu| (program, gpu)));
        for (position, (program, gpu)) in all.enumerate() {
            let plain = plain(program);
            let place = *places
                .entry((gpu.name(), without_16_bit_type(&plain.ptx)))
                .or_insert(jobs.len());
            if place == jobs.len() {
                jobs.push(Job {
                    gpu,
                    programs: Vec::new(),
                    plain,
                });
            }
            jobs[place].programs.push((position, program));
        }
        jobs
    }

    /// Assembles the text and applies every gate. The proof of convergence is that of each kernel,
    /// in all forms of launch.
    fn rows(&self, tools: &Tools, dir: &Path) -> Result<Vec<Row<'a>>> {
        let family = self.plain.kernel.family;
        let assembled = tools.assemble(&self.plain, self.gpu.name(), dir)?;
        let mut of_text = gates::check_report(&assembled.report);
        if gates::multiply_instruction(family).is_some() {
            let sass = tools.disassemble(&assembled.cubin)?;
            of_text.extend(gates::check_sass(family, &sass));
        }
        let mut rows = Vec::new();
        for &(position, program) in &self.programs {
            let mut violations = gates::check_convergence(&program.ptx)?;
            violations.extend(gates::check_ptx(&program.ptx));
            violations.extend(of_text.clone());
            tools.write(&plain(program), self.gpu.name(), dir)?;
            rows.push(Row {
                position,
                program,
                gpu: self.gpu,
                report: assembled.report.clone(),
                violations,
            });
        }
        Ok(rows)
    }
}

/// The kernel of a plain product, with C of the input type.
fn plain(program: &Program) -> Program {
    let kernel = program.kernel;
    let output = match kernel.input {
        DType::Tf32 => DType::F32,
        input => input,
    };
    let form = Form {
        cluster: ClusterShape::of(kernel.cluster),
        ..Form::plain(output)
    };
    Program {
        kernel,
        ptx: fold(&program.ptx, kernel.entry, &form),
    }
}

/// PTX without what tells f16 from bf16: the names of types, and numbers that are moved to
/// registers, as [`fold`] does with the type of C.
fn without_16_bit_type(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        let moves = line.trim_start().starts_with("mov.");
        let number = |end: &str| end.trim_end_matches(';').parse::<i64>().is_ok();
        match line.rsplit_once(' ') {
            Some((start, end)) if moves && number(end) => text.push_str(start),
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text.replace("bf16", "f16")
}

/// Prints the rows, and each different note once below them.
fn print_table(rows: &[Row]) {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header([
        "kernel",
        "compiled",
        "for",
        "threads",
        "registers",
        "spilled B",
        "stack B",
        "shared B",
        "notes",
    ]);
    let mut notes: Vec<&str> = Vec::new();
    for row in rows {
        let (kernel, report) = (row.program.kernel, &row.report);
        let references = report.notes.iter().map(|note| {
            let known = notes.iter().position(|known| known == note);
            let number = known.unwrap_or_else(|| {
                notes.push(note);
                notes.len() - 1
            });
            format!("[{}]", number + 1)
        });
        table.add_row([
            kernel.name.to_owned(),
            kernel.arch.name().to_owned(),
            row.gpu.name().to_owned(),
            kernel.threads.to_string(),
            report.registers.to_string(),
            format!("{}/{}", report.spill_store_bytes, report.spill_load_bytes),
            report.stack_bytes.to_string(),
            (report.shared_bytes + kernel.shared_bytes).to_string(),
            references.collect(),
        ]);
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if matches!(index, 3..=7) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{}", table.trim_fmt());
    for (index, note) in notes.iter().enumerate() {
        println!("[{}] {note}", index + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_fails_on_a_difference() {
        let examples = project::root().join("ptx-builder/tests/compare");
        let (rustc, rust_cuda) = (examples.join("rustc"), examples.join("rust-cuda"));
        compare(&rustc, &rust_cuda).unwrap();
        let other = std::env::temp_dir().join(format!("xtask-compare-{}", std::process::id()));
        fs::create_dir_all(&other).unwrap();
        let text = fs::read_to_string(rust_cuda.join("kernels.ptx")).unwrap();
        let shorter = text.replace("[368]", "[280]");
        assert_ne!(text, shorter, "the example's parameters have another size");
        fs::write(other.join("kernels.ptx"), shorter).unwrap();
        let result = compare(&rustc, &other);
        fs::remove_dir_all(&other).unwrap();
        assert_eq!(result.unwrap_err().to_string(), "2 differences");
    }

    #[test]
    fn kernels_that_differ_by_the_16_bit_type_are_one_text() {
        let of = |input: &str, output: u32, rounds: &str| {
            format!(
                "\tmov.b32 \t%r1, {output};\n\tcvt.rn.{input}x2.f32 \t%r2, %f1, %f2;\n\t{rounds} \t%r3, 7;"
            )
        };
        let text = |input, output, rounds| without_16_bit_type(&of(input, output, rounds));
        assert_eq!(text("f16", 2, "add.s32"), text("bf16", 3, "add.s32"));
        assert_ne!(text("f16", 2, "add.s32"), text("bf16", 3, "sub.s32"));
        assert_ne!(
            without_16_bit_type("\tadd.s32 \t%r1, %r1, 2;"),
            without_16_bit_type("\tadd.s32 \t%r1, %r1, 3;")
        );
    }

    #[test]
    fn every_kernel_is_assembled_for_hopper_once() {
        for arch in Arch::ALL {
            let gpus: Vec<Arch> = targets(arch).collect();
            assert!(gpus.contains(&arch));
            let hopper = gpus.iter().filter(|&&gpu| gpu == Arch::Sm90a);
            assert_eq!(hopper.count(), 1);
        }
    }
}
