//! The names of the code generators, as a user asks for one.

use std::env;
use std::str::FromStr;

/// `TILEWISE_CODEGEN=auto|rustc|rust-cuda`: which code generator to use.
pub const CODEGEN: &str = "TILEWISE_CODEGEN";

/// The code generator that a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codegen {
    /// rust-cuda where all of it is there and works, rustc's NVPTX otherwise.
    #[default]
    Auto,
    /// rustc's own NVPTX back end.
    Rustc,
    /// rust-cuda or nothing.
    RustCuda,
}

impl Codegen {
    /// All of them.
    pub const ALL: [Codegen; 3] = [Codegen::Auto, Codegen::Rustc, Codegen::RustCuda];

    /// The name on the command line and in [`CODEGEN`].
    pub const fn name(self) -> &'static str {
        match self {
            Codegen::Auto => "auto",
            Codegen::Rustc => "rustc",
            Codegen::RustCuda => "rust-cuda",
        }
    }

    /// The code generator that [`CODEGEN`] asks for.
    ///
    /// # Errors
    /// The variable holds another name.
    pub fn from_env() -> Result<Codegen, UnknownCodegen> {
        match env::var_os(CODEGEN) {
            Some(value) => value.to_string_lossy().parse(),
            None => Ok(Codegen::default()),
        }
    }
}

impl FromStr for Codegen {
    type Err = UnknownCodegen;

    fn from_str(name: &str) -> Result<Codegen, UnknownCodegen> {
        let mut all = Codegen::ALL.into_iter();
        all.find(|codegen| codegen.name() == name)
            .ok_or_else(|| UnknownCodegen {
                name: name.to_owned(),
            })
    }
}

/// No code generator has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no code generator is called `{name}`; there are {}",
    Codegen::ALL.map(Codegen::name).join(", ")
)]
pub struct UnknownCodegen {
    /// The name asked for.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for codegen in Codegen::ALL {
            assert_eq!(codegen.name().parse::<Codegen>().unwrap(), codegen);
        }
        let error = "nvvm".parse::<Codegen>().unwrap_err().to_string();
        assert_eq!(
            error,
            "no code generator is called `nvvm`; there are auto, rustc, rust-cuda"
        );
    }
}
