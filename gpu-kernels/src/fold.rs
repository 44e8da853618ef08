//! Folds the [`Form`] of a launch into a kernel's PTX.
//!
//! A kernel has all epilogues, behind branches on fields of its form, which is a part of its
//! first parameter. All launches of a module have the same form, so each load of such a
//! field (`ld.param`) becomes a `mov` of its value. The driver's compiler then removes the
//! branches that are not taken, and everything that only they use. (SPIR-V has the same
//! idea, as specialization constants.)
//!
//! Where CTAs of a launch share loads, the number of CTAs of a cluster becomes that of the form, too.
//! In the PTX it is that of another launch with the same entry point.
//!
//! Apart from that, folding only adds what is true for all launches of the module, so a load that it does not
//! recognise costs speed, not correctness.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::mem::offset_of;

use crate::form::Form;
use crate::problem::GemmParams;

/// Offset of the form in the first parameter.
const FIRST: usize = offset_of!(GemmParams, form);

/// The directive that gives an entry point the number of CTAs of a cluster.
pub const CLUSTER: &str = ".reqnctapercluster";

/// The PTX of entry point `kernel` with the values of `form` in place of the loads of its fields.
pub fn fold(ptx: &str, kernel: &str, form: &Form) -> String {
    let bytes: Vec<u8> = (form.words().iter())
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let parameter = alloc::format!("[{kernel}_param_0");
    let sharing = form.cluster.cluster().sharing();
    let mut folded = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        match Load::parse(line, &parameter) {
            Some(load) if load.touches(&bytes) => load.write(&bytes, &parameter, &mut folded),
            None if sharing > 1 && line.starts_with(CLUSTER) => {
                writeln!(folded, "{CLUSTER} {sharing}, 1, 1").expect("a String takes any text");
            }
            _ => {
                folded.push_str(line);
                folded.push('\n');
            }
        }
    }
    folded
}

/// A load from the first parameter.
struct Load<'a> {
    /// The type of each element, `u32` for example.
    dtype: &'a str,
    /// Bytes of an element.
    size: usize,
    /// The destinations, one for each element.
    registers: Vec<&'a str>,
    /// Offset of the first element in the parameter.
    offset: usize,
}

/// Number of loads of the form's fields in the PTX of `kernel`.
pub fn loads_of_form(ptx: &str, kernel: &str) -> usize {
    let parameter = alloc::format!("[{kernel}_param_0");
    let form = [0; size_of::<Form>()];
    (ptx.lines().filter_map(|line| Load::parse(line, &parameter)))
        .filter(|load| load.touches(&form))
        .count()
}

impl<'a> Load<'a> {
    /// `ld.param.TYPE register, [parameter+offset];`, or `ld.param.v2.TYPE {…}, […];`.
    fn parse(line: &'a str, parameter: &str) -> Option<Self> {
        let (kind, rest) = line
            .trim()
            .strip_prefix("ld.param.")?
            .split_once(char::is_whitespace)?;
        let (_, dtype) = kind.rsplit_once('.').unwrap_or(("", kind));
        let (registers, address) = rest.rsplit_once(", ")?;
        let offset = address.strip_prefix(parameter)?.strip_suffix("];")?;
        let bits: usize = dtype.get(1..)?.parse().ok()?;
        Some(Load {
            dtype,
            size: bits / 8,
            registers: (registers.trim().trim_matches(['{', '}']).split(','))
                .map(str::trim)
                .collect(),
            offset: match offset.strip_prefix('+') {
                Some(offset) => offset.parse().ok()?,
                None if offset.is_empty() => 0,
                None => return None,
            },
        })
    }

    /// Bytes of element `index`, if it is a part of the form.
    fn constant<'b>(&self, form: &'b [u8], index: usize) -> Option<&'b [u8]> {
        let start = (self.offset + index * self.size).checked_sub(FIRST)?;
        form.get(start..start + self.size)
    }

    /// Whether any element is a part of the form.
    fn touches(&self, form: &[u8]) -> bool {
        (0..self.registers.len()).any(|index| self.constant(form, index).is_some())
    }

    /// Writes a `mov` for each element of the form, and a load for each other element.
    fn write(&self, form: &[u8], parameter: &str, to: &mut String) {
        for (index, register) in self.registers.iter().enumerate() {
            let written = match self.constant(form, index) {
                Some(bytes) => {
                    let mut wide = [0; 8];
                    wide[..bytes.len()].copy_from_slice(bytes);
                    let value = u64::from_le_bytes(wide);
                    // A load may fill a wider register than it loads, but `mov` may not.
                    let bits = match register
                        .trim_start_matches('%')
                        .split(char::is_numeric)
                        .next()
                    {
                        Some("rs") => 16,
                        Some("rd" | "fd") => 64,
                        _ => 32,
                    };
                    writeln!(to, "\tmov.b{bits} \t{register}, {value};")
                }
                None => {
                    let (dtype, offset) = (self.dtype, self.offset + index * self.size);
                    writeln!(
                        to,
                        "\tld.param.{dtype} \t{register}, {parameter}+{offset}];"
                    )
                }
            };
            written.expect("a String takes any text");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;
    use crate::cluster::ClusterShape;
    use crate::dtype::DType;

    const FORM: Form = Form {
        scaled: 7,
        ..Form::plain(DType::Bf16)
    };

    fn folded(load: &str) -> String {
        fold(load, "k", &FORM)
            .trim()
            .replace("\n\t", " ")
            .replace('\t', "")
    }

    #[test]
    fn loads_of_the_form_become_constants() {
        let output = DType::Bf16 as u32;
        let at = |field: usize| FIRST + field;
        let load = format!(
            "ld.param.b32 \t%r1, [k_param_0+{}];",
            at(offset_of!(Form, output))
        );
        assert_eq!(
            folded(&load.replace("+0]", "]")),
            format!("mov.b32 %r1, {output};")
        );
        let load = format!(
            "ld.param.u32 \t%r1, [k_param_0+{}];",
            at(offset_of!(Form, scaled))
        );
        assert_eq!(folded(&load), "mov.b32 %r1, 7;");
        let load = format!(
            "ld.param.u8 \t%rs1, [k_param_0+{}];",
            at(offset_of!(Form, scaled))
        );
        assert_eq!(folded(&load), "mov.b16 %rs1, 7;");
        let load = format!(
            "ld.param.u32 \t%rd1, [k_param_0+{}];",
            at(offset_of!(Form, scaled))
        );
        assert_eq!(folded(&load), "mov.b64 %rd1, 7;");
        let load = format!(
            "ld.param.v2.b32 \t{{%r1, %r2}}, [k_param_0+{}];",
            at(offset_of!(Form, scaled))
        );
        assert_eq!(folded(&load), "mov.b32 %r1, 7; mov.b32 %r2, 0;");
        let last = at(size_of::<Form>() - 4);
        let load = format!("ld.param.v2.b32 \t{{%r1, %r2}}, [k_param_0+{last}];");
        let expected = format!(
            "mov.b32 %r1, 0; ld.param.b32 %r2, [k_param_0+{}];",
            last + 4
        );
        assert_eq!(folded(&load), expected);
    }

    #[test]
    fn a_cluster_has_as_many_ctas_as_the_form_says() {
        let directive = ".reqnctapercluster 2, 1, 1\n";
        assert_eq!(fold(directive, "k", &FORM), directive);
        let shape = Cluster { m: 2, n: 4, k: 1 };
        let form = Form {
            cluster: ClusterShape::of(shape),
            ..FORM
        };
        assert_eq!(fold(directive, "k", &form), ".reqnctapercluster 8, 1, 1\n");
    }

    #[test]
    fn all_else_stays() {
        let past = FIRST + size_of::<Form>();
        for line in [
            format!("ld.param.b32 %r1, [k_param_0+{past}];"),
            format!("ld.param.b64 %rd1, [k_param_0+{}];", past - 4),
            "ld.param.b32 %r1, [k_param_1];".into(),
            "ld.global.b32 %r1, [%rd1+24];".into(),
        ] {
            assert_eq!(folded(&line), line);
        }
    }
}
