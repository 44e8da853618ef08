//! What runs say while a stream captures a CUDA graph.

use std::ptr;

use cudarc::driver::sys;
use tilewise::{Device, Matrix};
use tilewise_parallel::program::Operation;
use tilewise_parallel::{Error, Group, Member, Options};

use super::timer::{check, stream};

/// Plans and runs on `group` while the stream of its last device captures: both are refused, and
/// the plan that was there before runs again behind the capture.
pub fn refused_by_group(group: &Group) -> Result<(), String> {
    let devices = group.devices();
    let ranks = devices.len();
    let matrices = |rows| -> Result<Vec<Matrix<f32>>, tilewise::Error> {
        devices.iter().map(|device| device.zeros(rows, 1)).collect()
    };
    let try_it = || -> Result<Result<(), String>, Error> {
        let (a, mut c) = (matrices(1)?, matrices(ranks)?);
        let a: Vec<_> = a.iter().map(Matrix::view).collect();
        let mut c: Vec<_> = c.iter_mut().map(Matrix::view_mut).collect();
        let (operation, options) = (Operation::AllGather, Options::new());
        let mut plan = group.plan(operation, &options, &a, &a, &mut c)?;
        plan.run(&a, &a, &mut c)?;
        let mut during = Vec::new();
        while_capturing(&devices[ranks - 1], || {
            during.push(plan.run(&a, &a, &mut c));
            let planned = group.plan(operation, &options, &a, &a, &mut c);
            during.push(planned.map(drop));
        })?;
        plan.run(&a, &a, &mut c)?;
        Ok(all_refused(during))
    };
    try_it().unwrap_or_else(|error| Err(error.to_string()))
}

/// The same on one rank of several processes, whose streams capture at the same time.
pub fn refused_by_member(member: &Member) -> Result<(), String> {
    let device = member.device();
    let try_it = || -> Result<Result<(), String>, Error> {
        let a = device.zeros::<f32>(1, 1)?;
        let mut c = device.zeros::<f32>(member.ranks(), 1)?;
        let options = Options::new();
        let mut plan = member.all_gather_matmul(&options, &a, &a, &mut c)?;
        plan.run(&a, &a, &mut c)?;
        let mut during = Vec::new();
        while_capturing(device, || {
            during.push(plan.run(&a, &a, &mut c));
            let planned = member.all_gather_matmul(&options, &a, &a, &mut c);
            during.push(planned.map(drop));
        })?;
        plan.run(&a, &a, &mut c)?;
        plan.finish()?;
        Ok(all_refused(during))
    };
    try_it().unwrap_or_else(|error| Err(error.to_string()))
}

fn all_refused(results: Vec<Result<(), Error>>) -> Result<(), String> {
    for result in results {
        match result {
            Err(Error::Capturing { .. }) => {}
            Err(other) => return Err(other.to_string()),
            Ok(()) => return Err("a run or a plan was captured".into()),
        }
    }
    Ok(())
}

/// Calls `body` while the stream of `device` captures. The graph must be empty.
fn while_capturing(device: &Device, body: impl FnOnce()) -> Result<(), Error> {
    let stream = stream(device);
    device.make_current()?;
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream exists, and the context is current.
    check("cuStreamBeginCapture", unsafe {
        sys::cuStreamBeginCapture_v2(stream, mode)
    })?;
    body();
    device.make_current()?;
    let (mut graph, mut nodes) = (ptr::null_mut(), 0);
    // SAFETY: as above; the results outlive the calls, and the graph is destroyed once.
    unsafe {
        check(
            "cuStreamEndCapture",
            sys::cuStreamEndCapture(stream, &mut graph),
        )?;
        let counted = sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut nodes);
        check("cuGraphDestroy", sys::cuGraphDestroy(graph))?;
        check("cuGraphGetNodes", counted)?;
    }
    match nodes {
        0 => Ok(()),
        _ => Err(Error::System {
            what: "capturing nothing".into(),
            why: format!("the graph has {nodes} nodes"),
        }),
    }
}
