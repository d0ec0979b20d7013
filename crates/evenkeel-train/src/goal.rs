//! What a network is to learn: its task, the classes and the size it is made for. Rendered scenes have goals of their own; a data set brings
//! its classes (see [`crate::data`]).

use evenkeel_data::dataset::scenes::{INSTANCE_CLASSES, OBJECT_CLASSES, SCENE_CLASSES, SCENE_COLOURS};

/// The kind of answer a network gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A class for every pixel.
    Semantic,
    /// A class for the image.
    Classification,
    /// The objects of an image, each with its mask.
    Instances,
}

impl Task {
    /// The name of the figure its networks are scored by.
    pub fn figure(self) -> &'static str {
        match self {
            Self::Semantic => "mIoU",
            Self::Classification => "accuracy",
            Self::Instances => "mask AP50",
        }
    }

    /// Its name in contracts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Classification => "classification",
            Self::Instances => "instance",
        }
    }

    /// Labels of a picture's window of this size.
    pub(crate) fn labels(self, (height, width): (usize, usize)) -> usize {
        match self {
            Self::Semantic | Self::Instances => height * width,
            Self::Classification => 1,
        }
    }
}

/// What pixels in [0, 1] are made into before the first layer: (pixel − mean) / deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pixels {
    /// Red, green, blue.
    pub mean: [f32; 3],
    /// Red, green, blue.
    pub deviation: [f32; 3],
}

impl Default for Pixels {
    fn default() -> Self {
        Self { mean: [0.45; 3], deviation: [0.25; 3] }
    }
}

/// What a network is to learn.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The kind of answer.
    pub task: Task,
    /// Names of the classes, in index order.
    pub classes: Vec<String>,
    /// The colours of the classes, where there are some.
    pub colours: Option<Vec<[u8; 3]>>,
    /// The numbers that the data set gives the classes; empty where they are 0, 1, 2…
    pub ids: Vec<i64>,
    /// (height, width) of its pictures; an instance segmenter takes no others.
    pub size: (usize, usize),
    /// Objects of fewer pixels are not told.
    pub smallest: usize,
    /// Whether the network takes images of `size` only.
    pub fixed: bool,
    /// Sides are multiples of this.
    pub multiple: usize,
    /// How pixels become input.
    pub pixels: Pixels,
}

impl Goal {
    /// The classes of rendered street scenes.
    pub fn scenes() -> Self {
        Self {
            task: Task::Semantic,
            classes: SCENE_CLASSES.map(String::from).to_vec(),
            colours: Some(SCENE_COLOURS.to_vec()),
            ids: Vec::new(),
            size: (128, 256),
            smallest: 0,
            fixed: false,
            multiple: 8,
            pixels: Pixels::default(),
        }
    }

    /// Rendered object crops.
    pub fn objects() -> Self {
        Self {
            task: Task::Classification,
            classes: OBJECT_CLASSES.map(String::from).to_vec(),
            colours: None,
            size: (64, 64),
            ..Self::scenes()
        }
    }

    /// The cars and people of rendered street scenes.
    pub fn instances() -> Self {
        Self {
            task: Task::Instances,
            classes: INSTANCE_CLASSES.map(|(name, _)| String::from(name)).to_vec(),
            colours: None,
            ids: vec![1, 2],
            smallest: evenkeel_data::dataset::scenes::SMALLEST_INSTANCE,
            fixed: true,
            ..Self::scenes()
        }
    }

    /// The goal of the rendered pictures for a task.
    pub fn rendered(task: Task) -> Self {
        match task {
            Task::Semantic => Self::scenes(),
            Task::Classification => Self::objects(),
            Task::Instances => Self::instances(),
        }
    }

    /// Whether its classes have numbers for names.
    pub(crate) fn numbered(&self) -> bool {
        self.classes.iter().enumerate().all(|(class, name)| *name == class.to_string())
    }

    /// The number that the data set gives a class.
    pub fn id(&self, class: usize) -> i64 {
        self.ids.get(class).copied().unwrap_or(class as i64)
    }

    /// The numbers of all classes.
    pub fn all_ids(&self) -> Vec<i64> {
        (0..self.classes.len()).map(|class| self.id(class)).collect()
    }
}
