//! SM clock, power, temperature and throttle reasons, sampled while a regime runs through
//! NVML, which is opened at run time. Without NVML there are no samples.
//!
//! A GPU at its power limit lowers its clock, so a time says little without
//! the clock it was taken at.

use crate::measure::stats::median;
use cust::device::{Device as CudaDevice, DeviceAttribute};
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::structs::device::FieldId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time between samples: NVML refreshes its values about this often.
const PERIOD: Duration = Duration::from_millis(20);

/// NVML's field for the power of this instant; the plain query averages over a
/// second on recent GPUs (nvml.h, `NVML_FI_DEV_POWER_INSTANT`).
const POWER_INSTANT: FieldId = FieldId(186);

/// The GPU at one moment.
#[derive(Clone, Copy, Debug)]
pub struct PowerSample {
    /// When.
    pub at: Instant,
    /// SM clock, MHz.
    pub sm_clock_mhz: u32,
    /// Power, W.
    pub power_w: f64,
    /// Temperature, °C.
    pub temperature_c: u32,
    /// Why the clock is not higher.
    pub throttle: ThrottleReasons,
}

/// What the samples within some spans of time say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PowerSummary {
    /// Median SM clock, MHz.
    pub sm_clock_mhz: Option<f64>,
    /// Median power, W.
    pub power_w: Option<f64>,
    /// Highest temperature, °C.
    pub temperature_c: Option<u32>,
    /// Every throttle reason seen, joined by `+`.
    pub throttle: String,
}

/// Samples a GPU on a thread of its own until it is finished.
pub struct Monitor {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<PowerSample>>,
}

impl Monitor {
    /// Starts to sample the GPU that CUDA calls `ordinal`.
    ///
    /// # Errors
    /// NVML is missing, or does not know the GPU: why, as text.
    pub fn start(ordinal: usize) -> Result<Monitor, String> {
        let bus_id = pci_bus_id(ordinal).map_err(|error| format!("CUDA driver: {error:?}"))?;
        let nvml = Nvml::init().map_err(|error| error.to_string())?;
        nvml.device_by_pci_bus_id(bus_id.as_str())
            .and_then(|device| sample(&device))
            .map_err(|error| error.to_string())?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut samples = Vec::new();
            if let Ok(device) = nvml.device_by_pci_bus_id(bus_id.as_str()) {
                while !stopped.load(Ordering::Relaxed) {
                    samples.extend(sample(&device));
                    thread::sleep(PERIOD);
                }
            }
            samples
        });
        Ok(Monitor { stop, thread })
    }

    /// Stops; returns the samples in order of time.
    pub fn finish(self) -> Vec<PowerSample> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// The driver's version, such as `580.95.05`; `None` without NVML.
pub fn driver_version() -> Option<String> {
    Nvml::init().ok()?.sys_driver_version().ok()
}

/// NVML and CUDA number GPUs differently; the PCI address is the same.
fn pci_bus_id(ordinal: usize) -> Result<String, cust::error::CudaError> {
    let device = CudaDevice::get_device(ordinal as u32)?;
    Ok(format!(
        "{:08x}:{:02x}:{:02x}.0",
        device.get_attribute(DeviceAttribute::PciDomainId)?,
        device.get_attribute(DeviceAttribute::PciBusId)?,
        device.get_attribute(DeviceAttribute::PciDeviceId)?,
    ))
}

fn sample(device: &nvml_wrapper::Device) -> Result<PowerSample, nvml_wrapper::error::NvmlError> {
    Ok(PowerSample {
        at: Instant::now(),
        sm_clock_mhz: device.clock_info(Clock::SM)?,
        power_w: match instant_power_mw(device) {
            Some(milliwatts) => f64::from(milliwatts) / 1e3,
            None => f64::from(device.power_usage()?) / 1e3,
        },
        temperature_c: device.temperature(TemperatureSensor::Gpu)?,
        throttle: device.current_throttle_reasons()?,
    })
}

fn instant_power_mw(device: &nvml_wrapper::Device) -> Option<u32> {
    let field = device
        .field_values_for(&[POWER_INSTANT])
        .ok()?
        .pop()?
        .ok()?;
    match field.value.ok()? {
        SampleValue::U32(milliwatts) => Some(milliwatts),
        _ => None,
    }
}

/// Summarises the samples taken within any of `spans`.
pub fn summarise(samples: &[PowerSample], spans: &[(Instant, Instant)]) -> PowerSummary {
    let within: Vec<&PowerSample> = samples
        .iter()
        .filter(|sample| {
            let covers = |&(from, to): &(Instant, Instant)| from <= sample.at && sample.at <= to;
            spans.iter().any(covers)
        })
        .collect();
    let of = |value: &dyn Fn(&PowerSample) -> f64| {
        median(
            &within
                .iter()
                .map(|sample| value(sample))
                .collect::<Vec<_>>(),
        )
    };
    let reasons = within.iter().fold(ThrottleReasons::empty(), |all, sample| {
        all | sample.throttle
    }) - ThrottleReasons::GPU_IDLE;
    PowerSummary {
        sm_clock_mhz: of(&|sample| f64::from(sample.sm_clock_mhz)),
        power_w: of(&|sample| sample.power_w),
        temperature_c: within.iter().map(|sample| sample.temperature_c).max(),
        throttle: reasons
            .iter_names()
            .map(|(name, _)| name)
            .collect::<Vec<_>>()
            .join("+"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_samples_within_the_spans_count() {
        let start = Instant::now();
        let at = |milliseconds| start + Duration::from_millis(milliseconds);
        let sample = |milliseconds, sm_clock_mhz, throttle| PowerSample {
            at: at(milliseconds),
            sm_clock_mhz,
            power_w: f64::from(sm_clock_mhz) / 4.0,
            temperature_c: 40 + milliseconds as u32,
            throttle,
        };
        let samples = [
            sample(0, 1980, ThrottleReasons::GPU_IDLE),
            sample(1, 1800, ThrottleReasons::GPU_IDLE),
            sample(2, 1600, ThrottleReasons::SW_POWER_CAP),
            sample(3, 400, ThrottleReasons::HW_SLOWDOWN),
            sample(4, 1700, ThrottleReasons::empty()),
        ];
        let summary = summarise(&samples, &[(at(1), at(2)), (at(4), at(4))]);
        assert_eq!(summary.sm_clock_mhz, Some(1700.0));
        assert_eq!(summary.power_w, Some(425.0));
        assert_eq!(summary.temperature_c, Some(44));
        assert_eq!(summary.throttle, "SW_POWER_CAP");
    }

    #[test]
    fn no_samples_say_nothing() {
        assert_eq!(summarise(&[], &[]), PowerSummary::default());
    }
}
