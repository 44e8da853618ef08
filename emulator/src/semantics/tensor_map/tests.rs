use super::*;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use std::collections::BTreeMap;

/// 100 lines of 200 f16, boxes of 64×8.
fn map() -> TensorMap {
    TensorMap {
        address: 0x7000_0000,
        dtype: Format::F16,
        dims: [200, 100],
        pitch_bytes: 448,
        planes: None,
        box_dims: [64, 8],
        swizzle: Swizzle::Bytes128,
    }
}

#[test]
fn maps_survive_a_round_trip() {
    for swizzle in Swizzle::ALL {
        for dtype in [Format::F16, Format::Bf16, Format::F32, Format::Tf32] {
            let width = swizzle.span_bytes() / dtype.bytes();
            let map = TensorMap {
                dims: [1 << 32, 7],
                dtype,
                swizzle,
                planes: None,
                box_dims: [width, 256],
                ..map()
            };
            assert_eq!(TensorMap::decode(&map.encode().unwrap()), Ok(map));
            assert_eq!(map.box_bytes(), 256 * swizzle.span_bytes());
        }
    }
}

#[test]
fn junk_is_no_map() {
    assert_eq!(
        TensorMap::decode(&[0xaa; BYTES]),
        Err(MapError::Junk { found: [0xaa; 8] })
    );
    let encoded = map().encode().unwrap();
    for byte in (0..8).chain([48, 49, 52, 53, 56, 127]) {
        let mut tampered = encoded;
        tampered[byte] ^= 0x40;
        let refused = TensorMap::decode(&tampered).unwrap_err();
        assert!(
            matches!(refused, MapError::Junk { .. }),
            "{byte}: {refused}"
        );
    }
}

#[test]
fn the_drivers_rules_hold() {
    let refused = |change: fn(&mut TensorMap)| {
        let mut map = map();
        change(&mut map);
        map.encode().unwrap_err()
    };
    let (address, pitch_bytes) = (0x7000_0008, 1 << 40);
    assert_eq!(refused(|m| m.address += 8), MapError::Address { address });
    assert_eq!(
        refused(|m| m.pitch_bytes = 1 << 40),
        MapError::Pitch { pitch_bytes }
    );
    assert_eq!(
        refused(|m| m.pitch_bytes = 456),
        MapError::Pitch { pitch_bytes: 456 }
    );
    let dim = MapError::Dim {
        dimension: 1,
        elements: 0,
    };
    assert_eq!(refused(|m| m.dims[1] = 0), dim);
    let dim = MapError::Dim {
        dimension: 0,
        elements: (1 << 32) + 1,
    };
    assert_eq!(refused(|m| m.dims[0] = (1 << 32) + 1), dim);
    let of_box = MapError::Box {
        dimension: 1,
        elements: 257,
    };
    assert_eq!(refused(|m| m.box_dims[1] = 257), of_box);
    let row = MapError::BoxRow {
        bytes: 256,
        swizzle: Swizzle::Bytes128,
    };
    assert_eq!(refused(|m| m.box_dims[0] = 128), row);
    assert_eq!(
        row.to_string(),
        "box row is 256 bytes, accepted with this swizzle: multiples of 16 up to 128"
    );
    let row = refused(|m| (m.box_dims[0], m.swizzle) = (12, Swizzle::None));
    assert_eq!(
        row,
        MapError::BoxRow {
            bytes: 24,
            swizzle: Swizzle::None
        }
    );
}

#[test]
fn a_box_inside_is_whole_and_swizzled() {
    let chunks: Vec<Chunk> = map()
        .chunks(0x400, 64, 32, Direction::Load)
        .unwrap()
        .collect();
    assert_eq!(chunks.len(), 64);
    assert_eq!(
        chunks[0],
        Chunk {
            shared: 0x400,
            first: 0,
            end: 16,
            global: 0x7000_0000 + 32 * 448 + 128
        }
    );
    // Row 3, chunk 5.
    assert_eq!(
        chunks[3 * 8 + 5],
        Chunk {
            shared: 0x400 + 3 * 128 + (5 ^ 3) * 16,
            first: 0,
            end: 16,
            global: 0x7000_0000 + 35 * 448 + 128 + 80
        }
    );
}

#[test]
fn the_swizzle_goes_by_the_address_in_shared_memory() {
    let mut chunks = map().chunks(0x400 + 128, 0, 0, Direction::Load).unwrap();
    assert_eq!(chunks.next().unwrap().shared, 0x400 + 128 + 16);
    assert_eq!(
        map().chunks(0x440, 0, 0, Direction::Load).err(),
        Some(MisalignedBox { address: 0x440 })
    );
}

#[test]
fn a_store_writes_to_the_end_of_16_bytes() {
    // 260 elements are 520 bytes: 32 chunks and a half.
    let map = TensorMap {
        dims: [260, 100],
        pitch_bytes: 640,
        ..map()
    };
    let row = |direction| -> Vec<(u32, u32)> {
        let chunks = map.chunks(0, 256, 0, direction).unwrap();
        chunks
            .take(3)
            .map(|chunk| (chunk.first, chunk.end))
            .collect()
    };
    assert_eq!(row(Direction::Load), [(0, 8), (0, 0), (0, 0)]);
    assert_eq!(row(Direction::Store), [(0, 16), (0, 0), (0, 0)]);
}

#[test]
fn boxes_may_begin_before_the_tensor() {
    let chunks: Vec<Chunk> = map().chunks(0, -13, -2, Direction::Load).unwrap().collect();
    assert!(chunks[..16].iter().all(|chunk| chunk.end == 0), "two lines");
    // 26 bytes before the line: one chunk, and 10 bytes of the next.
    assert_eq!((chunks[16].first, chunks[16].end), (16, 16));
    assert_eq!((chunks[17].first, chunks[17].end), (10, 16));
    assert_eq!(chunks[17].global, 0x7000_0000);
    assert_eq!(chunks[18].global, 0x7000_0006);
}

#[test]
fn every_byte_of_a_box_comes_from_its_element_or_is_zero() {
    let mut random = StdRng::seed_from_u64(1);
    for _ in 0..300 {
        let swizzle = Swizzle::ALL[random.random_range(0..4)];
        let dtype = [Format::F16, Format::F32][random.random_range(0..2)];
        let bytes = dtype.bytes();
        let width = match swizzle {
            Swizzle::None => 16 * random.random_range(1..=8) / bytes,
            _ => 16 * random.random_range(1..=swizzle.span_bytes() / 16) / bytes,
        };
        let map = TensorMap {
            address: 1 << 20,
            dtype,
            dims: [random.random_range(1..150), random.random_range(1..20)],
            pitch_bytes: 640,
            planes: None,
            box_dims: [width, random.random_range(1..=16)],
            swizzle,
        };
        let (x, y) = (random.random_range(-70..150), random.random_range(-16..20));
        let shared = random.random_range(0..16) * 128;
        let mut seen = BTreeMap::new();
        for chunk in map.chunks(shared, x, y, Direction::Load).unwrap() {
            for byte in 0..16 {
                let inside = (chunk.first..chunk.end).contains(&byte);
                let global = inside.then(|| chunk.global + u64::from(byte - chunk.first));
                assert_eq!(seen.insert(chunk.shared + byte, global), None, "once");
            }
        }
        assert_eq!(seen.len() as u32, map.box_bytes());
        for row in 0..map.box_dims[1] {
            for column in 0..width {
                let (at_x, at_y) = (
                    i64::from(x) + i64::from(column),
                    i64::from(y) + i64::from(row),
                );
                let inside = (0..map.dims[0] as i64).contains(&at_x)
                    && (0..map.dims[1] as i64).contains(&at_y);
                let address = (1 << 20) + at_y * 640 + at_x * i64::from(bytes);
                let pitch = match swizzle {
                    Swizzle::None => width * bytes,
                    _ => swizzle.span_bytes(),
                };
                let place = swizzle.apply(shared + row * pitch + column * bytes);
                assert_eq!(
                    seen[&place],
                    inside.then_some(address as u64),
                    "{map:?} {x} {y}"
                );
            }
        }
    }
}
