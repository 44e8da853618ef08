//! The two worlds: a GPU and the emulator.

use gpu_kernels::emulator::semantics::tensor_map::{self, TensorMap};
use gpu_kernels::emulator::{self, Grid, Memory, Options};
use tilewise::Device;
use tilewise::probe::Launch;

/// Where launches run.
pub struct Worlds {
    /// A GPU, or the CPU for the emulator alone.
    pub device: Device,
    /// Random products to compare.
    pub problems: usize,
    options: Options,
}

impl Worlds {
    pub fn new(device: &Device, problems: usize) -> Self {
        Worlds {
            device: device.clone(),
            problems,
            options: Options::default(),
        }
    }

    /// Runs `launch` in both. Returns what operand C holds afterwards, on the GPU and
    /// in the emulator.
    pub fn run(&self, launch: &Launch) -> Result<(Vec<u8>, Vec<u8>), String> {
        let emulated = self.emulate(launch)?;
        if !self.device.is_gpu() {
            return Ok((emulated.clone(), emulated));
        }
        let gpu = launch
            .run(&self.device)
            .map_err(|error| error.to_string())?;
        Ok((gpu, emulated))
    }

    fn emulate(&self, launch: &Launch) -> Result<Vec<u8>, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut memory = Memory::new();
        let operands = [&launch.a, &launch.b, &launch.c].map(|bytes| {
            let address = memory.allocate(bytes.len() as u64);
            memory.write(address, bytes).map(|()| address)
        });
        let [a, b, c] = operands;
        let (a, b, c) = (
            a.map_err(|e| text(&e))?,
            b.map_err(|e| text(&e))?,
            c.map_err(|e| text(&e))?,
        );
        let maps = memory.allocate(3 * tensor_map::BYTES as u64);
        for (index, map, address) in [(0, launch.a_map, a), (2, launch.c_map, c)] {
            if let Some(map) = map {
                let placed = TensorMap {
                    address: address + map.address,
                    ..map
                };
                let encoded = placed.encode().map_err(|e| text(&e))?;
                let at = maps + index * tensor_map::BYTES as u64;
                memory.write(at, &encoded).map_err(|e| text(&e))?;
            }
        }
        let params = launch.placed([a, b, c], maps);
        let run = launch.probe.run;
        let grid = Grid {
            kernel: launch.probe.info.name,
            ctas: (launch.ctas, 1),
            threads: launch.probe.info.threads,
            ctas_per_cluster: 1,
            shared_bytes: launch.probe.info.shared_bytes,
            // SAFETY: the emulator runs it as it is to be launched.
            body: &|| unsafe { run(&params) },
        };
        emulator::launch(&mut memory, &grid, &self.options).map_err(|e| text(&e))?;
        let bytes = launch.c.len() as u64;
        memory.read(c, bytes).map_err(|e| text(&e))
    }
}
