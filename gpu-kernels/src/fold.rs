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
    let parameter = FirstParameter::of(ptx, kernel);
    let sharing = form.cluster.cluster().sharing();
    let mut folded = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        match parameter.load(line) {
            Some(load) if load.touches(&bytes) => load.write(&bytes, &mut folded),
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

/// Number of loads of the form's fields in the PTX of `kernel`.
pub fn loads_of_form(ptx: &str, kernel: &str) -> usize {
    let parameter = FirstParameter::of(ptx, kernel);
    let form = [0; size_of::<Form>()];
    (ptx.lines().filter_map(|line| parameter.load(line)))
        .filter(|load| load.touches(&form))
        .count()
}

/// How a kernel's PTX names the address of the first parameter.
struct FirstParameter<'a> {
    name: String,
    /// The registers that hold the address, and nothing else: LLVM 7 (rust-cuda) loads through these.
    registers: Vec<&'a str>,
}

impl<'a> FirstParameter<'a> {
    fn of(ptx: &'a str, kernel: &str) -> Self {
        let name = alloc::format!("{kernel}_param_0");
        let mut registers: Vec<&str> = (instructions(ptx))
            .filter_map(|instruction| {
                let (destination, source) = instruction.strip_prefix("mov.")?.split_once(',')?;
                let (_, register) = destination.split_once(char::is_whitespace)?;
                let register = register.trim();
                (source.trim() == name && register.starts_with('%')).then_some(register)
            })
            .collect();
        if !registers.is_empty() {
            let written: Vec<&str> = instructions(ptx).flat_map(destinations).collect();
            let times = |register| written.iter().filter(|&&other| other == register).count();
            registers.retain(|&register| times(register) == 1);
        }
        FirstParameter { name, registers }
    }

    /// The load from the parameter that `line` is, if it is one.
    fn load<'l>(&'l self, line: &'l str) -> Option<Load<'l>> {
        let registers = self.registers.iter().copied();
        [self.name.as_str()]
            .into_iter()
            .chain(registers)
            .find_map(|address| Load::parse(line, address))
    }
}

/// The instructions of a text of PTX, without their predicates.
fn instructions(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines().flat_map(|line| line.split(';')).map(|text| {
        let text = text.trim_start_matches(['{', '}', ' ', '\t']);
        match text.strip_prefix('@') {
            Some(predicated) => predicated
                .split_once(char::is_whitespace)
                .map_or("", |(_, instruction)| instruction.trim_start()),
            None => text,
        }
    })
}

/// The registers that `instruction` writes, and whatever else stands first in it.
fn destinations(instruction: &str) -> impl Iterator<Item = &str> {
    let (_, operands) = (instruction.split_once(char::is_whitespace)).unwrap_or_default();
    let operands = operands.trim_start();
    let first = match operands.strip_prefix('{') {
        Some(vector) => vector.split_once('}').map_or(vector, |(vector, _)| vector),
        None => operands
            .split_once(',')
            .map_or(operands, |(first, _)| first),
    };
    first.split([',', '|']).map(str::trim)
}

/// A load from the first parameter.
struct Load<'a> {
    /// The address of the parameter: its name, or a register.
    parameter: &'a str,
    /// The type of each element, `u32` for example.
    dtype: &'a str,
    /// Bytes of an element.
    size: usize,
    /// The destinations, one for each element.
    registers: Vec<&'a str>,
    /// Offset of the first element in the parameter.
    offset: usize,
}

impl<'a> Load<'a> {
    /// `ld.param.TYPE register, [parameter+offset];`, or `ld.param.v2.TYPE {…}, […];`.
    fn parse(line: &'a str, parameter: &'a str) -> Option<Self> {
        let (kind, rest) = line
            .trim()
            .strip_prefix("ld.param.")?
            .split_once(char::is_whitespace)?;
        let (_, dtype) = kind.rsplit_once('.').unwrap_or(("", kind));
        let (registers, address) = rest.rsplit_once(", ")?;
        let address = address.strip_prefix('[')?.strip_suffix("];")?;
        let offset = address.strip_prefix(parameter)?;
        let bits: usize = dtype.get(1..)?.parse().ok()?;
        Some(Load {
            parameter,
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
    fn write(&self, form: &[u8], to: &mut String) {
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
                    let Load {
                        parameter, dtype, ..
                    } = self;
                    let offset = self.offset + index * self.size;
                    writeln!(
                        to,
                        "\tld.param.{dtype} \t{register}, [{parameter}+{offset}];"
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
    fn loads_through_a_register_with_the_address_are_loads_of_the_parameter() {
        let at = FIRST + offset_of!(Form, scaled);
        let address = "mov.u64 \t%rd5, k_param_0;\n";
        let load = format!("ld.param.u32 \t%r1, [%rd5+{at}];");
        let program = format!("{address}{load}");
        assert_eq!(loads_of_form(&program, "k"), 1);
        assert!(folded(&program).ends_with("mov.b32 %r1, 7;"));
        let last = FIRST + size_of::<Form>() - 4;
        let pair = format!("{address}ld.param.v2.u32 \t{{%r1, %r2}}, [%rd5+{last}];");
        let outside = format!("ld.param.u32 %r2, [%rd5+{}];", last + 4);
        assert!(folded(&pair).ends_with(&format!("mov.b32 %r1, 0; {outside}")));
        // The register may hold another address, or the address may be another parameter's.
        for other in [
            "add.s64 %rd5, %rd5, 8;",
            "@%p1 mov.u64 %rd5, %rd6;",
            "ld.global.v2.u64 {%rd4, %rd5}, [%rd6];",
            "{ .reg .b64 parameter; mov.b64 %rd5, parameter; }",
        ] {
            let program = format!("{address}{other}\n{load}");
            assert_eq!(loads_of_form(&program, "k"), 0, "{other}");
        }
        for address in ["mov.u64 %rd5, k_param_1;", "mov.u64 %rd50, k_param_0;", ""] {
            assert_eq!(
                loads_of_form(&format!("{address}\n{load}"), "k"),
                0,
                "{address}"
            );
        }
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
