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

/// The straightforward simulation: every CTA's request, one at a time,
/// through a list ordered by recency.
fn traffic_by_requests(workload: &Workload, order: TileOrder, machine: Machine) -> Traffic {
    let grid = workload.grid();
    let mut total = Traffic {
        c_write_bytes: u64::from(workload.m * workload.n * workload.output_bytes),
        ..Traffic::default()
    };
    let mut recent: Vec<((char, u32, u32), u64)> = Vec::new();
    let ids: Vec<u32> = (0..grid.tiles()).collect();
    for wave in ids.chunks(machine.ctas as usize) {
        let tiles: Vec<_> = wave.iter().map(|&id| order.tile(grid, id)).collect();
        for step in 0..workload.tiles_k() {
            let depth = extent(workload.k, workload.block.k, step);
            let mut wanted: Vec<_> = tiles
                .iter()
                .map(|t| (('a', t.m, step), extent(workload.m, workload.block.m, t.m)))
                .chain(
                    tiles
                        .iter()
                        .map(|t| (('b', t.n, step), extent(workload.n, workload.block.n, t.n))),
                )
                .collect();
            wanted.sort_unstable();
            for (block, width) in wanted {
                let bytes = width * depth * u64::from(workload.input_bytes);
                total.requests += 1;
                total.l2_to_sm_bytes += bytes;
                if let Some(at) = recent.iter().position(|(held, _)| *held == block) {
                    recent.remove(at);
                    total.hits += 1;
                } else {
                    total.misses += 1;
                    total.dram_read_bytes += bytes;
                }
                recent.push((block, bytes));
                while recent.iter().map(|(_, bytes)| bytes).sum::<u64>() > machine.l2_bytes {
                    recent.remove(0);
                }
            }
        }
    }
    total
}

#[test]
fn agrees_with_one_request_at_a_time() {
    let mut product = f16_product(1000, 1300, 400);
    product.block = Block {
        m: 64,
        n: 96,
        k: 32,
    };
    for order in TileOrder::all(3) {
        for l2_bytes in [40_000, 200_000, 1 << 20, 1 << 30] {
            let machine = Machine { ctas: 13, l2_bytes };
            assert_eq!(
                traffic(&product, order, machine),
                traffic_by_requests(&product, order, machine),
                "{order:?}, L2 of {l2_bytes} bytes"
            );
        }
    }
}

#[test]
fn an_endless_cache_reads_each_operand_once() {
    let product = f16_product(1001, 2003, 777);
    let machine = Machine {
        ctas: 7,
        l2_bytes: u64::MAX,
    };
    for order in TileOrder::all(3) {
        let counted = traffic(&product, order, machine);
        assert_eq!(counted.dram_read_bytes, (1001 * 777 + 777 * 2003) * 2);
        assert_eq!(counted.c_write_bytes, 1001 * 2003 * 2);
        assert_eq!(counted.requests, counted.hits + counted.misses);
    }
}

#[test]
fn no_cache_still_shares_within_a_step() {
    let product = f16_product(1024, 1024, 640);
    let machine = Machine {
        ctas: 8,
        l2_bytes: 0,
    };
    let order = TileOrder::GroupedM { size: 4 };
    let counted = traffic(&product, order, machine);
    let shared: u64 = block_loads(order, product.grid(), product.tiles_k(), machine.ctas)
        .map(|wave| wave.shared())
        .sum();
    assert_eq!(counted.misses, shared);
}

#[test]
fn requests_do_not_depend_on_the_order() {
    let product = f16_product(3000, 2000, 500);
    let machine = Machine {
        ctas: 132,
        l2_bytes: 50 << 20,
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
    };
    let gigabytes = |order| traffic(&product, order, machine).dram_read_bytes as f64 / 1e9;
    let row_major = gigabytes(TileOrder::RowMajor);
    let grouped = gigabytes(TileOrder::GroupedM { size: 16 });
    assert!(
        grouped < row_major / 3.0,
        "{grouped} GB against {row_major} GB"
    );
}
