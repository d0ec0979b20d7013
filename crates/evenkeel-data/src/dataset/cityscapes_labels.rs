//! The label numbers of Cityscapes: 34 labelIds (and -1) in the files, 19 trainIds in training and scoring.

use crate::metric::IGNORE;

/// The 19 classes in trainId order.
pub const CLASSES: [&str; 19] = [
    "road",
    "sidewalk",
    "building",
    "wall",
    "fence",
    "pole",
    "traffic light",
    "traffic sign",
    "vegetation",
    "terrain",
    "sky",
    "person",
    "rider",
    "car",
    "truck",
    "bus",
    "train",
    "motorcycle",
    "bicycle",
];

/// The labelId of each trainId.
const LABEL_IDS: [u16; 19] = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33];
/// labelIds run from 0 to this; 255 stands for -1 (licence plates) in 8-bit files.
const LAST_LABEL_ID: u16 = 33;

/// The trainId of a labelId, [`IGNORE`] for those not scored; `None` if Cityscapes has no such labelId.
pub fn train_id(label_id: u16) -> Option<u16> {
    if label_id > LAST_LABEL_ID && label_id != 255 {
        return None;
    }
    Some(LABEL_IDS.iter().position(|&id| id == label_id).map_or(IGNORE, |k| k as u16))
}
