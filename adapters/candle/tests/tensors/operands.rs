//! Random tensors with strides of all kinds.

use candle_core::{DType, Device, Result, Shape, Tensor};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// The element types of products.
pub const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Makes tensors on one device, of one type, from a seed.
pub struct Operands {
    device: Device,
    dtype: DType,
    random: StdRng,
}

impl Operands {
    pub fn new(device: &Device, dtype: DType, seed: u64) -> Operands {
        Operands {
            device: device.clone(),
            dtype,
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// A tensor of numbers in -1..1, dense unless it is empty: then it is a part of one, since
    /// candle allocates no empty tensor on a GPU.
    pub fn dense(&mut self, shape: impl Into<Shape>) -> Result<Tensor> {
        let shape = shape.into();
        if let Some(empty) = shape.dims().iter().position(|&size| size == 0) {
            let mut dims = shape.into_dims();
            dims[empty] = 1;
            return self.dense(dims)?.narrow(empty, 0, 0);
        }
        let numbers: Vec<f32> = (0..shape.elem_count())
            .map(|_| self.random.random_range(-1.0..1.0))
            .collect();
        Tensor::from_vec(numbers, shape, &Device::Cpu)?
            .to_dtype(self.dtype)?
            .to_device(&self.device)
    }

    /// Tensors of the shape (…`batches`, `rows`, `cols`), one for each kind of strides.
    pub fn views(
        &mut self,
        batches: &[usize],
        rows: usize,
        cols: usize,
    ) -> Result<Vec<(&'static str, Tensor)>> {
        let rank = batches.len() + 2;
        let shape = |tail: &[usize]| [batches, tail].concat();
        Ok(vec![
            ("dense", self.dense(shape(&[rows, cols]))?),
            ("transposed", self.dense(shape(&[cols, rows]))?.t()?),
            (
                "sliced",
                self.dense(shape(&[rows + 2, cols + 3]))?
                    .narrow(rank - 2, 1, rows)?
                    .narrow(rank - 1, 3, cols)?,
            ),
            (
                "every second column",
                self.dense(shape(&[rows, cols, 2]))?
                    .narrow(rank, 1, 1)?
                    .squeeze(rank)?,
            ),
            (
                "one row repeated",
                self.dense(shape(&[1, cols]))?
                    .broadcast_as(shape(&[rows, cols]))?,
            ),
            (
                "one column repeated",
                self.dense(shape(&[rows, 1]))?
                    .broadcast_as(shape(&[rows, cols]))?,
            ),
        ])
    }
}

/// Shapes (M, N, K): small ones, and on a GPU also some of more than a tile.
pub fn shapes(device: &Device) -> &'static [(usize, usize, usize)] {
    match device {
        Device::Cpu => &[(5, 7, 3), (1, 4, 9), (16, 1, 8)],
        _ => &[
            (5, 7, 3),
            (1, 64, 9),
            (130, 66, 70),
            (256, 384, 512),
            (65, 1, 33),
        ],
    }
}
