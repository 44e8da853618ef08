//! Whether elements of a strided layout share an address.
//!
//! Two elements of a layout share an address when their index differences solve
//! i·p + j·q + k·s = 0, with p, q and s the strides, and each difference smaller than the
//! extent of its axis. For each k, the solutions of i·p + j·q = t are one progression
//! (Bézout's identity), so a look at one element of it tells whether any is in range.

/// One direction of a layout.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    /// Number of elements.
    pub(super) extent: usize,
    /// Elements from one to the next.
    pub(super) stride: usize,
}

impl Axis {
    pub(super) const fn new(extent: usize, stride: usize) -> Self {
        Axis { extent, stride }
    }
}

/// Whether two different elements share an address. No axis is empty. True for a layout that
/// spans more than an allocation can.
pub(super) const fn aliases(axes: [Axis; 3]) -> bool {
    let [x, y, z] = sorted_by_extent(axes);
    let pair = Pair { x, y };
    if pair.repeats() {
        return true;
    }
    if z.extent == 1 {
        return false;
    }
    if !fits(axes) {
        return true;
    }
    if are_nested(axes) {
        return false;
    }
    // A solution with k has its negative with -k.
    let mut k = 1;
    while k < z.extent {
        if pair.reaches(k as i128 * z.stride as i128) {
            return true;
        }
        k += 1;
    }
    false
}

/// Whether an element and an element of the same layout `distance` further share an address.
/// No axis is empty. True for a layout that spans more than an allocation can.
pub(super) const fn meets(axes: [Axis; 3], distance: usize) -> bool {
    if !fits(axes) {
        return true;
    }
    let [x, y, z] = sorted_by_extent(axes);
    let pair = Pair { x, y };
    let most = z.extent as i128 - 1;
    let mut k = -most;
    while k <= most {
        if pair.reaches(distance as i128 - k * z.stride as i128) {
            return true;
        }
        k += 1;
    }
    false
}

/// The axes, the shortest last.
const fn sorted_by_extent([x, y, z]: [Axis; 3]) -> [Axis; 3] {
    if z.extent <= x.extent && z.extent <= y.extent {
        [x, y, z]
    } else if y.extent <= x.extent {
        [x, z, y]
    } else {
        [y, z, x]
    }
}

/// Whether the farthest element is less than 2⁶³ elements after the first.
const fn fits(axes: [Axis; 3]) -> bool {
    let mut last = 0_u128;
    let mut index = 0;
    while index < axes.len() {
        last += (axes[index].extent as u128 - 1).saturating_mul(axes[index].stride as u128) >> 1;
        index += 1;
    }
    last < 1 << 62
}

/// Whether each axis steps over all that the axes with smaller strides span.
const fn are_nested(axes: [Axis; 3]) -> bool {
    let mut index = 0;
    while index < axes.len() {
        let axis = axes[index];
        let mut span = 1_u128;
        let mut other = 0;
        while other < axes.len() {
            let inner = axes[other];
            // Of two axes with one stride, each is inside the other, and neither nests.
            if other != index && inner.stride <= axis.stride {
                span += (inner.extent as u128 - 1) * inner.stride as u128;
            }
            other += 1;
        }
        if axis.extent > 1 && (axis.stride as u128) < span {
            return false;
        }
        index += 1;
    }
    true
}

/// Two directions of a layout.
struct Pair {
    x: Axis,
    y: Axis,
}

impl Pair {
    /// Whether two different elements of these two directions share an address: the smallest
    /// index differences for which they can are `y.stride / g` and `x.stride / g`, with g the
    /// greatest common divisor of the strides.
    const fn repeats(&self) -> bool {
        let g = gcd(self.x.stride, self.y.stride);
        if g == 0 {
            return self.x.extent > 1 || self.y.extent > 1;
        }
        self.y.stride / g < self.x.extent && self.x.stride / g < self.y.extent
    }

    /// Whether i·p + j·q = `distance` for some |i| and |j| smaller than the extents.
    const fn reaches(&self, distance: i128) -> bool {
        let (most_i, most_j) = (self.x.extent as i128 - 1, self.y.extent as i128 - 1);
        // The stride of an axis with one element does not matter.
        let p = if most_i == 0 { 0 } else { self.x.stride };
        let q = if most_j == 0 { 0 } else { self.y.stride };
        let g = gcd(p, q) as i128;
        if g == 0 {
            return distance == 0;
        }
        if distance % g != 0 {
            return false;
        }
        let (p, q, t) = (p as i128 / g, q as i128 / g, distance / g);
        if q == 0 {
            return -most_i <= t && t <= most_i;
        }
        if p == 0 {
            return -most_j <= t && t <= most_j;
        }
        // i ≡ t / p modulo q, and j = (t - i·p) / q.
        let i = t.rem_euclid(q) * inverse(p, q) % q;
        let from_j = (t - most_j * q).div_euclid(p) + ((t - most_j * q).rem_euclid(p) != 0) as i128;
        let to_j = (t + most_j * q).div_euclid(p);
        let from = if from_j > -most_i { from_j } else { -most_i };
        let to = if to_j < most_i { to_j } else { most_i };
        from + (i - from).rem_euclid(q) <= to
    }
}

/// Greatest common divisor (Euclid); `gcd(0, x) = x`.
const fn gcd(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The inverse of `p` modulo `q`, which have no common divisor (extended Euclid).
const fn inverse(p: i128, q: i128) -> i128 {
    let (mut r, mut next_r) = (q, p.rem_euclid(q));
    let (mut x, mut next_x) = (0_i128, 1_i128);
    while next_r != 0 {
        let quotient = r / next_r;
        (r, next_r) = (next_r, r - quotient * next_r);
        (x, next_x) = (next_x, x - quotient * next_x);
    }
    x.rem_euclid(q)
}
