//! Mean intersection over union of two label maps.

use crate::image::IGNORED;

/// The mean over classes of intersection over union; classes in neither are left out, ignored pixels count for nothing.
pub fn mean_iou(said: &[u16], is: &[u16]) -> f64 {
    let classes = said.iter().chain(is).filter(|&&l| l != IGNORED).max().map_or(0, |&l| usize::from(l) + 1);
    let (mut both, mut said_count, mut is_count) =
        (vec![0u64; classes], vec![0u64; classes], vec![0u64; classes]);
    for (&said, &is) in said.iter().zip(is).filter(|&(_, &is)| is != IGNORED) {
        is_count[usize::from(is)] += 1;
        if said != IGNORED {
            said_count[usize::from(said)] += 1;
            both[usize::from(is)] += u64::from(said == is);
        }
    }
    let present: Vec<usize> = (0..classes).filter(|&c| said_count[c] + is_count[c] > 0).collect();
    if present.is_empty() {
        return 1.0;
    }
    let iou = |c: usize| both[c] as f64 / (said_count[c] + is_count[c] - both[c]) as f64;
    present.iter().map(|&c| iou(c)).sum::<f64>() / present.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iou_leaves_out_what_is_nowhere() {
        assert_eq!(mean_iou(&[0, 0, 1, 1], &[0, 0, 1, 1]), 1.0);
        assert_eq!(mean_iou(&[0, 0, 3, 3], &[0, 0, 1, 255]), 1.0 / 3.0);
        assert_eq!(mean_iou(&[7, 7], &[255, 255]), 1.0, "nothing labelled, nothing wrong");
    }
}
