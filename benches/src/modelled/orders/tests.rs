use super::*;
use crate::modelled::selection::H200;
use crate::problem::names::placements;
use crate::problem::shape::{BlasLayout, GemmShape};
use crate::text_table::TERMINAL;
use gpu_kernels::{DType, Family, OutputType};

fn problem(shape: GemmShape) -> ProblemSpec {
    ProblemSpec {
        shape,
        layout: BlasLayout::NN,
        dtype: DType::F16,
        output: OutputType::Input,
    }
}

fn defaults(shape: GemmShape) -> ModelledProblem {
    let kernels = KernelChoice::defaults(DType::F16);
    ModelledProblem::new(problem(shape), kernels, &placements(&[], &[]), true, &H200)
}

/// The cells of the line that begins with `shape`.
fn cells(text: &str, shape: &str) -> Vec<String> {
    let line = text.lines().find(|line| line.starts_with(shape));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn every_order_gets_a_row() {
    let orders = [TileOrder::RowMajor, TileOrder::GroupedM { size: 8 }];
    let kernels = [KernelChoice::Family(Family::Naive)];
    let placements = placements(&orders, &[]);
    let shape = GemmShape::new(512, 512, 128);
    let product = ModelledProblem::new(problem(shape), &kernels, &placements, false, &H200);
    let text = product.table();
    assert!(text.contains("naive_f16"), "{text}");
    assert!(
        text.contains(" row ") && text.contains("grouped:8"),
        "{text}"
    );
    // The comparison is of that kernel, and not of the one that the library chooses.
    let text = comparison(&[product], &H200);
    assert_eq!(
        cells(&text, "512x512x128")[1..3],
        ["naive_f16", "grouped:8"]
    );
}

#[test]
fn a_kernel_of_another_type_is_explained() {
    let product = ModelledProblem::new(
        problem(GemmShape::new(64, 64, 64)),
        &[KernelChoice::Entry("naive_f32")],
        &[Placement::default()],
        false,
        &H200,
    );
    let text = product.table();
    assert!(text.contains("not modelled: naive_f32"), "{text}");
    assert_eq!(comparison(&[product], &H200), "");
}

#[test]
fn the_choice_is_compared_with_row_major_order_by_its_kernel() {
    let shapes = [
        GemmShape::new(4096, 4096, 4096),
        GemmShape::new(4096, 24576, 1536),
    ];
    let products = shapes.map(defaults);
    let text = comparison(&products, &H200);
    assert!(text.contains("Modelled, not measured"), "{text}");
    for (product, shape) in products.iter().zip(shapes) {
        let chosen = choose(problem(shape), None, Placement::default(), &H200.target).unwrap();
        let row_major = Choice {
            order: TileOrder::RowMajor,
            ..chosen
        };
        let [row, order] = [row_major, chosen].map(|choice| {
            let launch = ModelledLaunch::new(product.problem, &choice, &H200);
            (launch.loads.shared(), launch.dram_gb())
        });
        let expected = [
            shape.to_string(),
            short_kernel(chosen.kernel.name, "f16").to_owned(),
            chosen.order.to_string(),
            format!("{:.0}", row.0),
            format!("{:.0}", order.0),
            format!("{:.2}", row.0 / order.0),
            three_digits(row.1),
            three_digits(order.1),
            format!("{:.2}", row.1 / order.1),
        ];
        assert_eq!(cells(&text, &expected[0]), expected, "{text}");
        // One line a product, and the same launches in the table below.
        assert_eq!(text.matches(&expected[0]).count(), 1, "{text}");
        let table = product.table();
        assert_eq!(table.matches(chosen.kernel.name).count(), 2, "{table}");
    }
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(usize::from(TERMINAL)), "{text}");
}

#[test]
fn means_are_per_wave() {
    let grid = TileGrid {
        tiles_m: 9,
        tiles_n: 9,
    };
    let loads = means(l2::block_loads(TileOrder::RowMajor, grid, 9, 9));
    let expected = MeanLoads {
        unshared: 162.0,
        a: 9.0,
        b: 81.0,
    };
    assert_eq!(loads, expected);
    assert_eq!(loads.shared(), 90.0);
}
