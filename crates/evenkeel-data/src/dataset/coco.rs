//! MS-COCO: images in `val2017/`, objects in `annotations/instances_val2017.json`.
//!
//! Two readings of the same files: instances (`coco`), and label maps of the 21 VOC classes (`coco-voc21`) by the
//! convention of the DeepLab evaluations: objects of other categories are background, crowds count as their class, and
//! pixels claimed by more than one object are ignored.

use super::coco_json::{Annotation, GroundTruth, ImageEntry, read_ground_truth};
use super::files::load_picture;
use super::{
    Kind, Listing, Object, Offender, Preparation, Request, Sample, Source, Truth, names, voc, voc_palette,
};
use crate::metric::IGNORE;
use crate::{Error, Result};
use evenkeel::LabelMap;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

const LAYOUT: &str = "SPLIT/*.jpg and annotations/instances_SPLIT.json (SPLIT: val2017), or instances_val.json beside the images' folder";

pub(super) const INSTANCES: Kind = Kind {
    name: "coco",
    about: "MS-COCO objects with masks",
    layout: LAYOUT,
    preparation: Preparation::Resize { height: 400, width: 400 },
    far: Some(is_annotations),
    list: |root, request| list(root, request, Reading::Instances),
};

pub(super) const SEMANTIC: Kind = Kind {
    name: "coco-voc21",
    about: "MS-COCO as label maps of the 21 VOC classes",
    layout: LAYOUT,
    preparation: Preparation::Resize { height: 400, width: 400 },
    far: Some(is_annotations),
    list: |root, request| list(root, request, Reading::Voc21),
};

/// The COCO category of each VOC class; background has none.
const VOC_CATEGORIES: [i64; 21] = [0, 5, 2, 16, 9, 44, 6, 3, 17, 62, 21, 67, 18, 19, 4, 1, 64, 20, 63, 7, 72];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Instances,
    Voc21,
}

struct CocoSource {
    json: PathBuf,
    pictures: PathBuf,
    images: Vec<(ImageEntry, Vec<Annotation>)>,
    /// Place of each category among the classes.
    class_of: HashMap<i64, usize>,
    reading: Reading,
}

fn split(request: &Request) -> &str {
    request.split.as_deref().unwrap_or("val2017")
}

/// Where the annotations of a split may lie, the usual place first.
fn annotations(split: &str) -> [String; 3] {
    let short = split.trim_end_matches(char::is_numeric);
    [
        format!("annotations/instances_{split}.json"),
        format!("instances_{split}.json"),
        format!("instances_{short}.json"),
    ]
}

/// Whether an object far away is such a file.
fn is_annotations(name: &str, request: &Request) -> bool {
    annotations(split(request)).iter().any(|place| place == name)
}

fn list(root: &Path, request: &Request, reading: Reading) -> Result<Listing> {
    let split = split(request);
    let json = annotations(split).iter().map(|name| root.join(name)).find(|path| path.is_file());
    let json = json.ok_or_else(|| {
        let fault = format!("has no annotations/instances_{split}.json");
        Error::Offenders(vec![Offender::new(root, fault, format!("the layout is {LAYOUT}"))])
    })?;
    let pictures = [root.join(split), root.join("images").join(split)].into_iter().find(|p| p.is_dir());
    let pictures = pictures.unwrap_or_else(|| root.join(split));
    let truth = read_ground_truth(&json)?;
    let (classes, class_of, palette) = match reading {
        Reading::Voc21 => {
            let places =
                VOC_CATEGORIES.iter().enumerate().skip(1).map(|(class, &category)| (category, class));
            (names(&voc::CLASSES), places.collect(), voc_palette(voc::CLASSES.len()))
        }
        Reading::Instances => {
            let mut categories = truth.categories.clone();
            categories.sort_by_key(|category| category.id);
            let places =
                categories.iter().enumerate().map(|(class, category)| (category.id, class)).collect();
            let count = categories.len();
            (categories.into_iter().map(|category| category.name).collect(), places, voc_palette(count + 1))
        }
    };
    let (images, offenders) = by_image(truth, &json, &pictures);
    let source = Box::new(CocoSource { json, pictures, images, class_of, reading });
    Ok(Listing { source, classes, palette, offenders })
}

/// Sorts the annotations to their images, ascending by id; files that are missing are offenders.
fn by_image(
    truth: GroundTruth,
    json: &Path,
    pictures: &Path,
) -> (Vec<(ImageEntry, Vec<Annotation>)>, Vec<Offender>) {
    let mut offenders = Vec::new();
    let mut of_image: HashMap<i64, Vec<Annotation>> =
        truth.images.iter().map(|i| (i.id, Vec::new())).collect();
    for annotation in truth.annotations {
        match of_image.get_mut(&annotation.image_id) {
            Some(annotations) => annotations.push(annotation),
            None => {
                let fault = format!(
                    "annotation {} is for image {}, which it does not list",
                    annotation.id, annotation.image_id
                );
                offenders.push(Offender::new(json, fault, "remove it or add the image"));
            }
        }
    }
    let mut entries = truth.images;
    entries.sort_by_key(|image| image.id);
    let mut images = Vec::with_capacity(entries.len());
    for entry in entries {
        let picture = pictures.join(&entry.file_name);
        if picture.is_file() {
            let annotations = of_image.remove(&entry.id).unwrap_or_default();
            images.push((entry, annotations));
        } else {
            let fault = format!("{} lists it but it is missing", json.display());
            offenders.push(Offender::new(picture, fault, "unpack the images' archive again"));
        }
    }
    (images, offenders)
}

impl Source for CocoSource {
    fn len(&self) -> usize {
        self.images.len()
    }

    fn id(&self, index: usize) -> String {
        self.images[index].0.id.to_string()
    }

    fn files(&self, index: usize) -> Vec<PathBuf> {
        vec![self.pictures.join(&self.images[index].0.file_name)]
    }

    fn load(&self, index: usize) -> std::result::Result<Sample, Offender> {
        let (entry, annotations) = &self.images[index];
        let path = self.pictures.join(&entry.file_name);
        let image = load_picture(&path)?;
        if image.size() != (entry.height as usize, entry.width as usize) {
            let fault = format!(
                "is {}x{} but {} says {}x{}",
                image.width(),
                image.height(),
                self.json.display(),
                entry.width,
                entry.height
            );
            return Err(Offender::new(path, fault, "use the images the annotations were made for"));
        }
        let objects: std::result::Result<Vec<Object>, Offender> =
            annotations.iter().filter_map(|a| self.object(entry, a).transpose()).collect();
        let truth = match self.reading {
            Reading::Instances => Truth::Objects(objects?),
            Reading::Voc21 => Truth::Labels(label_map(entry, &objects?)),
        };
        Ok(Sample { id: self.id(index), image, truth })
    }
}

impl CocoSource {
    /// The object of an annotation, `None` if its category is left out in this reading.
    fn object(&self, entry: &ImageEntry, a: &Annotation) -> std::result::Result<Option<Object>, Offender> {
        let Some(&class) = self.class_of.get(&a.category_id) else {
            if self.reading == Reading::Voc21 {
                return Ok(None);
            }
            let fault = format!("annotation {} has category {}, which it does not list", a.id, a.category_id);
            return Err(Offender::new(&self.json, fault, "add the category or remove the annotation"));
        };
        let mask = a.segmentation.mask(entry.height, entry.width).map_err(|e| {
            let fault = format!("annotation {} of image {}: {e}", a.id, entry.id);
            Offender::new(&self.json, fault, "repair or remove that annotation")
        })?;
        let area = a.area.unwrap_or_else(|| f64::from(mask.area()));
        Ok(Some(Object { id: a.id, category: a.category_id, class, crowd: a.crowd, area, mask }))
    }
}

fn label_map(entry: &ImageEntry, objects: &[Object]) -> LabelMap {
    let (height, width) = (entry.height as usize, entry.width as usize);
    let mut labels = vec![0u16; height * width];
    let mut claimed = vec![false; height * width];
    for object in objects {
        object.mask.for_each_inside(|y, x| {
            let at = y * width + x;
            labels[at] = if claimed[at] { IGNORE } else { object.class as u16 };
            claimed[at] = true;
        });
    }
    LabelMap::new(height, width, labels).expect("the image was seen to have this size")
}
