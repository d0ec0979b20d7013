//! A sum of floating-point numbers that has no order: exact, so any arrangement and any splitting gives the same bits.
//!
//! Every finite f64 is an integer multiple of 2^-1074; the sum is kept as such an integer in limbs of 32 bits.
//! Invariant: after `settle`, limbs 0..n-1 are in 0..2^32 and the top one carries the sign, so equal sums have equal limbs.

/// Limbs of 32 bits from 2^-1074 up to 2^(1024+64), with headroom for counts.
const LIMBS: usize = 68;
/// Additions that fit into 64-bit limbs before carries must be passed on.
const BEFORE_CARRY: u32 = 1 << 24;

/// An exact running sum of finite f64 values.
#[derive(Clone, Debug)]
pub struct ExactSum {
    limbs: [i64; LIMBS],
    since_carry: u32,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { limbs: [0; LIMBS], since_carry: 0 }
    }
}

impl ExactSum {
    /// Adds a value; not a number and the infinities must be kept out by the caller.
    pub fn add(&mut self, value: f64) {
        assert!(value.is_finite(), "an exact sum takes finite values only");
        let bits = value.to_bits();
        let exponent = (bits >> 52) & 0x7ff;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, shift) =
            if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        let (limb, offset) = ((shift / 32) as usize, shift % 32);
        let wide = u128::from(mantissa) << offset;
        for k in 0..3 {
            let part = ((wide >> (32 * k)) & 0xffff_ffff) as i64;
            self.limbs[limb + k] += if value < 0.0 { -part } else { part };
        }
        self.count_addition();
    }

    /// Adds `times` copies of another sum.
    pub fn add_sum(&mut self, other: &Self, times: u64) {
        let other = other.settled();
        let times = i64::try_from(times).ok().filter(|&t| t < 1 << 20).expect("a bootstrap weight is small");
        self.settle();
        for (mine, theirs) in self.limbs.iter_mut().zip(other.limbs) {
            *mine += theirs * times;
        }
        self.settle();
    }

    /// The sum, rounded once from its exact value to within one unit in the last place.
    pub fn value(&self) -> f64 {
        let mut sum = self.settled();
        let negative = sum.limbs[LIMBS - 1] < 0;
        if negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.settle();
        }
        let Some(top) = (0..LIMBS).rev().find(|&k| sum.limbs[k] != 0) else {
            return 0.0;
        };
        // Three limbs hold at least 65 significant bits, more than an f64 keeps.
        let low = top.saturating_sub(2);
        let lead = (low..=top).rev().fold(0i128, |acc, k| (acc << 32) | i128::from(sum.limbs[k]));
        let exponent = 32 * low as i32 - 1074;
        // Two factors, because 2^-1074 alone times a large lead would round twice.
        let half = exponent / 2;
        let value = lead as f64 * 2f64.powi(half) * 2f64.powi(exponent - half);
        if negative { -value } else { value }
    }

    fn count_addition(&mut self) {
        self.since_carry += 1;
        if self.since_carry >= BEFORE_CARRY {
            self.settle();
        }
    }

    fn settled(&self) -> Self {
        let mut copy = self.clone();
        copy.settle();
        copy
    }

    fn settle(&mut self) {
        for k in 0..LIMBS - 1 {
            let carry = self.limbs[k] >> 32;
            self.limbs[k] -= carry << 32;
            self.limbs[k + 1] += carry;
        }
        self.since_carry = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancels_exactly_where_plain_addition_does_not() {
        let mut sum = ExactSum::default();
        for value in [1e300, 1.0, -1e300, 1e-300, 2.5] {
            sum.add(value);
        }
        assert_eq!(sum.value(), 3.5);
        sum.add(-3.5);
        assert_eq!(sum.value(), 1e-300);
        sum.add(-1e-300);
        assert_eq!(sum.value().to_bits(), 0f64.to_bits());
    }

    #[test]
    fn keeps_subnormals_and_signs() {
        let mut sum = ExactSum::default();
        sum.add(-f64::from_bits(3));
        sum.add(f64::from_bits(1));
        assert_eq!(sum.value(), -f64::from_bits(2));
        sum.add(-0.1);
        assert_eq!(sum.value(), -0.1);
        let mut thrice = ExactSum::default();
        thrice.add_sum(&sum, 3);
        assert!((thrice.value() + 0.3).abs() < 1e-15);
    }
}
