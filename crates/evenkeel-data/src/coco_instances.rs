//! Between the method's instances and COCO's files: truths into a network's frame, answers out of it, to be scored or written.
//!
//! A class is a place in the network's list; `ids` holds the category number of each class (none: class and number are the same).
//! Crowds are no objects to attack or to find, so they are left out of the truths.

use crate::dataset::coco_json::{Annotation, ImageEntry, read_ground_truth};
use crate::dataset::{Object, Offender};
use crate::mask::Rle;
use crate::metric::instance::{DetectedInstance, Region, TrueInstance};
use crate::{Error, Result};
use evenkeel::model::Letterbox;
use evenkeel::task::TruthSource;
use evenkeel::task::instance::{Instance, Mask};
use serde_json::{Value, json};
use std::path::Path;

/// The run-length form of a mask.
pub fn rle_of(mask: &Mask) -> Result<Rle> {
    let (height, width) = mask.size();
    let bytes: Vec<u8> = mask.to_full().into_iter().map(u8::from).collect();
    Rle::encode(height as u32, width as u32, &bytes)
}

/// The pixels of a run-length mask.
pub fn mask_of(rle: &Rle) -> Result<Mask> {
    let inside: Vec<bool> = rle.decode().into_iter().map(|byte| byte != 0).collect();
    Mask::from_full((rle.height() as usize, rle.width() as usize), &inside)
        .map_err(|e| Error::Mask(e.to_string()))
}

/// The category number of a class.
pub fn category_of(class: usize, ids: &[i64]) -> i64 {
    ids.get(class).copied().unwrap_or(class as i64)
}

/// The true objects of an image as they lie in a network's frame. `path` is the annotations' file, for sentences.
///
/// # Errors
/// Naming every annotation that has no class or no mask.
pub fn true_instances(
    path: &Path,
    image: &ImageEntry,
    annotations: &[&Annotation],
    ids: &[i64],
    frame: &Letterbox,
) -> Result<Vec<Instance>> {
    let (mut truths, mut offenders) = (Vec::new(), Vec::new());
    for annotation in annotations.iter().filter(|annotation| !annotation.crowd) {
        let class = class_of(annotation.category_id, ids);
        let mask = annotation.segmentation.mask(image.height, image.width).and_then(|rle| mask_of(&rle));
        match (class, mask) {
            (Some(class), Ok(mask)) => {
                let framed = mask.framed(frame);
                // what is too small to be seen in the frame is not there
                if framed.area() > 0 {
                    truths.push(Instance::truth(class, framed));
                }
            }
            (None, _) => {
                let fault = format!(
                    "annotation {} has category {}, which is no class of the network",
                    annotation.id, annotation.category_id
                );
                offenders.push(Offender::new(
                    path,
                    fault,
                    "give the network's contract the right classes.ids",
                ));
            }
            (_, Err(error)) => {
                let fault = format!("annotation {}: {error}", annotation.id);
                offenders.push(Offender::new(path, fault, "repair or remove that annotation"));
            }
        }
    }
    if offenders.is_empty() { Ok(truths) } else { Err(Error::Offenders(offenders)) }
}

/// The true objects of a picture, by its file name, from a COCO instances file; for [`TruthSource::objects`].
///
/// # Errors
/// If the file cannot be read, does not have the picture, or has objects of no class of the network.
pub fn objects_of(source: &TruthSource<'_>) -> evenkeel::Result<Vec<Instance>> {
    let path = Path::new(source.given);
    let fail = |reason: String| evenkeel::Error::File { path: path.to_owned(), reason };
    let file = read_ground_truth(path).map_err(|e| fail(e.to_string()))?;
    let name = source.picture.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let entry = file.images.iter().find(|image| image.file_name == name);
    let entry = entry.ok_or_else(|| fail(format!("has no image {name}")))?;
    let own: Vec<_> = file.annotations.iter().filter(|a| a.image_id == entry.id).collect();
    true_instances(path, entry, &own, source.classes.ids, source.frame).map_err(|e| fail(e.to_string()))
}

/// The class of a category number, if it is one of the network's.
fn class_of(category: i64, ids: &[i64]) -> Option<usize> {
    match ids.is_empty() {
        true => usize::try_from(category).ok(),
        false => ids.iter().position(|id| *id == category),
    }
}

/// A data set's objects as they lie in a network's frame; crowds are left out, and what is too small to be seen there.
///
/// # Errors
/// If an object is of no class of the network, or a mask is not sound.
pub fn framed(objects: &[Object], ids: &[i64], frame: &Letterbox) -> Result<Vec<Instance>> {
    let mut all = Vec::new();
    for object in objects.iter().filter(|object| !object.crowd) {
        let class = class_of(object.category, ids).ok_or_else(|| {
            let words = "is no class of the network; give its contract the right classes.ids";
            Error::Request(format!("category {} {words}", object.category))
        })?;
        let mask = mask_of(&object.mask)?.framed(frame);
        if mask.area() > 0 {
            all.push(Instance::truth(class, mask));
        }
    }
    Ok(all)
}

/// A data set's objects as the score takes them.
pub fn countable(objects: Vec<Object>) -> Vec<TrueInstance> {
    let one = |object: Object| TrueInstance {
        category: object.category,
        crowd: object.crowd,
        area: object.area,
        region: Region::Mask(object.mask),
        countable: object.id != 0,
    };
    objects.into_iter().map(one).collect()
}

/// Instances on the image itself, ready to be scored.
pub fn detected(instances: &[Instance], ids: &[i64]) -> Result<Vec<DetectedInstance>> {
    let one = |instance: &Instance| {
        let mask = rle_of(&instance.mask)?;
        Ok(DetectedInstance {
            category: category_of(instance.class, ids),
            score: f64::from(instance.score),
            area: f64::from(mask.area()),
            region: Region::Mask(mask),
        })
    };
    instances.iter().map(one).collect()
}

/// Instances on the image itself, as entries of a results file.
pub fn results(image_id: i64, instances: &[Instance], ids: &[i64]) -> Result<Vec<Value>> {
    let one = |instance: &Instance| {
        let mask = rle_of(&instance.mask)?;
        Ok(json!({
            "image_id": image_id,
            "category_id": category_of(instance.class, ids),
            "score": instance.score,
            "segmentation": { "size": [mask.height(), mask.width()], "counts": mask.to_text() },
        }))
    };
    instances.iter().map(one).collect()
}
