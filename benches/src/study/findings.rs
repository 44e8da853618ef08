//! The report of a study, from its rows alone.

use crate::measure::regime::Regime;
use crate::measure::stats::median;
use crate::study::accuracy::{self, CLOSE, DRAM_READ, EQUAL, QUANTITIES, Ranking};
use crate::study::groups::{self, RowGroup};
use crate::study::row::StudyRow;
use crate::study::rules::{self, CHOICE, REGIMES, RuleRegret};
use crate::text_table::{Table, decimals, text_or_empty};

/// All tables, then the summaries.
pub fn render(rows: &[StudyRow]) -> String {
    let (groups, products) = (groups::groups(rows), groups::products(rows));
    [
        bytes(&groups),
        times(&groups, Regime::Sustained),
        times(&groups, Regime::Cold),
        predictions(rows),
        rankings(&groups, "product and kernel", |group| group.name()),
        rankings(&products, "product, all its kernels together", |group| {
            group.product()
        }),
        regrets(&groups),
    ]
    .concat()
}

fn percent(share: f64) -> String {
    format!("{:.2}", 100.0 * share)
}

/// The name in a table; products that the model was fitted on have a star.
fn name(group: &RowGroup) -> String {
    let star = if group.is_fitted() { "*" } else { "" };
    format!("{}{star}", group.name())
}

/// DRAM bytes of each product and kernel, counted and predicted.
fn bytes(groups: &[RowGroup]) -> String {
    let mut table = Table::of(
        "product, tile, schedule | orders | DRAM read GB, least | most | \
         median error % | rank correlation",
    );
    for group in groups {
        let read = group.rows.iter().filter_map(|row| row.dram_read_bytes);
        let gigabytes = |bytes: Option<f64>| decimals(bytes.map(|bytes| bytes / 1e9), 3);
        let errors = accuracy::errors(group.rows.iter().copied(), &DRAM_READ);
        table.row([
            name(group),
            group.rows.len().to_string(),
            gigabytes(read.clone().reduce(f64::min)),
            gigabytes(read.reduce(f64::max)),
            text_or_empty(errors.map(|errors| percent(errors.median))),
            match accuracy::ranking(group, &DRAM_READ) {
                Ranking::TooFew => String::new(),
                Ranking::OrderMakesNoDifference => "no difference".to_owned(),
                Ranking::Correlated { rho, .. } => format!("{rho:.3}"),
            },
        ]);
    }
    format!("\n{}*: the model was fitted on it\n", table.render())
}

/// Times of each product and kernel: the best order, the slowest, and the library's.
fn times(groups: &[RowGroup], regime: Regime) -> String {
    let heads = "best | us | TFLOP/s | slowest | slower by % | chosen | loses % | MHz | W";
    let mut table = Table::of(&format!("{} | {heads}", regime.name()));
    for group in groups {
        let ends = rules::best(group, regime).zip(rules::slowest(group, regime));
        let Some(((best, least), (slowest, most))) = ends else {
            continue;
        };
        let chosen = rules::loss(group, &CHOICE, regime);
        let middle = |column: fn(&StudyRow) -> Option<f64>| {
            let values: Vec<f64> = group.rows.iter().filter_map(|row| column(row)).collect();
            // Clock and power are those of the sustained regime.
            decimals(median(&values).filter(|_| regime == Regime::Sustained), 0)
        };
        table.row([
            name(group),
            best.order.clone(),
            format!("{least:.1}"),
            format!("{:.1}", best.shape().tflops(least / 1e3)),
            slowest.order.clone(),
            percent(most / least - 1.0),
            text_or_empty(chosen.map(|(row, _)| &row.order)),
            text_or_empty(chosen.map(|(_, loss)| percent(loss))),
            middle(|row| row.sm_clock_mhz),
            middle(|row| row.power_w),
        ]);
    }
    format!("\n{}", table.render())
}

/// Errors of what is predicted: of products that the model was fitted on, and of others.
fn predictions(rows: &[StudyRow]) -> String {
    let mut table = Table::of(
        "model against counters | products | pairs | median error % | close % | \
         bias % | worst %",
    );
    for quantity in &QUANTITIES {
        for of_fitted in [false, true] {
            let some = rows.iter().filter(|row| row.fitted == of_fitted);
            let Some(errors) = accuracy::errors(some, quantity) else {
                continue;
            };
            table.row([
                quantity.name.to_owned(),
                if of_fitted { "fitted" } else { "others" }.to_owned(),
                errors.pairs.to_string(),
                percent(errors.median),
                percent(errors.close),
                percent(errors.bias),
                percent(errors.worst),
            ]);
        }
    }
    let legend = match rows.iter().any(|row| row.fitted) {
        true => "fitted: products that the model's parameters come from; no claim is over them. ",
        false => "",
    };
    format!(
        "\n{}{legend}close: at most {:.0} % off.\n",
        table.render(),
        100.0 * CLOSE
    )
}

/// Rank correlations of DRAM bytes read, over the products that were not fitted.
fn rankings(groups: &[RowGroup], by: &str, name: fn(&RowGroup) -> String) -> String {
    let (mut rhos, mut stricts, mut same, mut least) = (Vec::new(), Vec::new(), 0, None);
    for group in groups.iter().filter(|group| !group.is_fitted()) {
        match accuracy::ranking(group, &DRAM_READ) {
            Ranking::TooFew => {}
            Ranking::OrderMakesNoDifference => same += 1,
            Ranking::Correlated { rho, strict } => {
                rhos.push(rho);
                stricts.push(strict);
                if least.as_ref().is_none_or(|(least, _)| rho < *least) {
                    least = Some((rho, name(group)));
                }
            }
        }
    }
    let no_difference = format!(
        "{same} whose orders read the same bytes within {:.0} % are left out",
        100.0 * EQUAL
    );
    let (Some(middle), Some(strict), Some((least, at))) = (median(&rhos), median(&stricts), least)
    else {
        return format!(
            "\nrank correlation of DRAM bytes read: nothing to rank; {no_difference}\n"
        );
    };
    let high = rhos.iter().filter(|&&rho| rho >= 0.9).count();
    format!(
        "\nrank correlation of DRAM bytes read, model against counters, by {by}, \
         fitted ones left out:\nmedian {middle:.3}, least {least:.3} ({at}), at least 0.9 in \
         {high} of {}; values within {:.0} % are ties (with exact ties only: median {strict:.3})\n\
         {no_difference}\n",
        rhos.len(),
        100.0 * EQUAL
    )
}

/// What each rule loses.
fn regrets(groups: &[RowGroup]) -> String {
    let mut table =
        Table::of("time lost by | regime | products and kernels | mean % | worst % | where");
    for RuleRegret {
        rule,
        regime,
        regret,
    } in rules::regrets(groups)
    {
        table.row([
            rule.to_owned(),
            regime.to_owned(),
            regret.groups.to_string(),
            percent(regret.mean),
            percent(regret.worst),
            regret.worst_at,
        ]);
    }
    let mut text = format!(
        "\n{}against the best order measured of the same product and kernel\n",
        table.render()
    );
    for regime in REGIMES {
        let rows = groups.iter().flat_map(|group| &group.rows);
        let errors: Vec<f64> = rows.filter_map(|row| row.time_error(regime)).collect();
        if let Some(error) = median(&errors) {
            text += &format!(
                "standard error of a {} time: {} % (median of {})\n",
                regime.name(),
                percent(error),
                errors.len()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::groups::tests::row;

    fn rows() -> Vec<StudyRow> {
        let figures = [
            ("row", 4.0, 110.0),
            ("grouped:8", 2.0, 101.0),
            ("hilbert", 1.0, 100.0),
        ];
        let of = |m: usize, fitted: bool| {
            figures.map(|(order, gigabytes, time)| StudyRow {
                fitted,
                dram_read_bytes: Some(gigabytes * 1e9),
                model_dram_read_bytes: Some(gigabytes * 1.1e9),
                sustained_us: Some(time),
                sustained_error: Some(0.002),
                picked_by: if order == "grouped:8" { "chooser" } else { "" }.to_owned(),
                ..row(m, order)
            })
        };
        [of(8192, true), of(4096, false)].concat()
    }

    #[test]
    fn claims_are_over_products_that_were_not_fitted() {
        let text = render(&rows());
        let line = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start));
            line.unwrap_or_else(|| panic!("{start} in {text}"))
                .to_owned()
        };
        let words = |line: String| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            words(line("DRAM bytes read  "))[3..8],
            ["others", "3", "10.00", "100.00", "10.00"]
        );
        assert!(text.contains("8192x8192x8192 128x256 grid1d*"), "{text}");
        assert!(text.contains("at least 0.9 in 1 of 1"), "{text}");
        let chooser = words(line("the library's choice"));
        assert_eq!(chooser[3..7], ["sustained", "2", "1.00", "1.00"]);
        assert!(
            text.contains("of a sustained time: 0.20 % (median of 6)"),
            "{text}"
        );
        assert!(!text.contains("of a cold time"), "{text}");
    }

    #[test]
    fn rows_without_figures_make_empty_tables() {
        let text = render(&[row(512, "row")]);
        assert!(text.contains("nothing to rank"), "{text}");
    }
}
