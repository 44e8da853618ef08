//! [`Layout`]: shape and strides. It computes how many elements a layout spans, and
//! whether two of its elements share an address.

use std::fmt;

/// Shape and strides of a matrix: element (r, c) is
/// `r · row_stride + c · col_stride` elements after element (0, 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Elements between (r, c) and (r + 1, c).
    pub row_stride: usize,
    /// Elements between (r, c) and (r, c + 1).
    pub col_stride: usize,
}

impl Layout {
    /// A layout of dense rows, one after the other.
    pub const fn row_major(rows: usize, cols: usize) -> Self {
        Layout {
            rows,
            cols,
            row_stride: cols,
            col_stride: 1,
        }
    }

    /// The same elements with rows and columns exchanged.
    pub const fn transposed(self) -> Self {
        Layout {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }

    /// Whether there is no element.
    pub const fn is_empty(self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    /// Number of elements from the first to one past the farthest. It is 0 for an empty
    /// layout, and `None` when it does not fit a `usize`.
    pub const fn span(self) -> Option<usize> {
        if self.is_empty() {
            return Some(0);
        }
        let (Some(down), Some(across)) = (
            (self.rows - 1).checked_mul(self.row_stride),
            (self.cols - 1).checked_mul(self.col_stride),
        ) else {
            return None;
        };
        match down.checked_add(across) {
            Some(last) => last.checked_add(1),
            None => None,
        }
    }

    /// Number of elements of an allocation that holds the layout from element (0, 0) on,
    /// with `element_bytes` per element. `None` if its bytes exceed `isize::MAX`, which is
    /// the limit of every allocation.
    pub(crate) fn allocation(self, element_bytes: usize) -> Option<usize> {
        let len = self.span()?;
        let bytes = len.checked_mul(element_bytes)?;
        isize::try_from(bytes).is_ok().then_some(len)
    }

    /// Whether the elements lie one after the other, row by row, without gaps.
    pub const fn is_dense_row_major(self) -> bool {
        (self.cols <= 1 || self.col_stride == 1) && (self.rows <= 1 || self.row_stride == self.cols)
    }

    /// Whether two different elements share an address.
    ///
    /// The result is exact. (r, c) and (r + i, c - j) share an address when
    /// `i · row_stride = j · col_stride`. The smallest such i and j that are not
    /// both 0 are `col_stride / g` and `row_stride / g`, with g the greatest
    /// common divisor of the strides. Elements share an address if both fit the shape.
    pub const fn aliases(self) -> bool {
        if self.is_empty() {
            return false;
        }
        let g = gcd(self.row_stride, self.col_stride);
        if g == 0 {
            return self.rows > 1 || self.cols > 1;
        }
        self.col_stride / g < self.rows && self.row_stride / g < self.cols
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}×{} with strides ({}, {})",
            self.rows, self.cols, self.row_stride, self.col_stride
        )
    }
}

/// Greatest common divisor (Euclid); `gcd(0, x) = x`.
const fn gcd(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn aliasing_and_span_agree_with_enumeration() {
        for rows in 0..5 {
            for cols in 0..5 {
                for row_stride in 0..8 {
                    for col_stride in 0..8 {
                        let layout = Layout {
                            rows,
                            cols,
                            row_stride,
                            col_stride,
                        };
                        let places: Vec<_> = (0..rows)
                            .flat_map(|r| (0..cols).map(move |c| r * row_stride + c * col_stride))
                            .collect();
                        let distinct: HashSet<_> = places.iter().collect();
                        assert_eq!(layout.aliases(), distinct.len() < places.len(), "{layout}");
                        let span = places.iter().max().map_or(0, |last| last + 1);
                        assert_eq!(layout.span(), Some(span), "{layout}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_span_past_usize_is_none() {
        let layout = Layout {
            rows: 3,
            cols: 2,
            row_stride: usize::MAX / 2,
            col_stride: 2,
        };
        assert_eq!(layout.span(), None);
    }
}
