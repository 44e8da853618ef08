//! The counts of Nsight Compute, read from its CSV, and the launches that they belong to.
//!
//! `ncu --csv --page raw` prints a line of column names, a line of units, and a line for
//! each launch. Its rows describe a launch by the kernel's name alone. So the n-th row
//! belongs to the n-th launch that the program printed, and the names must agree.

use crate::error::Error;
use crate::problem::shape::GemmShape;

/// Bytes of a sector, the unit in which L2 counts (Nsight Compute, "Memory Tables").
const SECTOR_BYTES: f64 = 32.0;

/// Bytes read from DRAM.
pub const DRAM_READ: &str = "dram__bytes_read.sum";
/// Bytes written to DRAM.
pub const DRAM_WRITE: &str = "dram__bytes_write.sum";
/// Sectors that SMs read from L2; TMA's loads are among them.
pub const L2_READ: &str = "lts__t_sectors_srcunit_tex_op_read.sum";
/// Sectors of these that were in L2.
pub const L2_HIT: &str = "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum";
/// Sectors that one partition of L2 asked of the other.
pub const L2_FABRIC: &str = "lts__t_sectors_srcunit_ltcfabric.sum";

/// One launch, as the program prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfiledLaunch {
    /// The product.
    pub shape: GemmShape,
    /// Entry point.
    pub kernel: String,
    /// Tile order.
    pub order: String,
    /// Schedule.
    pub schedule: String,
}

/// What was counted of one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// Name of the kernel.
    pub kernel: String,
    /// Bytes read from DRAM.
    pub dram_read_bytes: f64,
    /// Bytes written to DRAM.
    pub dram_write_bytes: f64,
    /// Bytes that SMs read from L2.
    pub l2_read_bytes: f64,
    /// Sectors of these that were in L2.
    pub l2_hit_bytes: f64,
    /// Bytes between the partitions of L2; `None` where the GPU has one.
    pub l2_fabric_bytes: Option<f64>,
}

impl Counts {
    /// Hits over reads, 0 to 1; `None` without reads.
    pub fn l2_hit_rate(&self) -> Option<f64> {
        (self.l2_read_bytes > 0.0).then(|| self.l2_hit_bytes / self.l2_read_bytes)
    }
}

/// The launches that the program printed, other lines left out.
///
/// # Errors
/// A line begins like a launch and names none.
pub fn launches(printed: &str) -> Result<Vec<ProfiledLaunch>, Error> {
    let lines = printed.lines().filter(|line| line.starts_with("launch "));
    lines
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [_, _, shape, _, _, kernel, order, schedule] => {
                    shape.parse().ok().map(|shape| ProfiledLaunch {
                        shape,
                        kernel: (*kernel).to_owned(),
                        order: (*order).to_owned(),
                        schedule: (*schedule).to_owned(),
                    })
                }
                _ => None,
            }
            .ok_or_else(|| {
                Error::Counters(format!(
                    "'{line}' names no launch; expected: \
                     launch N: SHAPE TYPE tilewise KERNEL ORDER SCHEDULE"
                ))
            })
        })
        .collect()
}

/// The table of a log.
///
/// # Errors
/// There is no table, or a column, a unit or a value is wrong.
pub fn counts(log: &str) -> Result<Vec<Counts>, Error> {
    let refuse = Error::Counters;
    // Lines of ncu itself stand beside the table.
    let table: Vec<&str> = log.lines().filter(|line| !line.starts_with("==")).collect();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(std::io::Cursor::new(table.join("\n")));
    let mut lines = Vec::new();
    for line in reader.records() {
        lines.push(line.map_err(|error| refuse(format!("its table cannot be read: {error}")))?);
    }
    let [names, units, rows @ ..] = lines.as_slice() else {
        return Err(refuse("its log has no table of counters".to_owned()));
    };
    let column = |column: &str| {
        let place = names.iter().position(|name| name == column);
        place.ok_or_else(|| refuse(format!("its table has no column {column}")))
    };
    let value = |name: &str, row: usize| {
        let place = column(name)?;
        let unit = units.get(place).unwrap_or_default();
        let scale = scale(unit).ok_or_else(|| {
            refuse(format!(
                "{name} is in '{unit}'; accepted: byte or sector, with K, M, G or T before it"
            ))
        })?;
        let text = rows[row].get(place).unwrap_or_default();
        let value: f64 = (text.replace(',', "").parse())
            .map_err(|_| refuse(format!("{name} of launch {row} is '{text}', not a number")))?;
        Ok::<f64, Error>(value * scale)
    };
    let kernel = column("Kernel Name")?;
    (0..rows.len())
        .map(|row| {
            Ok(Counts {
                kernel: rows[row].get(kernel).unwrap_or_default().to_owned(),
                dram_read_bytes: value(DRAM_READ, row)?,
                dram_write_bytes: value(DRAM_WRITE, row)?,
                l2_read_bytes: value(L2_READ, row)?,
                l2_hit_bytes: value(L2_HIT, row)?,
                l2_fabric_bytes: match column(L2_FABRIC) {
                    Ok(_) => Some(value(L2_FABRIC, row)?),
                    Err(_) => None,
                },
            })
        })
        .collect()
}

/// Bytes of one unit.
fn scale(unit: &str) -> Option<f64> {
    let unit = unit.to_lowercase();
    let (prefix, bytes) = match (unit.strip_suffix("byte"), unit.strip_suffix("sector")) {
        (Some(prefix), _) => (prefix, 1.0),
        (_, Some(prefix)) => (prefix, SECTOR_BYTES),
        (None, None) => return None,
    };
    let thousands = ["", "k", "m", "g", "t"]
        .iter()
        .position(|&known| known == prefix)?;
    Some(bytes * 1e3f64.powi(thousands as i32))
}

/// Each launch with what was counted of it.
///
/// # Errors
/// The numbers of launches and counts differ, or the names of a kernel.
pub fn joined(
    launches: Vec<ProfiledLaunch>,
    counts: Vec<Counts>,
) -> Result<Vec<(ProfiledLaunch, Counts)>, Error> {
    if launches.len() != counts.len() {
        return Err(Error::Counters(format!(
            "it counted {} launches of {}",
            counts.len(),
            launches.len()
        )));
    }
    let pairs = launches.into_iter().zip(counts).enumerate();
    pairs
        .map(|(row, (launch, counts))| {
            // Of a C++ kernel the name has the parameters' types behind it.
            let name = counts.kernel.split('(').next().unwrap_or_default();
            match name == launch.kernel {
                true => Ok((launch, counts)),
                false => Err(Error::Counters(format!(
                    "launch {row} was of {}, and it counted {}",
                    launch.kernel, counts.kernel
                ))),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From a run on an H200, most columns left out.
    const LOG: &str = r#"==WARNING== Note: Running with unmodified GPU clocks. If not controlled otherwise, profiling results may be inconsistent.
==PROF== Connected to process 462 (tilewise-bench)
==PROF== Disconnected from process 462
"ID","Kernel Name","Block Size","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum","lts__t_sectors_srcunit_ltcfabric.sum","lts__t_sectors_srcunit_tex_op_read.sum","lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"
"","","","byte","Mbyte","ns","sector","sector","sector"
"0","hopper_f16_ak_bn_128x256x64","(384, 1, 1)","2,350,709,248","132.5","1,515,840","72,779,569","337,472,264","232,261,116"
"1","hopper_f16_ak_bn_128x128x64","(384, 1, 1)","630,358,272","192.288","474,464","19,241,323","80,339,836","53,140,672"
"#;

    const PRINTED: &str = "\
inputs uniform [-1, 1) from seed 42
launch 0: 8192x8192x8192 f16 tilewise hopper_f16_ak_bn_128x256x64 row grid1d
launch 0: 4096x4096x32768 f16 tilewise hopper_f16_ak_bn_128x128x64 groupedn:8 grid1d
";

    fn refusal(log: &str) -> String {
        counts(log).unwrap_err().to_string()
    }

    #[test]
    fn launches_get_their_counts() {
        let pairs = joined(launches(PRINTED).unwrap(), counts(LOG).unwrap()).unwrap();
        let (launch, first) = &pairs[0];
        assert_eq!(launch.shape, GemmShape::new(8192, 8192, 8192));
        assert_eq!(
            (launch.order.as_str(), launch.schedule.as_str()),
            ("row", "grid1d")
        );
        assert_eq!(first.dram_read_bytes, 2_350_709_248.0);
        assert_eq!(first.dram_write_bytes, 132_500_000.0);
        assert_eq!(first.l2_read_bytes, 337_472_264.0 * 32.0);
        assert_eq!(first.l2_fabric_bytes, Some(72_779_569.0 * 32.0));
        assert!((first.l2_hit_rate().unwrap() - 0.688).abs() < 1e-3);
        assert_eq!(pairs[1].0.order, "groupedn:8");
    }

    #[test]
    fn a_gpu_with_one_partition_has_no_fabric() {
        let log = LOG.replace("lts__t_sectors_srcunit_ltcfabric.sum", "other");
        assert_eq!(counts(&log).unwrap()[0].l2_fabric_bytes, None);
    }

    #[test]
    fn units_are_per_column() {
        for (unit, bytes) in [
            ("byte", 1.0),
            ("Kbyte", 1e3),
            ("GByte", 1e9),
            ("sector", 32.0),
        ] {
            assert_eq!(scale(unit), Some(bytes), "{unit}");
        }
        assert_eq!(
            (scale("ns"), scale("%"), scale("xbyte")),
            (None, None, None)
        );
        let message = refusal(&LOG.replace("Mbyte", "inst"));
        assert!(
            message.contains(&format!("{DRAM_WRITE} is in 'inst'")),
            "{message}"
        );
    }

    #[test]
    fn a_log_that_does_not_fit_is_an_error_that_says_how() {
        assert!(refusal("==ERROR== no permission\n").contains("no table"));
        let message = refusal(&LOG.replace("dram__bytes_read.sum", "other"));
        assert!(
            message.ends_with(&format!("no column {DRAM_READ}")),
            "{message}"
        );
        let message = refusal(&LOG.replace("630,358,272", "n/a"));
        assert!(
            message.contains("launch 1") && message.contains("'n/a'"),
            "{message}"
        );

        let mut fewer = launches(PRINTED).unwrap();
        fewer.pop();
        let message = joined(fewer, counts(LOG).unwrap()).unwrap_err().to_string();
        assert_eq!(message, "ncu: it counted 2 launches of 1");
        let mut other = launches(PRINTED).unwrap();
        other.reverse();
        let message = joined(other, counts(LOG).unwrap()).unwrap_err().to_string();
        assert!(
            message.starts_with("ncu: launch 0 was of hopper_f16_ak_bn_128x128x64"),
            "{message}"
        );
        assert!(launches("launch 0: 8192 f16").is_err());
    }
}
