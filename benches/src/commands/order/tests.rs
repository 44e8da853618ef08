use super::*;
use gpu_kernels::TileOrder;

/// Triton's example: 9×9 tiles, 9 blocks deep, 9 SMs.
fn example(order: &str) -> OrderArgs {
    arguments(&[
        "--shape=144",
        "--tile=16x16x16",
        "--sms=9",
        "--order",
        order,
    ])
    .unwrap()
}

fn arguments(arguments: &[&str]) -> Result<OrderArgs, String> {
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: OrderArgs,
    }
    Line::try_parse_from(["order"].iter().chain(arguments))
        .map(|line| line.args)
        .map_err(|error| error.to_string())
}

fn figures(mut args: OrderArgs) -> serde_json::Value {
    args.json = true;
    serde_json::from_str(&run(&args).unwrap()).unwrap()
}

#[test]
fn the_tutorials_example_is_162_90_and_54() {
    let row = figures(example("row"));
    assert_eq!(row["first_wave_blocks_uncached"], 162);
    assert_eq!(row["first_wave_blocks"], 90);
    let grouped = figures(example("grouped:3"));
    assert_eq!(grouped["first_wave_blocks_uncached"], 162);
    assert_eq!(grouped["first_wave_blocks"], 54);
}

#[test]
fn figures_are_those_of_the_model() {
    let args = arguments(&["--shape=4096x8192x512", "--order=serpentine:4", "--gpu=t4"]).unwrap();
    let counted = figures(args.clone());
    let plan = OrderAnalysis::new(&args).unwrap();
    assert_eq!(counted["tiles_m"], 32);
    assert_eq!(counted["ctas"], 40);
    assert_eq!(counted["waves"], 1024_u32.div_ceil(40));
    assert_eq!(counted["dram_read_bytes"], plan.traffic.dram_read_bytes);
    assert_eq!(counted["dram_write_bytes"], 4096 * 8192 * 2);
    // 65 TFLOP/s of the T4's tensor cores, or 320 GB/s of its DRAM.
    let milliseconds = (plan.traffic.dram_read_bytes + 4096 * 8192 * 2) as f64 / 320e6;
    let computing = 2.0 * 4096.0 * 8192.0 * 512.0 / 65e9;
    let printed = counted["bound_milliseconds"].as_f64().unwrap();
    assert!((printed / milliseconds.max(computing) - 1.0).abs() < 1e-9);
    let by = if milliseconds > computing {
        "DRAM"
    } else {
        "tensor cores"
    };
    assert_eq!(counted["bound_by"], by);
}

#[test]
fn cutlass_is_the_order_it_would_choose() {
    let args = arguments(&["--shape=8192x28672x8192", "--order=cutlass:8"]).unwrap();
    let plan = OrderAnalysis::new(&args).unwrap();
    assert_eq!(plan.order, TileOrder::GroupedN { size: 8 });
}

#[test]
fn text_shows_the_ids_where_they_fit() {
    let plan = OrderAnalysis::new(&example("grouped:3")).unwrap();
    let text = picture::text(&plan, false);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 9);
    assert_eq!(lines[1], " 1  4  7 10 13 16 19 22 25");
    let coloured = picture::text(&plan, true);
    assert_eq!(coloured.matches("\x1b[30;48;5;").count(), 81);

    let large = OrderAnalysis::new(&arguments(&["--shape=65536x65536x64"]).unwrap()).unwrap();
    let text = picture::text(&large, false);
    assert!(text.lines().count() <= 49 && text.lines().all(|line| line.chars().count() <= 100));
    assert!(text.contains("one of 11 tiles each way"), "{text}");
}

#[test]
fn svg_has_a_cell_a_tile_and_closes_what_it_opens() {
    for (shape, order) in [
        ("144", "hilbert"),
        ("100x300x16", "morton"),
        ("1600", "col"),
    ] {
        let mut args = example(order);
        args.shape = shape.parse().unwrap();
        let plan = OrderAnalysis::new(&args).unwrap();
        let svg = picture::svg(&plan).unwrap();
        let cells = svg.matches("<rect class=\"tile ").count();
        assert_eq!(cells, plan.grid.tiles() as usize, "{shape}");

        let mut open = Vec::new();
        for tag in svg.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').expect("every tag ends");
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else if !tag.ends_with('/') {
                open.push(tag.split(' ').next().unwrap());
            }
        }
        assert!(open.is_empty(), "{open:?}");
        assert!(!svg.contains('&'), "nothing here needs escaping");
        assert!(svg.contains("prefers-color-scheme: dark"));
    }
}

#[test]
fn svg_is_written_beside_the_figures() {
    let directory = tempfile::tempdir().unwrap();
    let mut args = example("hilbert");
    args.svg = Some(directory.path().join("order.svg"));
    run(&args).unwrap();
    let svg = std::fs::read_to_string(args.svg.unwrap()).unwrap();
    assert!(svg.contains(">80</text>"), "the last id is drawn");
}

#[test]
fn bad_arguments_are_refused_with_what_is_accepted() {
    for (argument, accepted) in [
        ("--order=zigzag", "hilbert"),
        ("--order=cutlass:3", "MAX_SWIZZLE"),
        ("--gpu=b200", "rtx4090"),
        ("--tile=128", "MxN"),
        ("--tile=0x16", "MxN"),
        ("--shape=12x13", "MxNxK"),
        ("--sms=0", "1..=4096"),
    ] {
        let refusal = arguments(&[argument]).unwrap_err();
        assert!(refusal.contains(accepted), "{argument}: {refusal}");
    }
    let refusal = |list: &[&str]| run(&arguments(list).unwrap()).unwrap_err().to_string();
    let text = refusal(&["--shape=65536", "--tile=1x1"]);
    assert!(text.contains("4294967296 tiles of C"), "{text}");
    let text = refusal(&["--shape=65536x65536x64", "--svg=unwritten.svg"]);
    assert!(text.contains("accepted: at most 32768"), "{text}");
    let text = refusal(&["--shape=5000000000x1x1"]);
    assert!(text.contains("M is 5000000000"), "{text}");
}
