//! The text of a PTX module, cut into its top-level statements.
//!
//! It reads only the part of PTX that LLVM's NVPTX back end writes: a header of three
//! directives, then declarations that end in `;` and functions that end in `}`. (PTX ISA,
//! "Source Format" and "Directives".)

use crate::Error;

/// An entry point: `.visible .entry NAME(parameters) directives { body }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name the driver looks up.
    pub name: String,
    /// From `.visible` to the closing parenthesis.
    pub signature: String,
    /// Performance directives, each on its own line.
    pub directives: String,
    /// From `{` to `}`.
    pub body: String,
}

/// A module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// `.version`, `.target`, `.address_size`.
    pub header: String,
    /// Declarations of dynamic shared memory, which have no size of their own.
    pub shared: Vec<String>,
    /// Everything else outside the entry points: functions that were not
    /// inlined, and variables.
    pub others: Vec<String>,
    /// The entry points.
    pub entries: Vec<Entry>,
}

impl Module {
    /// Reads a module.
    ///
    /// # Errors
    /// [`Error::Syntax`] with the line of a statement that does not end, or of an
    /// entry point without a name or parameters.
    pub fn parse(text: &str) -> Result<Module, Error> {
        let mut module = Module {
            header: String::new(),
            shared: Vec::new(),
            others: Vec::new(),
            entries: Vec::new(),
        };
        for statement in statements(text)? {
            let text = statement.text.trim_start();
            if is_header(text) {
                module.header.push_str(text);
            } else if text.starts_with(".extern .shared") {
                module.shared.push(text.to_owned());
            } else if text.starts_with(".visible .entry") || text.starts_with(".entry") {
                module.entries.push(entry(text, statement.line)?);
            } else {
                module.others.push(text.to_owned());
            }
        }
        Ok(module)
    }

    /// A module with the entry point `name` alone, and everything it may refer to.
    pub fn program(&self, name: &str) -> Option<String> {
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        let mut text = self.header.clone();
        for statement in self.shared.iter().chain(&self.others) {
            text.push_str(statement);
        }
        for part in [&entry.signature, "\n", &entry.directives, &entry.body] {
            text.push_str(part);
        }
        Some(text)
    }

    /// The first line of each statement in [`Module::others`], declarations that
    /// a definition repeats left out.
    pub fn leftovers(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .others
            .iter()
            .map(|text| text.lines().next().unwrap_or_default())
            .map(|line| line.trim_end_matches([';', '(', ')', ' ']).to_owned())
            .collect();
        lines.sort();
        lines.dedup();
        lines
    }
}

/// One top-level statement.
struct Statement {
    /// Where it starts, counted from 1.
    line: usize,
    /// Its lines, comments removed.
    text: String,
}

/// Whether a line is one of the directives that end with their line.
fn is_header(line: &str) -> bool {
    [".version", ".target", ".address_size"]
        .iter()
        .any(|directive| line.starts_with(directive))
}

/// Cuts a module into statements.
fn statements(text: &str) -> Result<Vec<Statement>, Error> {
    let mut statements = Vec::new();
    let mut current = Statement {
        line: 0,
        text: String::new(),
    };
    let mut depth = 0_usize;
    for (index, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default().trim_end();
        if code.is_empty() {
            continue;
        }
        if current.text.is_empty() {
            current.line = index + 1;
        }
        current.text.push_str(code);
        current.text.push('\n');
        let mut closed = false;
        for byte in code.bytes() {
            match byte {
                b'{' => depth += 1,
                b'}' => {
                    depth = depth.checked_sub(1).ok_or(Error::Syntax {
                        line: index + 1,
                        reason: "a `}` without its `{`",
                    })?;
                    closed = depth == 0;
                }
                _ => {}
            }
        }
        if depth == 0 && (closed || code.ends_with(';') || is_header(code.trim_start())) {
            statements.push(std::mem::replace(
                &mut current,
                Statement {
                    line: 0,
                    text: String::new(),
                },
            ));
        }
    }
    if current.text.is_empty() {
        Ok(statements)
    } else {
        Err(Error::Syntax {
            line: current.line,
            reason: "a statement that does not end",
        })
    }
}

/// Takes an entry point apart.
fn entry(text: &str, line: usize) -> Result<Entry, Error> {
    let syntax = |reason| Error::Syntax { line, reason };
    let body = text
        .find('{')
        .ok_or_else(|| syntax("an entry point without a body"))?;
    let parameters_end = text[..body]
        .rfind(')')
        .ok_or_else(|| syntax("an entry point without parameters"))?;
    let name = text[..body]
        .split_once(".entry")
        .and_then(|(_, rest)| rest.split_once('('))
        .map(|(name, _)| name.trim())
        .filter(|name| !name.is_empty())
        .ok_or_else(|| syntax("an entry point without a name"))?;
    let directives = text[parameters_end + 1..body].trim_start();
    Ok(Entry {
        name: name.to_owned(),
        signature: text[..=parameters_end].to_owned(),
        directives: directives.to_owned(),
        body: text[body..].to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
//
// Generated by LLVM NVPTX Back-End
//
.version 8.0
.target sm_90a
.address_size 64
\t// .globl\tone
.extern .shared .align 1024 .b8 dyn_smem[];
.func helper()
.noreturn;
.visible .entry one(
\t.param .u64 one_param_0
)                                       // @one
{
\t{ .reg .b32 t; mov.u32 t, 0; }
\tret;
                                        // -- End function
}
.visible .entry two()
.maxntid 64, 1, 1
{
\tret;
}
.func helper()
.noreturn
{
\ttrap;
}
";

    #[test]
    fn a_module_is_read_whole() {
        let module = Module::parse(PTX).unwrap();
        assert_eq!(
            module.header,
            ".version 8.0\n.target sm_90a\n.address_size 64\n"
        );
        assert_eq!(
            module.shared,
            [".extern .shared .align 1024 .b8 dyn_smem[];\n"]
        );
        let names: Vec<&str> = module.entries.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(module.entries[1].directives, ".maxntid 64, 1, 1\n");
        assert_eq!(module.leftovers(), [".func helper"]);
    }

    #[test]
    fn a_program_has_one_entry_point_and_reads_back() {
        let module = Module::parse(PTX).unwrap();
        let one = Module::parse(&module.program("one").unwrap()).unwrap();
        assert_eq!(one.entries, module.entries[..1]);
        assert_eq!(one.header, module.header);
        assert_eq!(one.shared, module.shared);
        assert_eq!(one.others, module.others);
        assert_eq!(module.program("three"), None);
    }

    #[test]
    fn broken_text_is_refused_with_its_line() {
        let open = ".version 8.0\n.visible .entry one()\n{\n";
        assert!(matches!(
            Module::parse(open),
            Err(Error::Syntax { line: 2, .. })
        ));
        assert!(matches!(
            Module::parse(".version 8.0\n}\n"),
            Err(Error::Syntax { line: 2, .. })
        ));
        assert!(matches!(
            Module::parse(".visible .entry (\n)\n{\n}\n"),
            Err(Error::Syntax { line: 1, .. })
        ));
    }
}
