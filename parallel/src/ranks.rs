//! [`Ranks`]: the devices of a group, opened.

use std::sync::Arc;

use tilewise::Device;

use crate::cuda::Links;
use crate::error::Error;

/// The devices of the ranks, and the links between them.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    devices: Arc<[Device]>,
    /// `None` for devices that finish each call before it returns.
    links: Option<Arc<Links>>,
}

impl Ranks {
    /// Opens `devices`: see [`Group::new`](crate::Group::new).
    pub fn open(devices: &[Device]) -> Result<Self, Error> {
        let has_stream = |device: &Device| device.stream().is_some();
        let first = devices.first().ok_or(Error::NoRanks)?;
        let other = devices
            .iter()
            .position(|device| has_stream(device) != has_stream(first));
        if let Some(rank) = other {
            return Err(Error::MixedDevices {
                first: first.to_string(),
                rank,
                other: devices[rank].to_string(),
            });
        }
        let links = match has_stream(first) {
            true => Some(Arc::new(Links::new(devices)?)),
            false => None,
        };
        Ok(Ranks {
            devices: devices.into(),
            links,
        })
    }

    /// The device of each rank.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The links between GPUs of the driver.
    pub fn links(&self) -> Option<&Arc<Links>> {
        self.links.as_ref()
    }
}
