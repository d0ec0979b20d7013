//! The classes of a scene, and the mark of a sample: class and instance in one number.

use super::canvas::Mark;

pub(super) const ROAD: u8 = 0;
pub(super) const PAVEMENT: u8 = 1;
pub(super) const GRASS: u8 = 2;
pub(super) const BUILDING: u8 = 3;
pub(super) const FENCE: u8 = 4;
pub(super) const POLE: u8 = 5;
pub(super) const SIGN: u8 = 6;
pub(super) const TREE: u8 = 7;
pub(super) const PERSON: u8 = 8;
pub(super) const CAR: u8 = 9;
pub(super) const SKY: u8 = 10;

/// Names of the classes of a scene, in index order.
pub const SCENE_CLASSES: [&str; 11] =
    ["road", "pavement", "grass", "building", "fence", "pole", "sign", "tree", "person", "car", "sky"];

/// Colours the classes are drawn in.
pub const SCENE_COLOURS: [[u8; 3]; 11] = [
    [90, 84, 120],
    [214, 150, 196],
    [156, 204, 101],
    [176, 125, 98],
    [212, 178, 108],
    [70, 70, 70],
    [250, 204, 21],
    [46, 125, 50],
    [229, 57, 53],
    [25, 70, 186],
    [144, 202, 249],
];

/// Names of the classes of object crops, in index order.
pub const OBJECT_CLASSES: [&str; 10] =
    ["car", "bus", "truck", "bicycle", "person", "dog", "tree", "sign", "traffic light", "house"];

/// The mark of a sample of this class and instance.
pub(super) fn mark(class: u8, instance: u8) -> Mark {
    u16::from(class) << 8 | u16::from(instance)
}
