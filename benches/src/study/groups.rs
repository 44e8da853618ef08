//! Rows that are compared with each other: one product, kernel and schedule on one GPU,
//! in all its orders.

use crate::study::row::StudyRow;

/// One product, kernel and schedule.
pub struct RowGroup<'a> {
    /// One for each order.
    pub rows: Vec<&'a StudyRow>,
}

impl RowGroup<'_> {
    /// Product, tile and schedule.
    pub fn name(&self) -> String {
        self.rows.first().map_or_else(String::new, |row| {
            let StudyRow {
                block_m,
                block_n,
                schedule,
                ..
            } = row;
            format!("{} {block_m}x{block_n} {schedule}", row.shape())
        })
    }

    /// Product alone.
    pub fn product(&self) -> String {
        let shape = self.rows.first().map(|row| row.shape().to_string());
        shape.unwrap_or_default()
    }

    /// Whether the model was fitted on the product.
    pub fn is_fitted(&self) -> bool {
        self.rows.iter().any(|row| row.fitted)
    }
}

/// The groups of `rows`, in the order in which they first appear.
pub fn groups(rows: &[StudyRow]) -> Vec<RowGroup<'_>> {
    grouped(rows, are_compared)
}

/// All rows of a product on one GPU together, whatever the kernel and the schedule.
pub fn products(rows: &[StudyRow]) -> Vec<RowGroup<'_>> {
    grouped(rows, |a, b| a.shape() == b.shape() && a.device == b.device)
}

fn grouped(rows: &[StudyRow], belong: fn(&StudyRow, &StudyRow) -> bool) -> Vec<RowGroup<'_>> {
    let mut groups: Vec<RowGroup> = Vec::new();
    for row in rows {
        let same = |group: &&mut RowGroup| belong(group.rows[0], row);
        match groups.iter_mut().find(same) {
            Some(group) => group.rows.push(row),
            None => groups.push(RowGroup { rows: vec![row] }),
        }
    }
    groups
}

/// Whether two rows differ in their order alone.
pub fn are_compared(a: &StudyRow, b: &StudyRow) -> bool {
    a.shape() == b.shape()
        && (&a.device, &a.kernel, &a.schedule) == (&b.device, &b.kernel, &b.schedule)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row of a cube of `m` in this order.
    pub(crate) fn row(m: usize, order: &str) -> StudyRow {
        StudyRow {
            device: "NVIDIA H200".to_owned(),
            m,
            n: m,
            k: m,
            kernel: "kernel".to_owned(),
            block_m: 128,
            block_n: 256,
            order: order.to_owned(),
            schedule: "grid1d".to_owned(),
            ..StudyRow::default()
        }
    }

    #[test]
    fn a_group_is_a_product_in_all_its_orders() {
        let mut rows = vec![row(512, "row"), row(1024, "row"), row(512, "col")];
        rows.push(StudyRow {
            schedule: "persistent".to_owned(),
            ..row(512, "row")
        });
        let groups = groups(&rows);
        let names: Vec<_> = groups
            .iter()
            .map(|group| (group.name(), group.rows.len()))
            .collect();
        let name = |text: &str| text.to_owned();
        assert_eq!(
            names,
            [
                (name("512x512x512 128x256 grid1d"), 2),
                (name("1024x1024x1024 128x256 grid1d"), 1),
                (name("512x512x512 128x256 persistent"), 1),
            ]
        );
    }
}
