//! Adds launch bounds, for which `rustc` has no attribute.
//!
//! `__launch_bounds__(threads, blocks)` in CUDA C++ becomes two directives
//! between the parameters and the body of an entry point, and `ptxas` derives
//! the registers a thread may use from them. Without them it also ignores
//! `setmaxnreg`. (PTX ISA, "Performance-Tuning Directives" and "Cluster
//! Dimension Directives".)

use std::fmt::Write as _;

use gpu_kernels::KernelInfo;
use gpu_kernels::fold::CLUSTER;

use crate::Error;
use crate::ptx::Module;

/// Gives every entry point of `module` the bounds of its row in `kernels`.
///
/// # Errors
/// [`Error::EntryUnknown`] for an entry point without a row.
pub fn add(module: &mut Module, kernels: &[&KernelInfo]) -> Result<(), Error> {
    for entry in &mut module.entries {
        let kernel = kernels
            .iter()
            .find(|kernel| kernel.name == entry.name)
            .ok_or_else(|| Error::EntryUnknown(entry.name.clone()))?;
        entry.directives.push_str(&directives(kernel));
    }
    Ok(())
}

/// The directives of one kernel, a line each.
fn directives(kernel: &KernelInfo) -> String {
    let mut text = String::new();
    let _ = writeln!(text, ".maxntid {}, 1, 1", kernel.threads);
    let _ = writeln!(text, ".minnctapersm {}", kernel.ctas_per_sm);
    if kernel.cluster.ctas() > 1 {
        let _ = writeln!(text, ".explicitcluster");
        let _ = writeln!(text, "{CLUSTER} {}, 1, 1", kernel.cluster.ctas());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::Cluster;
    use gpu_kernels::entry::ENTRIES;

    const PTX: &str = ".version 8.0\n.target sm_90a\n.address_size 64\n\
        .visible .entry one(\n\t.param .u64 one_param_0\n)\n{\n\tret;\n}\n";

    fn kernel(name: &'static str) -> KernelInfo {
        KernelInfo {
            name,
            threads: 384,
            ctas_per_sm: 1,
            cluster: Cluster { m: 2, n: 1, k: 1 },
            ..ENTRIES[0]
        }
    }

    #[test]
    fn bounds_stand_between_parameters_and_body() {
        let mut module = Module::parse(PTX).unwrap();
        add(&mut module, &[&kernel("one")]).unwrap();
        let text = module.program("one").unwrap();
        let expected = ")\n.maxntid 384, 1, 1\n.minnctapersm 1\n\
            .explicitcluster\n.reqnctapercluster 2, 1, 1\n{\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn a_kernel_without_clusters_gets_no_cluster_directive() {
        let single = KernelInfo {
            cluster: Cluster::NONE,
            ..kernel("one")
        };
        assert!(!directives(&single).contains("cluster"));
    }

    #[test]
    fn an_entry_point_that_is_in_no_table_is_refused() {
        let mut module = Module::parse(PTX).unwrap();
        assert!(matches!(
            add(&mut module, &[]),
            Err(Error::EntryUnknown(name)) if name == "one"
        ));
    }
}
