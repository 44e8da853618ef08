//! [`Ranks`]: the devices of a group, opened.

use std::sync::{Arc, OnceLock};

use tilewise::Device;

use crate::cuda::Links;
use crate::error::Error;
use crate::nccl::Nccl;

/// The devices of the ranks, and the links between them.
#[derive(Clone, Debug)]
pub(crate) struct Ranks {
    devices: Arc<[Device]>,
    /// `None` for devices that finish each call before it returns.
    links: Option<Arc<Links>>,
    /// Communicators, once a plan has asked for them.
    nccl: Arc<OnceLock<Result<Arc<Nccl>, Error>>>,
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
            nccl: Arc::default(),
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

    /// An error if the stream of a device captures a graph.
    pub fn refuse_capture(&self) -> Result<(), Error> {
        match self.links.as_ref().map(|links| links.capturing()) {
            Some(found) => match found? {
                Some(rank) => Err(Error::Capturing { rank }),
                None => Ok(()),
            },
            None => Ok(()),
        }
    }

    /// Why these ranks have no NCCL, if they have none.
    pub fn nccl_obstacle(&self) -> Option<String> {
        match &self.links {
            None => Some("the devices are not GPUs of the driver".into()),
            Some(_) => Nccl::obstacle(&self.devices),
        }
    }

    /// The communicators of the ranks, which the first call creates. It takes about a second.
    pub fn nccl(&self) -> Result<Arc<Nccl>, Error> {
        let links = self.links.as_ref().ok_or(Error::NoRanks)?;
        let create = || Nccl::new(links, &self.devices).map(Arc::new);
        self.nccl.get_or_init(create).clone()
    }
}
