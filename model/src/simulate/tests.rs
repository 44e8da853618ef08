use gpu_kernels::Block;

use super::*;

const BLOCK: Block = Block {
    m: 128,
    n: 256,
    k: 64,
};

fn f16_product(m: u32, n: u32, k: u32) -> Workload {
    Workload {
        m,
        n,
        k,
        block: BLOCK,
        input_bytes: 2,
        output_bytes: 2,
    }
}

#[test]
fn an_endless_cache_reads_each_operand_once() {
    let product = f16_product(1001, 2003, 777);
    let machine = Machine {
        ctas: 7,
        l2_bytes: u64::MAX,
        l2_partitions: 2,
    };
    for order in TileOrder::all(3) {
        let counted = traffic(&product, order, machine);
        assert_eq!(counted.dram_read_bytes, (1001 * 777 + 777 * 2003) * 2);
        assert_eq!(counted.c_write_bytes, 1001 * 2003 * 2);
    }
}

#[test]
fn without_a_cache_every_request_goes_to_dram() {
    let product = f16_product(1024, 1024, 640);
    let machine = Machine {
        ctas: 8,
        l2_bytes: 0,
        l2_partitions: 2,
    };
    let counted = traffic(&product, TileOrder::GroupedM { size: 4 }, machine);
    assert_eq!(counted.dram_read_bytes, counted.l2_to_sm_bytes);
    assert_eq!(counted.hit_rate(), 0.0);
}

#[test]
fn one_partition_asks_no_other_and_two_ask_at_most_once_a_line() {
    let product = f16_product(2048, 2048, 1024);
    let counted = |l2_partitions| {
        let machine = Machine {
            ctas: 32,
            l2_bytes: 60 << 20,
            l2_partitions,
        };
        traffic(&product, TileOrder::RowMajor, machine)
    };
    let (one, two) = (counted(1), counted(2));
    assert_eq!(one.between_partitions_bytes, 0);
    assert_eq!(one.dram_read_bytes, two.dram_read_bytes);
    assert!(two.between_partitions_bytes <= two.dram_read_bytes);
    assert!(two.between_partitions_bytes > two.dram_read_bytes / 2);
}

#[test]
fn copies_halve_what_two_partitions_hold() {
    // A and B together are 48 MiB, which fits once but not twice.
    let product = f16_product(4096, 8192, 2048);
    let read = |l2_partitions| {
        let machine = Machine {
            ctas: 132,
            l2_bytes: 100 << 20,
            l2_partitions,
        };
        traffic(&product, TileOrder::RowMajor, machine).dram_read_bytes
    };
    let once = (4096 + 8192) * 2048 * 2;
    assert!(read(1) < once * 11 / 10, "{} of {once}", read(1));
    assert!(read(2) > read(1));
}

#[test]
fn requests_do_not_depend_on_the_order() {
    let product = f16_product(3000, 2000, 500);
    let machine = Machine {
        ctas: 132,
        l2_bytes: 50 << 20,
        l2_partitions: 2,
    };
    let row = traffic(&product, TileOrder::RowMajor, machine);
    let column = traffic(&product, TileOrder::ColumnMajor, machine);
    let tiles = u64::from(product.grid().tiles());
    assert_eq!(row.requests, 2 * tiles * u64::from(product.tiles_k()));
    assert_eq!(row.requests, column.requests);
    assert_eq!(row.l2_to_sm_bytes, column.l2_to_sm_bytes);
}

#[test]
fn nothing_to_do_is_no_traffic() {
    let machine = Machine {
        ctas: 0,
        l2_bytes: 0,
        l2_partitions: 0,
    };
    let empty = traffic(&f16_product(0, 512, 64), TileOrder::RowMajor, machine);
    assert_eq!((empty, empty.hit_rate()), (Traffic::default(), 1.0));
    let no_depth = traffic(&f16_product(256, 256, 0), TileOrder::RowMajor, machine);
    assert_eq!((no_depth.requests, no_depth.c_write_bytes), (0, 131_072));
}

#[test]
fn large_square_product_prefers_near_square_waves() {
    let product = f16_product(16384, 16384, 16384);
    let machine = Machine {
        ctas: 132,
        l2_bytes: 50 << 20,
        l2_partitions: 2,
    };
    let gigabytes = |order| traffic(&product, order, machine).dram_read_bytes as f64 / 1e9;
    let row_major = gigabytes(TileOrder::RowMajor);
    let grouped = gigabytes(TileOrder::GroupedM { size: 16 });
    assert!(
        grouped < row_major / 3.0,
        "{grouped} GB against {row_major} GB"
    );
}
