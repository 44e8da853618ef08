//! Names a kernel's parameters, and aligns the tensor maps among them.
//!
//! The sources refer to the parameters of a kernel as [`PLACEHOLDERS`], because a
//! parameter's name in PTX contains the kernel's name.
//!
//! TMA requires a tensor map at a multiple of 64 bytes (CUDA driver API,
//! `cuTensorMapEncodeTiled`; CUDA C++ declares the type with `alignas(64)`). rustc 1.95 does
//! not compile kernel parameters with an alignment above 16, so the alignment that it
//! writes for the second parameter is replaced here.

use gpu_kernels::KernelInfo;

use crate::Error;
use crate::ptx::Module;

/// The alignment of a tensor map, bytes.
const ALIGNMENT: &str = ".align 64";

/// The names that the sources use (`gpu-kernels/src/isa/parameter.rs`), first parameter first.
const PLACEHOLDERS: [&str; 2] = ["gemm_params_parameter", "tensor_maps_parameter"];

/// Names the parameters of every kernel, and aligns the second one,
/// [`TensorMaps`](gpu_kernels::TensorMaps).
///
/// # Errors
/// [`Error::NoTensorMaps`] for an entry point whose second parameter is not an array with an
/// alignment.
pub fn settle(module: &mut Module, kernels: &[&KernelInfo]) -> Result<(), Error> {
    for entry in &mut module.entries {
        if kernels.iter().all(|kernel| kernel.name != entry.name) {
            continue;
        }
        let parameter = format!("{}_param_1[", entry.name);
        let raised = raised(&entry.signature, &parameter);
        entry.signature = raised.ok_or_else(|| Error::NoTensorMaps(entry.name.clone()))?;
        for (index, placeholder) in PLACEHOLDERS.iter().enumerate() {
            let name = format!("{}_param_{index}", entry.name);
            entry.body = entry.body.replace(placeholder, &name);
        }
    }
    Ok(())
}

/// `signature` with [`ALIGNMENT`] in the declaration of `parameter`.
fn raised(signature: &str, parameter: &str) -> Option<String> {
    let (before, after) = signature.split_once(parameter)?;
    let (others, declaration) = before.rsplit_once(".param")?;
    let mut words: Vec<&str> = declaration.split_whitespace().collect();
    let place = words.iter().position(|word| *word == ".align")?;
    words.splice(place..place + 2, [ALIGNMENT]);
    Some(format!(
        "{others}.param {} {parameter}{after}",
        words.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_parameter_is_aligned() {
        let signature = ".visible .entry one(\n\t.param .align 8 .b8 one_param_0[264],\n\
            \t.param .align 8 .b8 one_param_1[512]\n)";
        let expected = signature.replace(".align 8 .b8 one_param_1", ".align 64 .b8 one_param_1");
        assert_eq!(raised(signature, "one_param_1["), Some(expected));
        assert_eq!(
            raised("(\n\t.param .u64 one_param_0\n)", "one_param_1["),
            None
        );
    }
}
