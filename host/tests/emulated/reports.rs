//! Tests of the emulator's reports, limits and counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tilewise::emulator::{self, Check, EmulatedGpu, Fault, Instruction, Progress};
use tilewise::{Device, Error, Gemm, Matrix, Schedule, f16};

use super::open;

/// A product that the kernel for 64×64 tiles computes, in several of them.
fn product(device: &Device) -> Result<Matrix<f16>, Error> {
    let (m, n, k) = (100, 136, 200);
    let a = device.from_slice(&vec![f16::ONE; m * k], m, k)?;
    let b = device.from_slice(&vec![f16::ONE; k * n], k, n)?;
    let mut c = device.zeros(m, n)?;
    let gemm = Gemm::new(device).kernel("hopper_f16_ak_bn_64x64x128");
    let gemm = gemm.schedule(Schedule::Persistent);
    gemm.plan(&a, &b, &mut c)?.run(&a, &b, &mut c)?;
    assert_eq!(c.to_vec()?, vec![f16::from_f32(k as f32); m * n]);
    Ok(c)
}

#[test]
fn a_broken_rule_is_an_error_and_the_device_stays_usable() {
    let device = open(EmulatedGpu {
        sms: 2,
        faults: vec![Fault {
            instruction: Instruction::WgmmaFence,
            change: |_, _| false,
        }],
        ..EmulatedGpu::default()
    });
    let error = product(&device).unwrap_err();
    let Error::KernelBroken { reports } = &error else {
        panic!("{error}");
    };
    assert_eq!(reports[0].check, Check::AccumulatorInUse);
    assert_eq!(reports[0].kernel, "hopper_f16_ak_bn_64x64x128");
    let first_line = reports[0].to_string();
    assert!(error.to_string().starts_with(&first_line), "{error}");
    assert_eq!(emulator::counts(&device), None);

    let ones = device.from_slice(&[1.0_f32; 4], 2, 2).unwrap();
    assert_eq!(
        device.matmul(&ones, &ones).unwrap().to_vec(),
        Ok(vec![2.0; 4])
    );
    assert!(emulator::counts(&device).is_some());
}

#[test]
fn a_read_of_what_nothing_wrote_is_reported() {
    let device = open(EmulatedGpu::default());
    let a = device.from_slice(&[1.0_f32; 16], 4, 4).unwrap();
    // The last row.
    let address = a.device_address().unwrap() + 48;
    emulator::leave_undefined(&device, address, 16).unwrap();
    let Error::KernelBroken { reports } = device.matmul(&a, &a).unwrap_err() else {
        panic!("another error");
    };
    assert_eq!(reports[0].check, Check::Uninitialized);
    // Memory that the library allocates is defined: it holds zeros.
    let zeros = device.zeros::<f32>(4, 4).unwrap();
    assert_eq!(
        device.matmul(&zeros, &zeros).unwrap().to_vec(),
        Ok(vec![0.0; 16])
    );
}

#[test]
fn every_launch_is_counted_and_a_seed_does_the_same_again() {
    let run = |seed| {
        let ended = Arc::new(AtomicU32::new(0));
        let total = ended.clone();
        let progress = Progress::new(move |ctas| {
            total.fetch_add(ctas, Ordering::Relaxed);
        });
        let device = open(EmulatedGpu {
            sms: 3,
            seed,
            trace: true,
            progress: Some(progress),
            ..EmulatedGpu::default()
        });
        assert_eq!(emulator::counts(&device), None);
        product(&device).unwrap();
        // As many CTAs as fit, each with its tiles.
        assert_eq!(ended.load(Ordering::Relaxed) % 3, 0);
        let counts = emulator::counts(&device).unwrap();
        (counts.executed(Instruction::WgmmaMultiply), counts)
    };
    let (multiplies, counts) = run(7);
    // 2×3 tiles of 128 threads, two k-blocks of eight instructions.
    assert_eq!(multiplies, 6 * 128 * 2 * 8);
    assert_eq!(counts.tensor_operations, 2 * (6 * 64 * 64) * (2 * 128));
    assert!(!counts.requests.is_empty());
    assert_eq!(run(7).1, counts);
    assert_eq!(emulator::counts(&Device::cpu()), None);
}

#[test]
fn what_is_too_much_is_refused_before_it_begins() {
    let device = open(EmulatedGpu {
        time_limit: Duration::from_secs(5),
        memory_bytes: 1 << 20,
        ..EmulatedGpu::default()
    });
    let one = device.zeros::<f32>(1, 1).unwrap();
    let long = 1 << 20;
    let a = one.view().with_strides(512, long, 0, 0).unwrap();
    let error = device.matmul(a, a.t().with_strides(long, 128, 0, 0).unwrap());
    let text = match error.unwrap_err() {
        error @ Error::EmulationTooLong {
            estimate, limit, ..
        } => {
            assert!(estimate > limit && limit == Duration::from_secs(5));
            error.to_string()
        }
        other => panic!("{other}"),
    };
    assert!(text.contains("EmulatedGpu::time_limit"), "{text}");

    assert_eq!(
        device.zeros::<f32>(1 << 10, 1 << 10).unwrap_err(),
        Error::OutOfMemory {
            device: device.to_string(),
            wanted: 4 << 20,
            // A granule for the one element.
            free: (1 << 20) - 4,
        }
    );
    // Freed memory can be allocated again.
    for _ in 0..8 {
        device.zeros::<f32>(1 << 8, 700).unwrap();
    }

    for (gpu, field) in [
        (
            EmulatedGpu {
                sms: 0,
                ..EmulatedGpu::default()
            },
            "sms",
        ),
        (
            EmulatedGpu {
                sms: 1025,
                ..EmulatedGpu::default()
            },
            "sms",
        ),
        (
            EmulatedGpu {
                ctas_per_sm: Some(0),
                ..EmulatedGpu::default()
            },
            "ctas_per_sm",
        ),
    ] {
        match Device::emulated(gpu).unwrap_err() {
            Error::InvalidEmulatedGpu { field: found, .. } => assert_eq!(found, field),
            other => panic!("{other}"),
        }
    }
}

/// A grid of more CTAs than the emulator numbers.
#[test]
fn too_many_ctas_are_refused() {
    let device = open(EmulatedGpu {
        time_limit: Duration::MAX,
        ..EmulatedGpu::default()
    });
    let rows = 16 << 20;
    let one = device.zeros::<f16>(1, 1).unwrap();
    let a = one.view().with_strides(rows, 1, 0, 0).unwrap();
    let mut c = device.zeros::<f16>(rows, 1).unwrap();
    let gemm = Gemm::new(&device)
        .kernel("naive_f16")
        .schedule(Schedule::Grid1d);
    let mut plan = gemm.plan(a, one.view(), c.view_mut()).unwrap();
    match plan.run(a, one.view(), c.view_mut()).unwrap_err() {
        Error::CannotEmulate { kernel, reason } => {
            assert_eq!(kernel, "naive_f16");
            assert!(reason.contains("2^20"), "{reason}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn what_is_for_emulated_gpus_is_refused_elsewhere() {
    let cpu = Device::cpu();
    let error = emulator::leave_undefined(&cpu, 0, 2).unwrap_err();
    assert_eq!(
        error,
        Error::NotEmulated {
            device: "the CPU".into()
        }
    );
}
