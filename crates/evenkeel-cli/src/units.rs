//! Numbers as people read them.

/// `12.3 M`.
pub(crate) fn count(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.iter().find(|(scale, _)| value >= *scale) {
        Some((scale, unit)) => format!("{:.1} {unit}", value / scale),
        None => format!("{value:.0} "),
    }
}

/// `12.3 MB`, in powers of 1024.
pub(crate) fn bytes(value: usize) -> String {
    let value = value as f64;
    let units = [(1u64 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")];
    match units.iter().find(|(scale, _)| value >= *scale as f64) {
        Some((scale, unit)) => format!("{:.1} {unit}", value / *scale as f64),
        None => format!("{value} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_their_unit() {
        assert_eq!(count(1_234_567.0), "1.2 M");
        assert_eq!(bytes(3 << 20), "3.0 MB");
        assert_eq!(bytes(12), "12 B");
    }
}
