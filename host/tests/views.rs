//! Compares views with a model: a plain table of the elements that they should show.

mod common;

use common::Random;
use tilewise::{
    CudaStream, Device, Error, Gemm, Inputs, Layout, Matrix, MatrixView, MatrixViewMut,
};

/// Rows of elements.
type Table = Vec<Vec<f32>>;

fn table(view: MatrixView<f32>) -> Table {
    let cols = view.cols();
    let elements = view.to_vec().unwrap();
    assert_eq!(elements.len(), view.rows() * cols);
    (0..view.rows())
        .map(|row| elements[row * cols..][..cols].to_vec())
        .collect()
}

/// A matrix whose elements are their own indices: 0, 1, 2, …
fn counting(device: &Device, rows: usize, cols: usize) -> Matrix<f32> {
    let elements: Vec<_> = (0..rows * cols).map(|place| place as f32).collect();
    device.from_slice(&elements, rows, cols).unwrap()
}

/// The bytes that `view` reaches, as addresses.
fn reach(view: MatrixView<f32>) -> std::ops::Range<u64> {
    let bytes = 4 * view.layout().span().unwrap() as u64;
    view.address()..view.address() + bytes
}

#[test]
fn chains_of_views_show_what_the_model_shows() {
    let device = Device::cpu();
    let mut random = Random::new(10);
    for _ in 0..300 {
        let (rows, cols) = (random.below(9), random.below(9));
        let matrix = counting(&device, rows, cols);
        let mut view = matrix.view();
        let mut model = table(view);
        for _ in 0..4 {
            let (rows, cols) = (view.rows(), view.cols());
            match random.below(3) {
                0 => {
                    view = view.t();
                    model = (0..cols)
                        .map(|c| model.iter().map(|row| row[c]).collect())
                        .collect();
                }
                1 => {
                    let mut cut = |len| {
                        let [a, b] = [random.below(len + 1), random.below(len + 1)];
                        a.min(b)..a.max(b)
                    };
                    let (r, c) = (cut(rows), cut(cols));
                    view = view.slice(r.clone(), c.clone()).unwrap();
                    model = model[r].iter().map(|row| row[c.clone()].to_vec()).collect();
                }
                _ => {
                    let (r, c) = (1 + random.below(3), 1 + random.below(3));
                    view = view.step(r, c).unwrap();
                    model = model
                        .iter()
                        .step_by(r)
                        .map(|row| row.iter().step_by(c).copied().collect())
                        .collect();
                }
            }
            assert_eq!(table(view), model, "{}", view.layout());
        }
    }
}

#[test]
fn no_strides_leave_the_allocation() {
    let device = Device::cpu();
    let mut random = Random::new(11);
    let matrix = counting(&device, 6, 5);
    let allocation = reach(matrix.view());
    let (mut inside, mut outside) = (0, 0);
    for _ in 0..5000 {
        let start = matrix
            .view()
            .slice(random.below(6)..6, random.below(5)..5)
            .unwrap();
        let first = ((start.address() - allocation.start) / 4) as usize;
        let [rows, cols, row_stride, col_stride] = [(); 4].map(|()| random.below(8));
        let last = (0..rows)
            .flat_map(|r| (0..cols).map(move |c| first + r * row_stride + c * col_stride))
            .max();
        match start.with_strides(rows, cols, row_stride, col_stride) {
            Ok(view) => {
                inside += 1;
                assert!(last.is_none_or(|last| last < 30));
                let reach = reach(view);
                assert!(allocation.start <= reach.start && reach.end <= allocation.end);
                // Elements are their own indices, so this checks which elements are read.
                for (r, row) in table(view).iter().enumerate() {
                    for (c, element) in row.iter().enumerate() {
                        assert_eq!(*element as usize, first + r * row_stride + c * col_stride);
                    }
                }
            }
            Err(Error::OutOfBounds {
                offset, elements, ..
            }) => {
                outside += 1;
                assert_eq!((offset, elements), (first, 30));
                assert!(last.is_some_and(|last| last >= 30));
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(inside > 500 && outside > 500, "{inside} in, {outside} out");
}

/// A view can describe 2⁶² elements, but copying them fails.
#[test]
fn a_broadcast_larger_than_memory_is_refused() {
    let device = Device::cpu();
    let one = device.zeros::<f32>(1, 1).unwrap();
    let vast = one.view().with_strides(1 << 31, 1 << 31, 0, 0).unwrap();
    let layout = vast.layout();
    assert_eq!(vast.to_vec().unwrap_err(), Error::SizeOverflow { layout });
}

#[test]
fn writing_through_a_view_changes_its_elements_alone() {
    let device = Device::cpu();
    let mut matrix = counting(&device, 4, 5);
    let mut corner = matrix.view_mut().slice(1..3, 2..4).unwrap().t();
    assert_eq!((corner.rows(), corner.cols()), (2, 2));
    corner.copy_from_slice(&[-1.0, -2.0, -3.0, -4.0]).unwrap();
    assert_eq!(corner.as_view().to_vec().unwrap(), [-1.0, -2.0, -3.0, -4.0]);
    corner
        .reborrow()
        .slice(0..1, 0..1)
        .unwrap()
        .fill(9.0)
        .unwrap();
    let mut expected: Vec<_> = (0..20).map(|place| place as f32).collect();
    // Transposed: -1 stays on the diagonal, -2 goes one row down.
    (expected[7], expected[12], expected[8], expected[13]) = (9.0, -2.0, -3.0, -4.0);
    assert_eq!(matrix.to_vec().unwrap(), expected);
}

#[test]
fn a_matrix_may_have_any_strides_that_do_not_alias() {
    let device = Device::cpu();
    let mut column_major = device.zeros_strided::<f32>(2, 3, 1, 2).unwrap();
    column_major
        .copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        .unwrap();
    assert_eq!(
        table(column_major.view()),
        [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    );
    let flat = column_major.view().with_strides(1, 6, 6, 1).unwrap();
    assert_eq!(flat.to_vec().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(column_major.device_address(), None);
}

/// A product of slices of vectors of the caller's, into another.
#[test]
fn views_over_memory_of_the_process_are_operands() {
    let device = Device::cpu();
    // Two rows of three elements, four elements apart; its transpose, stored by columns.
    let a: Vec<f32> = (0..8).map(|place| place as f32).collect();
    let mut c = vec![-1.0_f32; 7];
    let layout = Layout::strided(2, 3, 4, 1);
    let address = |first: *const f32| first.expose_provenance() as u64;
    let (first_a, first_c) = (address(a.as_ptr()), address(c.as_mut_ptr()));
    // SAFETY: the vectors outlive the views, which nothing else uses meanwhile.
    unsafe {
        let a = MatrixView::<f32>::from_raw(&device, first_a, layout).unwrap();
        let mut c =
            MatrixViewMut::<f32>::from_raw(&device, first_c + 4, Layout::strided(2, 2, 3, 1));
        let c = c.as_mut().unwrap();
        assert_eq!(a.address(), first_a);
        assert_eq!(table(a), [[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]]);
        let gemm = Gemm::new(&device);
        let mut plan = gemm.plan(a, a.t(), c.reborrow()).unwrap();
        plan.run(a, a.t(), c.reborrow()).unwrap();
        assert_eq!(table(c.as_view()), [[5.0, 17.0], [17.0, 77.0]]);
        // The CPU has no streams, and takes any.
        let stream = CudaStream::from_raw(std::ptr::null_mut());
        c.fill(0.0).unwrap();
        plan.run_on(stream, a, a.t(), c.reborrow(), &Inputs::new())
            .unwrap();
        assert_eq!(table(c.as_view()), [[5.0, 17.0], [17.0, 77.0]]);
        c.fill(0.0).unwrap();
        gemm.run_on(stream, a, a.t(), c.reborrow(), &Inputs::new())
            .unwrap();
    }
    assert_eq!(c, [-1.0, 5.0, 17.0, -1.0, 17.0, 77.0, -1.0]);
}

#[test]
fn addresses_that_memory_cannot_have_are_refused() {
    let device = Device::cpu();
    let layout = Layout::row_major(2, 3);
    let element_bytes = 4;
    for address in [0, 2, 0x1001, u64::MAX - 23, u64::MAX - 3] {
        // SAFETY: the views are refused, or never read.
        let refused = unsafe { MatrixView::<f32>::from_raw(&device, address, layout) };
        let error = Error::Address {
            address,
            layout,
            element_bytes,
        };
        assert_eq!(refused.err(), Some(error), "{address:#x}");
    }
    let message = Error::Address {
        address: 2,
        layout,
        element_bytes,
    };
    assert_eq!(
        message.to_string(),
        "a matrix of 2×3 with strides (3, 1) at address 0x2; accepted: a multiple of 4 bytes \
         that is not 0, with the whole matrix below 2^64"
    );
    // Nothing is behind an empty view, so it may be anywhere.
    let empty = Layout::row_major(0, 3);
    // SAFETY: an empty view reads nothing.
    let view = unsafe { MatrixView::<f32>::from_raw(&device, 0, empty) }.unwrap();
    assert_eq!(view.to_vec().unwrap(), [0.0_f32; 0]);
    let broadcast = Layout::strided(2, 3, 0, 1);
    // SAFETY: the view is refused.
    let refused = unsafe { MatrixViewMut::<f32>::from_raw(&device, 4096, broadcast) };
    assert_eq!(refused.err(), Some(Error::Aliasing { layout: broadcast }));
    let vast = Layout::strided(2, 1, usize::MAX / 4, 1);
    // SAFETY: the view is refused.
    let refused = unsafe { MatrixView::<f32>::from_raw(&device, 4096, vast) };
    assert_eq!(refused.err(), Some(Error::SizeOverflow { layout: vast }));
}
