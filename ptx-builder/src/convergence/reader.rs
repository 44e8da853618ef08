//! Reads the text of a module into [`Entry`]s.

use std::collections::{HashMap, HashSet};

use super::instruction::{Entry, Guard, Instruction};
use super::operand::Operand;
use super::operation::{self, Operation};
use crate::Error;

/// Reads the entry points and functions of a module.
pub(super) fn entries(ptx: &str) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    let mut lines = (ptx.lines().enumerate())
        .map(|(index, text)| (index + 1, text.split("//").next().unwrap_or_default()));
    while let Some((start, first)) = lines.next() {
        let is_function = first.trim_start().starts_with(".func");
        if !is_function && !first.contains(".entry") {
            continue;
        }
        let mut head = String::new();
        let mut reader = Reader {
            is_function,
            ..Reader::default()
        };
        let mut declares_only = false;
        let mut line = Some((start, first));
        while let Some((number, code)) = line {
            if reader.depth > 0 {
                reader.line(number, code)?;
            } else if let Some((before, after)) = code.split_once('{') {
                head.push_str(before);
                reader.open_scope();
                reader.line(number, after)?;
            } else {
                head.push_str(code);
                head.push('\n');
                declares_only = code.trim_end().ends_with(';');
            }
            if reader.ended || declares_only {
                break;
            }
            line = lines.next();
        }
        if declares_only {
            continue;
        }
        if !reader.ended {
            return Err(Error::Syntax {
                line: start,
                reason: "an entry point that does not end",
            });
        }
        entries.push(reader.finish(&head));
    }
    Ok(entries)
}

/// Reads the body of an entry point.
#[derive(Default)]
struct Reader {
    is_function: bool,
    /// Braces that are open.
    depth: usize,
    /// Whether the body's own brace is closed.
    ended: bool,
    /// Names declared by `.reg` in each open scope, with their registers. Names like
    /// `%r<9>` stand here as `%r`, and have no register of their own.
    scopes: Vec<HashMap<String, Option<usize>>>,
    /// Registers of names with numbers, such as `%r7`.
    numbered: HashMap<String, usize>,
    registers: usize,
    /// Parameters and results of calls, by name.
    call_parameters: HashSet<String>,
    /// The statement that is being read, and where it began.
    statement: String,
    began: usize,
    /// Braces open inside the statement: those of vectors.
    vector: usize,
    instructions: Vec<Instruction>,
    labels: HashMap<String, usize>,
    branch_targets: HashMap<String, Vec<String>>,
    /// The label that was read last, for a `.branchtargets` behind it.
    last_label: String,
}

impl Reader {
    fn open_scope(&mut self) {
        self.depth += 1;
        self.scopes.push(HashMap::new());
    }

    /// Reads a line.
    fn line(&mut self, line: usize, code: &str) -> Result<(), Error> {
        let syntax = |reason| Error::Syntax { line, reason };
        let mut rest = code.chars().peekable();
        while let Some(character) = rest.next() {
            if self.ended {
                break;
            }
            let empty = self.statement.trim().is_empty();
            if empty && !character.is_whitespace() {
                self.began = line;
            }
            match character {
                '{' if empty => self.open_scope(),
                '{' => {
                    self.vector += 1;
                    self.statement.push(character);
                }
                '}' if self.vector > 0 => {
                    self.vector -= 1;
                    self.statement.push(character);
                }
                '}' if empty => {
                    self.scopes.pop();
                    self.depth -= 1;
                    self.ended = self.depth == 0;
                }
                '}' => return Err(syntax("a statement without its `;`")),
                ';' => {
                    let statement = std::mem::take(&mut self.statement);
                    self.statement(statement.trim())?;
                }
                ':' if rest.peek() == Some(&':') => {
                    rest.next();
                    self.statement.push_str("::");
                }
                ':' => {
                    self.last_label = std::mem::take(&mut self.statement).trim().to_owned();
                    let next = self.instructions.len();
                    self.labels.insert(self.last_label.clone(), next);
                }
                _ => self.statement.push(character),
            }
        }
        self.statement.push(' ');
        Ok(())
    }

    /// Reads a statement, its `;` removed.
    fn statement(&mut self, statement: &str) -> Result<(), Error> {
        if let Some(declaration) = statement.strip_prefix(".reg") {
            // `.reg .b32 %r<9>`, `.reg .pred p, q`.
            let names = declaration.trim_start();
            let names = names.split_once(char::is_whitespace).map_or("", |(_, n)| n);
            for name in names.split(',') {
                let name = name.trim();
                let scope = self.scopes.last_mut().ok_or(Error::Syntax {
                    line: self.began,
                    reason: "a declaration outside a body",
                })?;
                match name.split_once('<') {
                    Some((prefix, _)) => scope.insert(prefix.to_owned(), None),
                    None => {
                        let register = self.registers;
                        self.registers += 1;
                        scope.insert(name.to_owned(), Some(register))
                    }
                };
            }
            return Ok(());
        }
        if let Some(targets) = statement.strip_prefix(".branchtargets") {
            let targets = targets.split(',').map(|name| name.trim().to_owned());
            self.branch_targets
                .insert(self.last_label.clone(), targets.collect());
            return Ok(());
        }
        if statement.starts_with(".param") {
            let name = statement.split_whitespace().next_back().unwrap_or_default();
            let name = name.split('[').next().unwrap_or_default();
            self.call_parameters.insert(name.to_owned());
            return Ok(());
        }
        if statement.is_empty() || statement.starts_with('.') {
            return Ok(());
        }
        let instruction = self.instruction(statement)?;
        self.instructions.push(instruction);
        Ok(())
    }

    fn instruction(&mut self, statement: &str) -> Result<Instruction, Error> {
        let text = statement.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut rest = text.as_str();
        let mut guard = None;
        if let Some(predicated) = rest.strip_prefix('@') {
            let (name, instruction) = predicated.split_once(' ').ok_or(Error::Syntax {
                line: self.began,
                reason: "a predicate without an instruction",
            })?;
            let Operand::Register(register) = self.name(name.trim_start_matches('!')) else {
                return Err(Error::Syntax {
                    line: self.began,
                    reason: "a predicate that is no declared register",
                });
            };
            guard = Some(Guard { register });
            rest = instruction;
        }
        let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        let operands: Vec<Operand> = split(operands, ',')
            .into_iter()
            .map(|operand| self.operand(operand))
            .collect();
        let written = operation::written(opcode, &operands);
        let (results, sources) = operands.split_at(written);
        let operation = match Operation::of(opcode, results, sources) {
            // What a function is given or returns.
            _ if opcode.starts_with("ld.param") && !self.is_of_the_launch(&operands) => {
                Operation::Varying
            }
            operation => operation,
        };
        Ok(Instruction {
            line: self.began,
            guard,
            operation,
            written,
            opcode: opcode.to_owned(),
            operands,
            text,
        })
    }

    /// Whether the address among `operands` is that of a parameter of the launch.
    fn is_of_the_launch(&self, operands: &[Operand]) -> bool {
        let symbol = |part: &Operand| match part {
            Operand::Symbol(name) => !self.call_parameters.contains(name),
            _ => true,
        };
        let of_the_launch = |operand: &Operand| match operand {
            Operand::Address(parts) => parts.iter().all(|part| match part {
                Operand::Several(parts) => parts.iter().all(symbol),
                part => symbol(part),
            }),
            _ => true,
        };
        !self.is_function && operands.iter().all(of_the_launch)
    }

    fn operand(&mut self, text: &str) -> Operand {
        let inside = |open, close| {
            text.strip_prefix(open)
                .and_then(|rest| rest.strip_suffix(close))
        };
        if let Some(parts) = inside('{', '}').or(inside('(', ')')) {
            return Operand::Several(self.operands(parts));
        }
        if let Some(parts) = inside('[', ']') {
            return Operand::Address(self.operands(parts));
        }
        let parts = split(text, '|');
        if parts.len() > 1 {
            let parts = parts.into_iter().map(|part| self.operand(part));
            return Operand::Several(parts.collect());
        }
        if let Some(value) = immediate(text) {
            return Operand::Immediate(value);
        }
        // `name+16`, in an address.
        match text.split_once('+') {
            Some((name, offset)) => {
                let parts = [name, offset].map(|part| self.operand(part.trim()));
                Operand::Several(parts.to_vec())
            }
            None => self.name(text.trim_start_matches('!')),
        }
    }

    fn operands(&mut self, text: &str) -> Vec<Operand> {
        let parts = split(text, ',').into_iter();
        parts.map(|part| self.operand(part)).collect()
    }

    /// What a name means: a declared register, in the innermost scope that has it, or
    /// something else.
    fn name(&mut self, name: &str) -> Operand {
        let innermost = |name: &str| self.scopes.iter().rev().find_map(|scope| scope.get(name));
        if let Some(Some(register)) = innermost(name) {
            return Operand::Register(*register);
        }
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if prefix != name && innermost(prefix).is_some() {
            let next = self.registers;
            let register = *self.numbered.entry(name.to_owned()).or_insert(next);
            self.registers = self.registers.max(register + 1);
            return Operand::Register(register);
        }
        if name.starts_with('%') {
            return Operand::Special(name.to_owned());
        }
        Operand::Symbol(name.to_owned())
    }

    fn finish(self, head: &str) -> Entry {
        Entry {
            is_function: self.is_function,
            instructions: self.instructions,
            labels: self.labels,
            branch_targets: self.branch_targets,
            registers: self.registers,
            one_dimensional: is_one_dimensional(head),
        }
    }
}

/// Whether the directives of an entry point say that its CTAs extend along x alone.
fn is_one_dimensional(head: &str) -> bool {
    head.lines().any(|line| {
        let extents = [".maxntid", ".reqntid"]
            .iter()
            .find_map(|directive| line.trim().strip_prefix(directive));
        extents.is_some_and(|extents| {
            extents
                .split(',')
                .skip(1)
                .all(|extent| extent.trim() == "1")
        })
    })
}

/// Cuts at a separator that stands outside all brackets; empty parts are dropped.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_usize);
    for (at, character) in text.char_indices() {
        match character {
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            _ if character == separator && depth == 0 => {
                parts.push(&text[start..at]);
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    let parts = parts.into_iter().map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

/// A number as PTX writes it (PTX ISA, "Constants").
fn immediate(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let hexadecimal = ["0x", "0X", "0f", "0F", "0d", "0D"]
        .iter()
        .find_map(|prefix| digits.strip_prefix(prefix));
    let value = match hexadecimal {
        Some(digits) => i64::from_str_radix(digits, 16)
            .or_else(|_| u64::from_str_radix(digits, 16).map(u64::cast_signed))
            .ok()?,
        None => digits
            .parse()
            .or_else(|_| digits.parse().map(u64::cast_signed))
            .ok()?,
    };
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}
