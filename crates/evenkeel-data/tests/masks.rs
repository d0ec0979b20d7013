//! Run lengths, polygons, areas, boxes and overlaps against pycocotools, bit for bit.

mod fixture;

use evenkeel_data::mask::{Rle, box_overlap};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    masks: Vec<Mask>,
    groups: Vec<Group>,
    polygons: Vec<Polygon>,
    unions: Vec<Union>,
}

#[derive(Deserialize)]
struct Mask {
    h: u32,
    w: u32,
    rows: Vec<String>,
    counts: String,
    area: u32,
    r#box: [u64; 4],
}

#[derive(Deserialize)]
struct Group {
    h: u32,
    w: u32,
    counts: Vec<String>,
    union: String,
    intersection: String,
    crowd: Vec<u8>,
    iou: Vec<Vec<u64>>,
    boxes: Vec<[u64; 4]>,
    box_iou: Vec<Vec<u64>>,
}

#[derive(Deserialize)]
struct Polygon {
    h: u32,
    w: u32,
    xy: Vec<u64>,
    counts: String,
    area: u32,
    r#box: [u64; 4],
}

#[derive(Deserialize)]
struct Union {
    h: u32,
    w: u32,
    parts: Vec<Vec<u64>>,
    counts: String,
}

fn floats(bits: &[u64]) -> Vec<f64> {
    bits.iter().map(|&b| f64::from_bits(b)).collect()
}

fn fixture() -> Fixture {
    fixture::read("masks.json.gz")
}

#[test]
fn masks_encode_decode_and_measure_as_the_official_tool_does() {
    for mask in fixture().masks {
        let bytes: Vec<u8> = mask.rows.iter().flat_map(|row| row.bytes().map(|b| b - b'0')).collect();
        let rle = Rle::encode(mask.h, mask.w, &bytes).unwrap();
        assert_eq!(rle.to_text(), mask.counts);
        assert_eq!(Rle::from_text(mask.h, mask.w, &mask.counts).unwrap(), rle);
        assert_eq!(rle.decode(), bytes);
        assert_eq!(rle.area(), mask.area);
        assert_eq!(rle.bounding_box().map(f64::to_bits), mask.r#box);
    }
}

#[test]
fn unions_intersections_and_overlaps_are_bit_for_bit() {
    for group in fixture().groups {
        let rles: Vec<Rle> =
            group.counts.iter().map(|text| Rle::from_text(group.h, group.w, text).unwrap()).collect();
        assert_eq!(Rle::merge(&rles, false).unwrap().to_text(), group.union);
        assert_eq!(Rle::merge(&rles, true).unwrap().to_text(), group.intersection);
        let boxes: Vec<[f64; 4]> = group.boxes.iter().map(|b| b.map(f64::from_bits)).collect();
        for d in 0..2 {
            for t in 0..3 {
                let crowd = group.crowd[t] != 0;
                assert_eq!(rles[d].overlap(&rles[2 + t], crowd).to_bits(), group.iou[d][t]);
                assert_eq!(box_overlap(&boxes[d], &boxes[2 + t], crowd).to_bits(), group.box_iou[d][t]);
            }
        }
    }
}

#[test]
fn polygons_fill_bit_for_bit() {
    for (n, polygon) in fixture().polygons.iter().enumerate() {
        let rle = Rle::from_polygon(polygon.h, polygon.w, &floats(&polygon.xy)).unwrap();
        assert_eq!(rle.to_text(), polygon.counts, "polygon {n}");
        assert_eq!(rle.area(), polygon.area, "polygon {n}");
        assert_eq!(rle.bounding_box().map(f64::to_bits), polygon.r#box, "polygon {n}");
    }
    for union in fixture().unions {
        let parts: Vec<Rle> =
            union.parts.iter().map(|xy| Rle::from_polygon(union.h, union.w, &floats(xy)).unwrap()).collect();
        assert_eq!(Rle::merge(&parts, false).unwrap().to_text(), union.counts);
    }
}

#[test]
fn broken_masks_are_refused() {
    assert!(Rle::from_text(2, 2, "~").is_err());
    assert!(Rle::from_text(2, 2, "P").is_err(), "cut off in the middle of a number");
    assert!(Rle::from_text(2, 2, "").is_err());
    assert!(Rle::from_text(2, 2, "5").is_err(), "covers five of four pixels");
    assert!(Rle::from_counts(2, 2, vec![1, 2]).is_err());
    assert!(Rle::from_counts(u32::MAX, u32::MAX, vec![1]).is_err());
    assert!(Rle::from_polygon(4, 4, &[0.0, 0.0, 1.0, 1.0]).is_err());
    assert!(Rle::from_polygon(4, 4, &[0.0, 0.0, 1.0, f64::NAN, 2.0, 2.0]).is_err());
    assert!(Rle::from_polygon(4, 4, &[0.0, 0.0, 1.0, 1e300, 2.0, 2.0]).is_err());
}
