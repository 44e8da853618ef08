//! Runs the examples to their end, without a GPU too, by calling their `main` functions.

#[path = "../examples/matmul.rs"]
mod matmul;
#[path = "../examples/orders.rs"]
mod orders;

#[test]
fn a_planned_product_is_right() {
    matmul::main().unwrap();
}

#[test]
fn orders_are_modelled_without_a_gpu() {
    orders::main().unwrap();
}
