//! Runs this program again under Nsight Compute, which counts bytes at the DRAM and at L2.
//!
//! Each launch is counted alone, its caches emptied before, as in the cold regime. The
//! clocks are left as they are: bytes do not depend on them, and the times are not used.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tilewise::l2::gpu::l2_partitions;

use crate::error::Error;
use crate::problem::names::schedule_name;
use crate::study::counters::{self, Counts, ProfiledLaunch};
use crate::study::sweep::Sweep;

/// The limit of a wait of the program under ncu. With five counters, a launch on a GPU with
/// 140 GB of memory takes some seconds.
const UNDER_NCU: Duration = Duration::from_secs(600);

/// The result of counting.
pub enum NcuOutcome {
    /// Every launch, with its counts.
    Counted(Vec<(ProfiledLaunch, Counts)>),
    /// There are no counters here, for this reason.
    Unavailable(String),
}

/// Where `ncu` is: the given path, else in `PATH`, else where CUDA and Nsight Compute
/// install it, the last version first.
pub fn find(given: Option<&Path>) -> Option<PathBuf> {
    if let Some(given) = given {
        return Some(given.to_owned());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    folders.push("/usr/local/cuda/bin".into());
    folders.extend(versions("/usr/local", "cuda-", "bin"));
    folders.extend(versions("/opt/nvidia/nsight-compute", "", ""));
    let programs = folders.into_iter().map(|folder| folder.join("ncu"));
    programs.into_iter().find(|program| program.is_file())
}

/// `parent/PREFIX…/inside`, the greatest name first.
fn versions(parent: &str, prefix: &str, inside: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path().join(inside))
        .collect();
    folders.sort();
    folders.reverse();
    folders
}

/// Counts every launch of `plan` with the program `ncu`.
///
/// # Errors
/// What was counted is not what was launched.
pub fn count(
    ncu: &Path,
    sweep: &Sweep,
    compute_capability: (u32, u32),
) -> Result<NcuOutcome, Error> {
    let folder = tempfile::tempdir().map_err(|source| Error::io(&env::temp_dir(), source))?;
    let log = folder.path().join("ncu.csv");
    let program =
        env::current_exe().map_err(|source| Error::io(Path::new("this program"), source))?;
    let output = Command::new(ncu)
        .args(["--csv", "--page", "raw", "--clock-control", "none"])
        .args(["--metrics", &metrics(compute_capability)])
        .args(["--kernel-name", &kernel_pattern(sweep)])
        .arg("--log-file")
        .arg(&log)
        .arg(program)
        .args(arguments(sweep))
        .output();
    let text = fs::read_to_string(&log).unwrap_or_default();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            return Ok(NcuOutcome::Unavailable(format!(
                "{}: {error}",
                ncu.display()
            )));
        }
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let reason = reason(&text, &said).unwrap_or_else(|| output.status.to_string());
        return Ok(NcuOutcome::Unavailable(reason));
    }
    let launches = counters::launches(&String::from_utf8_lossy(&output.stdout))?;
    Ok(NcuOutcome::Counted(counters::joined(
        launches,
        counters::counts(&text)?,
    )?))
}

/// The metrics for a GPU of this compute capability. An L2 of one partition has no fabric
/// between partitions.
fn metrics(compute_capability: (u32, u32)) -> String {
    let mut metrics = vec![
        counters::DRAM_READ,
        counters::DRAM_WRITE,
        counters::L2_READ,
        counters::L2_HIT,
    ];
    if l2_partitions(compute_capability) > 1 {
        metrics.push(counters::L2_FABRIC);
    }
    metrics.join(",")
}

/// A pattern of the kernels of the sweep: other launches, such as the copy of an operand,
/// are not counted.
fn kernel_pattern(sweep: &Sweep) -> String {
    let names: Vec<&str> = sweep.kernels.iter().map(|kernel| kernel.name).collect();
    format!("regex:^({})$", names.join("|"))
}

/// The arguments that make this program launch what `plan` measures.
fn arguments(sweep: &Sweep) -> Vec<String> {
    fn list<T>(values: &[T], name: impl Fn(&T) -> String) -> String {
        values.iter().map(name).collect::<Vec<_>>().join(",")
    }
    vec![
        "study".to_owned(),
        "--launch-once".to_owned(),
        format!(
            "--shapes={}",
            list(&sweep.shapes, |shape| shape.to_string())
        ),
        format!(
            "--kernels={}",
            list(&sweep.kernels, |kernel| kernel.name.to_owned())
        ),
        format!(
            "--orders={}",
            list(&sweep.orders, |order| order.to_string())
        ),
        // ncu runs each launch several times, and saves and restores its memory.
        format!(
            "--wait-limit={}",
            sweep.wait().wait_limit.unwrap_or(UNDER_NCU).as_secs_f64()
        ),
        format!(
            "--schedules={}",
            list(&sweep.schedules, |&schedule| schedule_name(schedule)
                .to_owned())
        ),
    ]
}

/// The reason that ncu, or the program under it, gave for its end.
fn reason(log: &str, stderr: &str) -> Option<String> {
    let error = |line: &&str| line.starts_with("==ERROR==") || line.starts_with("error:");
    let mut lines = log.lines().chain(stderr.lines());
    lines.find(error).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn plan(arguments: &[String]) -> (Sweep, bool) {
        let all = ["tilewise-bench".to_owned()]
            .into_iter()
            .chain(arguments.iter().cloned());
        match Cli::parse_from(all).command {
            Command::Study(args) => (Sweep::new(&args).unwrap(), args.launch_once),
            other => unreachable!("the arguments say study, not {other:?}"),
        }
    }

    #[test]
    fn the_program_under_ncu_has_the_same_plan() {
        for words in [
            &["study"][..],
            &["study", "--quick", "--schedules=grid1d,persistent"],
            &[
                "study",
                "--shapes=512,64x32x16",
                "--orders=morton,groupedn:3",
            ],
        ] {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let (asked, _) = plan(&words);
            let (under, launch_once) = plan(&arguments(&asked));
            assert!(launch_once);
            assert_eq!(under.shapes, asked.shapes);
            assert_eq!(under.kernels, asked.kernels);
            assert_eq!(under.orders, asked.orders);
            assert_eq!(under.schedules, asked.schedules);
        }
    }

    #[test]
    fn the_reason_is_the_line_with_the_error() {
        let log = "==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\n";
        assert!(
            reason(log, "error: other")
                .unwrap()
                .contains("ERR_NVGPUCTRPERM")
        );
        assert_eq!(
            reason("", "warning\nerror: no GPU\n"),
            Some("error: no GPU".to_owned())
        );
        assert_eq!(reason("", ""), None);
    }

    #[test]
    fn only_the_kernels_of_the_plan_are_counted() {
        let (sweep, _) = plan(&["study".to_owned()]);
        let pattern = kernel_pattern(&sweep);
        assert!(
            pattern.starts_with("regex:^(hopper_f16_ak_bn_128x256x64|"),
            "{pattern}"
        );
    }

    #[test]
    fn the_fabric_is_counted_where_l2_has_partitions() {
        for (compute_capability, is_counted) in [
            ((7, 5), false),
            ((8, 0), true),
            ((8, 6), false),
            ((8, 9), false),
            ((9, 0), true),
        ] {
            let metrics = metrics(compute_capability);
            assert_eq!(metrics.matches(',').count(), if is_counted { 4 } else { 3 });
            assert_eq!(metrics.contains(counters::L2_FABRIC), is_counted);
        }
    }

    /// A program in place of ncu that prints `printed`, writes `log` where it is told to,
    /// and ends with `status`.
    #[cfg(unix)]
    fn counted_by(printed: &str, log: &str, status: u8) -> Result<NcuOutcome, Error> {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("ncu");
        let text = format!(
            "#!/bin/sh\n\
             while [ \"$1\" != --log-file ]; do shift; done\n\
             cat > \"$2\" <<'LOG'\n{log}\nLOG\n\
             cat <<'PRINTED'\n{printed}\nPRINTED\n\
             exit {status}\n"
        );
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let (sweep, _) = plan(&["study".to_owned()]);
        count(&script, &sweep, (9, 0))
    }

    #[cfg(unix)]
    const LAUNCH: &str = "launch 0: 512x512x512 f16 tilewise hopper_f16 row grid1d";

    #[cfg(unix)]
    fn log(kernel: &str) -> String {
        let columns = [
            counters::DRAM_READ,
            counters::DRAM_WRITE,
            counters::L2_READ,
            counters::L2_HIT,
        ];
        format!(
            "==PROF== Connected\n\"Kernel Name\",\"{}\"\n\
             \"\",\"Kbyte\",\"byte\",\"sector\",\"sector\"\n\
             \"{kernel}\",\"1.5\",\"2,000\",\"4\",\"3\"",
            columns.join("\",\"")
        )
    }

    #[cfg(unix)]
    #[test]
    fn launches_and_counts_come_together() {
        match counted_by(LAUNCH, &log("hopper_f16"), 0).unwrap() {
            NcuOutcome::Counted(pairs) => {
                assert_eq!(pairs.len(), 1);
                assert_eq!(pairs[0].1.dram_read_bytes, 1500.0);
                assert_eq!(pairs[0].1.l2_hit_rate(), Some(0.75));
            }
            NcuOutcome::Unavailable(reason) => panic!("{reason}"),
        }
        let other = counted_by(LAUNCH, &log("another"), 0).err().unwrap();
        assert!(other.to_string().contains("counted another"), "{other}");
    }

    #[cfg(unix)]
    #[test]
    fn without_permission_there_are_no_counters_and_the_study_goes_on() {
        let refusal = "==ERROR== ERR_NVGPUCTRPERM - the user has no permission";
        match counted_by(LAUNCH, refusal, 1).unwrap() {
            NcuOutcome::Unavailable(reason) => assert_eq!(reason, refusal),
            NcuOutcome::Counted(_) => panic!("counted"),
        }
        let (sweep, _) = plan(&["study".to_owned()]);
        let missing = count(Path::new("/nowhere/ncu"), &sweep, (9, 0)).unwrap();
        assert!(matches!(missing, NcuOutcome::Unavailable(reason) if reason.contains("nowhere")));
    }
}
