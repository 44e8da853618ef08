//! placeholder
fn main() {
    use tilewise_emulate::*;
    let args: Vec<String> = std::env::args().collect();
    let kernel = case::kernel(&args[1]).unwrap();
    let d: Vec<u32> = args[2].split('x').map(|x| x.parse().unwrap()).collect();
    let mut case = Case::new(kernel, d[0], d[1], d[2]);
    if args.len() > 4 {
        case.sharers = args[4].parse().unwrap();
        case.resident = case.sharers
    }
    let options = gpu_kernels::emulator::Options {
        checks: args[3] != "off",
        seed: args[3].parse().unwrap_or(0),
        ..Default::default()
    };
    let t = std::time::Instant::now();
    match run(&case, &options) {
        Ok(o) => println!(
            "ok {} ctas, {} instrs, err {:e}, conflicts {}/{}",
            o.ctas,
            o.counts.instructions(),
            o.largest_error,
            o.counts.bank_conflicts,
            o.counts.shared_accesses
        ),
        Err(e) => println!("{e}"),
    }
    println!("{:?}", t.elapsed());
}
