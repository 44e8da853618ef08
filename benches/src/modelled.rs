//! What is known without measuring: the library's choice and the model of L2.

pub mod orders;
pub mod selection;
