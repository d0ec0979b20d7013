//! Texture from integers: hashes of lattice points and the smooth noise between them.
//!
//! Only additions, products and quotients of f32 and wrapping integers are used, here and in everything that decides a
//! pixel, because those give the same bits on every machine.

/// A colour, red, green, blue, 1.0 being a white sheet in full light.
pub(super) type Colour = [f32; 3];

/// Well-mixed bits of a lattice point.
pub(super) fn hash(x: i32, y: i32, seed: u32) -> u32 {
    let mut h = (x as u32).wrapping_mul(0x85eb_ca6b) ^ (y as u32).wrapping_mul(0xc2b2_ae35) ^ seed;
    h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ (h >> 12)).wrapping_mul(0x297a_2d39);
    h ^ (h >> 15)
}

/// Uniform in [0, 1) at a lattice point.
pub(super) fn speck(x: i32, y: i32, seed: u32) -> f32 {
    (hash(x, y, seed) >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// The whole part, for numbers that fit an i32.
pub(super) fn whole(x: f32) -> i32 {
    let cut = x as i32;
    cut - i32::from((cut as f32) > x)
}

/// The part after the point, in [0, 1).
pub(super) fn part(x: f32) -> f32 {
    x - whole(x) as f32
}

/// Smooth noise in [0, 1): lattice values joined by the cubic 3t² − 2t³.
pub(super) fn noise(x: f32, y: f32, seed: u32) -> f32 {
    let (ix, iy) = (whole(x), whole(y));
    let (tx, ty) = (ease(x - ix as f32), ease(y - iy as f32));
    let top = mix1(speck(ix, iy, seed), speck(ix + 1, iy, seed), tx);
    let bottom = mix1(speck(ix, iy + 1, seed), speck(ix + 1, iy + 1, seed), tx);
    mix1(top, bottom, ty)
}

/// Three octaves of noise, in [0, 1).
pub(super) fn clouds(x: f32, y: f32, seed: u32) -> f32 {
    noise(x, y, seed) * 0.55
        + noise(2.0 * x + 5.3, 2.0 * y + 1.7, seed ^ 0x51) * 0.29
        + noise(4.0 * x + 2.1, 4.0 * y + 9.2, seed ^ 0xa3) * 0.16
}

/// 3t² − 2t³.
pub(super) fn ease(t: f32) -> f32 {
    t * t * (3.0 - 2.0 * t)
}

/// 0 below `low`, 1 above `high`, smooth between.
pub(super) fn rise(x: f32, low: f32, high: f32) -> f32 {
    ease(((x - low) / (high - low)).clamp(0.0, 1.0))
}

/// From `a` to `b`.
pub(super) fn mix1(a: f32, b: f32, t: f32) -> f32 {
    a + (b - a) * t
}

/// From one colour to another.
pub(super) fn mix(a: Colour, b: Colour, t: f32) -> Colour {
    [0, 1, 2].map(|c| mix1(a[c], b[c], t))
}

/// A colour made brighter or darker.
pub(super) fn times(a: Colour, k: f32) -> Colour {
    a.map(|v| v * k)
}

/// A surface's colour under a light.
pub(super) fn under(a: Colour, light: Colour) -> Colour {
    [0, 1, 2].map(|c| a[c] * light[c])
}

/// The colour of a hue (0 to 1 around the circle) at a saturation and value.
pub(super) fn hue(h: f32, saturation: f32, value: f32) -> Colour {
    let ramp = |shift: f32| ((part(h + shift) * 6.0 - 3.0).abs() - 1.0).clamp(0.0, 1.0);
    [0.0, 2.0 / 3.0, 1.0 / 3.0].map(|shift| value * mix1(1.0, ramp(shift), saturation))
}
