//! Reads Rust sources as tokens and reports what rust-cuda's code generator, at
//! the pinned commit, cannot compile or compiles wrongly.
//!
//! Tokens and not text, so that comments, strings and longer names do not count.
//! No macro is expanded: what a macro's definition says is read where it stands.
//! Items under a `cfg` that a device build of rust-cuda does not have are left out.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One place that rust-cuda cannot take.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The file; `None` where a piece of text was scanned.
    pub file: Option<PathBuf>,
    /// Counted from 1.
    pub line: usize,
    /// What it is, and what to write in its place.
    pub reason: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}:", file.display())?;
        }
        write!(f, "{}: {}", self.line, self.reason)
    }
}

/// What [`scan_crate`] has read and found.
#[derive(Debug, Default)]
pub struct Report {
    /// The files of all modules, in the order of reading.
    pub files: Vec<PathBuf>,
    pub findings: Vec<Finding>,
}

/// Names that must not stand in device code, with the reason.
const NAMES: &[(&str, &str)] = &[
    (
        "static",
        "all device globals become internal, and shared ones are reached by generic addresses; use isa::shared",
    ),
    (
        "address_space",
        "shared memory is reached by generic addresses; use isa::shared",
    ),
    ("thread_local", "not implemented"),
    (
        "atomic",
        "core's fences are refused and its atomics slow; use asm!",
    ),
    ("nvptx", "LLVM's intrinsics are not libNVVM's; use asm!"),
    ("simd", "not implemented"),
    (
        "intrinsics",
        "LLVM's intrinsics are not libNVVM's; use asm!",
    ),
    ("cuda_std", "this crate depends on neither code generator"),
    (
        "kernel",
        "an attribute for rust-cuda/kernels; it reads no arguments",
    ),
    (
        "panic_handler",
        "cuda_std has one; put it under feature = \"standalone\"",
    ),
];

/// Reads a crate's modules from the root file on.
///
/// # Errors
/// A file cannot be read, or is not Rust.
pub fn scan_crate(root: &Path) -> Result<Report, String> {
    let mut report = Report::default();
    // A file, and the directory of the modules it declares.
    let mut pending = vec![(root.to_owned(), root.with_file_name(""))];
    while let Some((path, directory)) = pending.pop() {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let scanned = scan_text(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        for finding in scanned.0 {
            let file = Some(path.clone());
            report.findings.push(Finding { file, ..finding });
        }
        for module in scanned.1 {
            let inside = directory.join(&module);
            let beside = directory.join(format!("{module}.rs"));
            let file = if beside.is_file() {
                beside
            } else {
                inside.join("mod.rs")
            };
            pending.push((file, inside));
        }
        report.files.push(path);
    }
    Ok(report)
}

/// Reads one file: what was found, and the modules it declares without a body.
///
/// # Errors
/// It is not Rust.
pub fn scan_text(text: &str) -> Result<(Vec<Finding>, Vec<String>), String> {
    let tokens: TokenStream = text.parse().map_err(|e| format!("{e}"))?;
    let mut scan = Scan::default();
    scan.stream(tokens);
    Ok((scan.findings, scan.modules))
}

#[derive(Default)]
struct Scan {
    findings: Vec<Finding>,
    modules: Vec<String>,
}

impl Scan {
    fn report(&mut self, at: &TokenTree, reason: String) {
        self.findings.push(Finding {
            file: None,
            line: at.span().start().line,
            reason,
        });
    }

    /// Reads the tokens of a file or of a group.
    fn stream(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if let Some(attribute) = inner_attribute(&tokens[at..])
                && is_left_out(attribute)
            {
                return;
            }
            if let Some(attribute) = attribute(&tokens[at..])
                && is_left_out(attribute)
            {
                at += end_of_item(&tokens[at..]);
                continue;
            }
            match token {
                TokenTree::Group(group) => {
                    if is_asm(&tokens[..at]) {
                        self.asm(group.stream());
                    }
                    self.stream(group.stream());
                }
                TokenTree::Ident(ident) => {
                    let previous = at.checked_sub(1).map(|before| &tokens[before]);
                    self.ident(token, &ident.to_string(), previous, &tokens[at + 1..]);
                }
                TokenTree::Literal(literal) => self.literal(token, &literal.to_string()),
                TokenTree::Punct(_) => {}
            }
            at += 1;
        }
    }

    /// Reads one word.
    fn ident(
        &mut self,
        token: &TokenTree,
        word: &str,
        previous: Option<&TokenTree>,
        rest: &[TokenTree],
    ) {
        if let "f16" | "f128" = word {
            self.float(token, word);
        }
        if word == "mod"
            && let [TokenTree::Ident(name), TokenTree::Punct(end), ..] = rest
            && end.as_char() == ';'
        {
            self.modules.push(name.to_string());
        }
        // 'static is two tokens.
        let lifetime = matches!(previous, Some(TokenTree::Punct(p)) if p.as_char() == '\'');
        // `mod kernel` and `kernel: &Kernel` are names of ours.
        let with_arguments = matches!(
            rest.first(),
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis
        );
        let ours = word == "kernel" && !(previous.is_none() && with_arguments);
        let Some((_, reason)) = NAMES.iter().find(|(name, _)| *name == word) else {
            return;
        };
        if !lifetime && !ours {
            self.report(token, format!("`{word}`: {reason}"));
        }
    }

    /// Reads a literal: its suffix, or an ABI.
    fn literal(&mut self, token: &TokenTree, text: &str) {
        if text == "\"ptx-kernel\"" {
            let reason = "\"ptx-kernel\": put it under feature = \"standalone\"";
            self.report(token, reason.to_owned());
        }
        let is_number = text.starts_with(|c: char| c.is_ascii_digit());
        for float in ["f16", "f128"] {
            if is_number && !text.starts_with("0x") && text.ends_with(float) {
                self.float(token, float);
            }
        }
    }

    fn float(&mut self, token: &TokenTree, name: &str) {
        let instead = "keep u16 and convert with `cvt` in asm!";
        self.report(
            token,
            format!("native {name}: rust-cuda has none; {instead}"),
        );
    }

    /// Reads the arguments of `asm!` or `global_asm!`.
    fn asm(&mut self, arguments: TokenStream) {
        let tokens: Vec<TokenTree> = arguments.into_iter().collect();
        for argument in tokens.split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ',')) {
            let [first, rest @ ..] = argument else {
                continue;
            };
            let instead = match first.to_string().as_str() {
                "sym" => "name the symbol in the text",
                "label" => "branch in Rust",
                _ => "",
            };
            if !instead.is_empty() && !rest.is_empty() {
                self.report(first, format!("asm operand `{first}`: {instead}"));
            }
            // In the text, or in the `concat!` that makes it.
            for token in argument {
                if token.to_string().contains("cvta") {
                    let instead = "use 32-bit shared-window addresses and `ld.global`";
                    self.report(token, format!("`cvta` in asm: {instead}"));
                }
            }
        }
    }
}

/// The inside of the attribute that the tokens start with.
fn attribute(tokens: &[TokenTree]) -> Option<TokenStream> {
    let (TokenTree::Punct(hash), TokenTree::Group(group)) = (tokens.first()?, tokens.get(1)?)
    else {
        return None;
    };
    let is_attribute = hash.as_char() == '#' && group.delimiter() == Delimiter::Bracket;
    is_attribute.then(|| group.stream())
}

/// The same of `#![…]`, which is about all that it stands in.
fn inner_attribute(tokens: &[TokenTree]) -> Option<TokenStream> {
    let [
        TokenTree::Punct(hash),
        TokenTree::Punct(bang),
        TokenTree::Group(group),
        ..,
    ] = tokens
    else {
        return None;
    };
    (hash.as_char() == '#' && bang.as_char() == '!').then(|| group.stream())
}

/// Whether an attribute keeps its item out of rust-cuda's build. (Written out:
/// a condition that is not known here does not.)
fn is_left_out(attribute: TokenStream) -> bool {
    let mut tokens = attribute.into_iter();
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(condition))) =
        (tokens.next(), tokens.next())
    else {
        return false;
    };
    name == "cfg" && is_false(condition.stream())
}

/// Whether a condition is false on the device, in a build without `standalone`.
fn is_false(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    let text = |tokens: &[TokenTree]| tokens.iter().map(ToString::to_string).collect::<String>();
    match &tokens[..] {
        [TokenTree::Ident(all), TokenTree::Group(parts)] if all == "all" => {
            let parts: Vec<TokenTree> = parts.stream().into_iter().collect();
            parts
                .split(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == ','))
                .any(|part| is_false(part.iter().cloned().collect()))
        }
        [TokenTree::Ident(not), TokenTree::Group(part)] if not == "not" => {
            let part: Vec<TokenTree> = part.stream().into_iter().collect();
            text(&part) == "target_arch=\"nvptx64\""
        }
        tokens => ["test", "feature=\"standalone\""].contains(&text(tokens).as_str()),
    }
}

/// How many tokens an item has, its attributes included: to its `;` or its body.
fn end_of_item(tokens: &[TokenTree]) -> usize {
    let mut at = 0;
    while attribute(&tokens[at..]).is_some() {
        at += 2;
    }
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let body = tokens[at..].iter().position(ends);
    body.map_or(tokens.len(), |end| at + end + 1)
}

/// Whether the tokens end in `asm!` or `global_asm!`.
fn is_asm(before: &[TokenTree]) -> bool {
    let [.., TokenTree::Ident(name), TokenTree::Punct(bang)] = before else {
        return false;
    };
    bang.as_char() == '!' && (name == "asm" || name == "global_asm")
}
