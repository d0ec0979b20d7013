//! Colours of values: viridis, which grows evenly lighter, so that it can be read without colour too.
//!
//! A polynomial of degree six in the place t in [0, 1], fitted to the published table by Matt Zucker (public domain).

const FIT: [[f32; 3]; 7] = [
    [0.277_727_33, 0.005_407_345, 0.334_099_8],
    [0.105_093_04, 1.404_613_5, 1.384_590_2],
    [-0.330_861_84, 0.214_847_56, 0.095_095_165],
    [-4.634_230_6, -5.799_101, -19.332_441],
    [6.228_27, 14.179_933, 56.690_55],
    [4.776_385, -13.745_146, -65.353_03],
    [-5.435_456, 4.645_852_6, 26.312_435],
];

/// Colours in a scale bar.
pub(super) const SHADES: usize = 64;

/// The colour at a place from 0 to 1; what is unknown is black.
pub(super) fn viridis(place: f32) -> [u8; 3] {
    if !place.is_finite() {
        return [0; 3];
    }
    let t = place.clamp(0.0, 1.0);
    std::array::from_fn(|c| {
        let value = FIT.iter().rev().fold(0.0, |sum, row| sum * t + row[c]);
        (value.clamp(0.0, 1.0) * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// matplotlib's own colours at five places, to within the fit's error.
    #[test]
    fn the_fit_is_near_the_table() {
        let table = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
        for (k, colour) in table.iter().enumerate() {
            let own = viridis(k as f32 / 4.0);
            assert!(own.iter().zip(colour).all(|(a, b)| (i32::from(*a) - b).abs() <= 6), "{k}: {own:?}");
        }
        assert_eq!(viridis(f32::NAN), [0; 3]);
    }
}
