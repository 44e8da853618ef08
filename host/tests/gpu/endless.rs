//! A kernel that never ends: a wait with a limit ends, nothing after it blocks, and a
//! watchdog ends the process.
//!
//! Such a kernel stays on the GPU until its process ends, so each case runs this program
//! again, as its child. Meanwhile this program has its turn with the device: no other test
//! shares the GPU with the child.

use std::io::Read as _;
use std::mem;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tilewise::{Device, Error};
use tilewise_watchdog::{EXIT_CODE, Watchdog};

use crate::driver::Module;
use crate::errors::ErrorCase;

/// All tests of kernels that never end. They are not in the set for compute-sanitizer,
/// which does not follow child processes and waits for kernels itself.
pub const CASES: [ErrorCase; 2] = [
    ("endless/a-wait-ends-and-nothing-blocks", wait, false),
    ("endless/a-watchdog-ends-the-process", watchdog, false),
];

/// A kernel that sleeps until `stop` is not 0, which never happens. Its single warp uses
/// little of the GPU.
const PTX: &str = "
.version 8.0
.target sm_75
.address_size 64

.visible .global .align 4 .u32 stop = 0;

.visible .entry endless()
{
    .reg .pred %again;
    .reg .b32 %stop;
    .reg .b64 %address;

    mov.u64 %address, stop;
next:
    nanosleep.u32 100000;
    ld.volatile.global.u32 %stop, [%address];
    setp.eq.u32 %again, %stop, 0;
    @%again bra next;
    ret;
}
";

/// The time limit with which the child waits for the kernel.
const LIMIT: Duration = Duration::from_millis(500);

/// The time limit for calls that must return at once. Calls and destructors that do not
/// wait take microseconds.
const AT_ONCE: Duration = Duration::from_millis(250);

/// The time limit of a child. Opening a GPU takes seconds if no other program has it open.
const LIFE: Duration = Duration::from_secs(60);

/// The name of the child that ends by itself, and the text that it prints before it ends.
const WAITS: (&str, &str) = ("wait", "all is dropped");

/// The name of the child that the watchdog ends, and the last text that it prints.
const IS_ENDED: (&str, &str) = ("watchdog", "what there is");

/// Names the work of that child.
const LABEL: &str = "endless, 1x1x1, row, grid1d";

/// Runs in a child process instead of the tests.
pub fn child(name: &str, ordinal: usize) -> ExitCode {
    let result = Device::gpu(ordinal)
        .map_err(|error| error.to_string())
        .and_then(|device| match name {
            name if name == WAITS.0 => wait_in_child(device),
            _ => hang_in_child(&device),
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn launch_endless(device: &Device) -> Result<(), String> {
    let failed = |error: Error| format!("the kernel that never ends: {error}");
    let module = Module::load(device, PTX).map_err(failed)?;
    // SAFETY: the kernel takes no parameters, and touches its module alone.
    let launched = unsafe { module.launch(device, "endless", (1, 1), &mut []) };
    // Unloading it would wait.
    mem::forget(module);
    launched.map_err(failed)
}

/// Checks every promise of [`Device::synchronize_within`].
fn wait_in_child(device: Device) -> Result<(), String> {
    let message = |error: Error| error.to_string();
    let matrix = device.from_slice(&[1.0_f32; 4], 2, 2).map_err(message)?;
    // A plan with its module has been here, too.
    let product = device.matmul(&matrix, &matrix).map_err(message)?;
    launch_endless(&device)?;
    let start = Instant::now();
    let error = match device.synchronize_within(LIMIT) {
        Err(error @ Error::TimedOut { waited: LIMIT, .. }) => error,
        other => return Err(format!("{other:?}, and not that the time is up")),
    };
    let took = start.elapsed();
    if took < LIMIT || took > LIMIT + AT_ONCE {
        return Err(format!("a wait of {LIMIT:?} took {took:?}"));
    }
    let start = Instant::now();
    let later = [
        ("synchronize", device.synchronize().err()),
        ("make_current", device.make_current().err()),
        ("to_vec", product.to_vec().err()),
        ("zeros", device.zeros::<f32>(2, 2).err()),
        ("matmul", device.matmul(&matrix, &matrix).err()),
    ];
    for (call, answer) in later {
        if answer.as_ref() != Some(&error) {
            return Err(format!("{call} answers {answer:?}"));
        }
    }
    drop(product);
    drop(matrix);
    drop(device);
    let took = start.elapsed();
    if took > AT_ONCE {
        return Err(format!("what should not wait took {took:?}"));
    }
    println!("{}", WAITS.1);
    Ok(())
}

/// Waits forever, unless the watchdog ends the process.
fn hang_in_child(device: &Device) -> Result<(), String> {
    let watchdog = Watchdog::new(|| println!("{}", IS_ENDED.1));
    launch_endless(device)?;
    let _armed = watchdog.arm(LIMIT, LABEL);
    let waited = device.synchronize();
    Err(format!("the wait ended: {waited:?}"))
}

/// The result of a child process.
struct Ended {
    /// `None` where it had to be killed.
    status: Option<ExitStatus>,
    stdout: String,
    stderr: String,
    took: Duration,
}

/// Runs a child on the GPU of `device`.
fn run_child(name: &str, device: &Device) -> Result<Ended, String> {
    let failed = |error: std::io::Error| format!("the child process: {error}");
    let ordinal = device.gpu_info().ok_or("a GPU has information")?.ordinal;
    let start = Instant::now();
    let mut child = Command::new(std::env::current_exe().map_err(failed)?)
        .args(["--endless", name, "--device", &ordinal.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let status = wait_for(&mut child).map_err(failed)?;
    let took = start.elapsed();
    let (mut stdout, mut stderr) = (String::new(), String::new());
    if let (Some(out), Some(err)) = (&mut child.stdout, &mut child.stderr) {
        out.read_to_string(&mut stdout).map_err(failed)?;
        err.read_to_string(&mut stderr).map_err(failed)?;
    }
    Ok(Ended {
        status,
        stdout,
        stderr,
        took,
    })
}

/// The status of a child that ends by itself within [`LIFE`]; others are killed.
fn wait_for(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < LIFE {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

fn wait(device: &Device) -> Result<(), String> {
    let Ended {
        status,
        stdout,
        stderr,
        ..
    } = run_child(WAITS.0, device)?;
    let is_all_dropped = stdout.contains(WAITS.1);
    match status {
        Some(status) if status.success() && is_all_dropped => works(device),
        Some(status) => Err(format!("{status}: {stderr}")),
        None if is_all_dropped => Err(format!(
            "a process that has dropped all does not end in {LIFE:?}: the driver's exit handler \
             waits for the kernel"
        )),
        None => Err(format!("the process hangs: {stdout}{stderr}")),
    }
}

fn watchdog(device: &Device) -> Result<(), String> {
    let Ended {
        status,
        stdout,
        stderr,
        took,
    } = run_child(IS_ENDED.0, device)?;
    let code = status.and_then(|status| status.code());
    let says = stderr.contains(LABEL) && stdout.contains(IS_ENDED.1);
    if code != Some(EXIT_CODE) || !says {
        return Err(format!("{status:?} after {took:?}: {stdout}{stderr}"));
    }
    works(device)
}

/// The end of the child has freed the GPU of its kernel.
fn works(device: &Device) -> Result<(), String> {
    let ones = device.from_slice(&[1.0_f32; 4], 2, 2);
    let product = ones.and_then(|ones| device.matmul(&ones, &ones)?.to_vec());
    match product {
        Ok(product) if product == [2.0; 4] => Ok(()),
        other => Err(format!("afterwards, 1s times 1s is {other:?}")),
    }
}
