//! The operations, as arguments name them.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tilewise_parallel::program::Operation;

/// The operations by their names.
const OPERATIONS: [(&str, Operation); 3] = [
    ("all-gather", Operation::AllGather),
    ("reduce-scatter", Operation::ReduceScatter),
    ("all-reduce", Operation::AllReduce),
];

/// Parses the name of an operation.
pub fn operation() -> impl TypedValueParser<Value = Operation> {
    let index = |name: String| OPERATIONS.iter().position(|(other, _)| *other == name);
    PossibleValuesParser::new(OPERATIONS.map(|(name, _)| name))
        .map(move |name| OPERATIONS[index(name).unwrap_or(0)].1)
}

/// The operation of this name.
pub fn of_name(name: &str) -> Option<Operation> {
    let found = OPERATIONS.iter().find(|(other, _)| *other == name);
    found.map(|&(_, operation)| operation)
}

/// The name of the operation.
pub fn name_of(operation: Operation) -> &'static str {
    let found = OPERATIONS.iter().find(|(_, other)| *other == operation);
    found.map_or("", |&(name, _)| name)
}
