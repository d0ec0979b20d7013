//! Object crops: one thing in the middle of a street, for classification.

use super::building::{Building, Style};
use super::canvas::{Camera, Canvas, FINE};
use super::class;
use super::person::{Dog, Person};
use super::scene::{Sensor, paint_behind, paint_shadow};
use super::street::{Placed, Street};
use super::thing::{Bicycle, Post, Thing, Tree};
use super::vehicle::{Body, Vehicle};
use evenkeel::{Image, Random};

/// Renders the crop of a seed, showing an object of this class (see [`super::OBJECT_CLASSES`]), at a size.
///
/// # Panics
/// If there is no such class or a side is zero.
pub fn render_object(seed: u64, class: usize, height: usize, width: usize) -> Image {
    assert!(height > 0 && width > 0, "a crop needs at least one pixel");
    let mut random = Random::new(seed);
    let mut street = Street::draw(&mut random);
    street.placed.clear();
    let subject = SingleObject::draw(&mut random, class);
    let fine = (height * FINE) as f32;
    let eye = random.uniform(1.1, 2.2);
    let z = random.uniform(8.0, 16.0);
    let fill = random.uniform(0.5, 0.9);
    // The larger of its two extents fills this share of the crop.
    let (tall, wide) = subject.extent();
    let focal = fill * z * (fine / tall).min((width * FINE) as f32 / wide);
    let horizon = fine * random.uniform(0.44, 0.56) + focal * (tall * 0.5 - eye) / z;
    let camera =
        Camera { centre: (width * FINE) as f32 * random.uniform(0.42, 0.58), horizon, focal, height: eye };
    let mut canvas = Canvas::new(width * FINE, height * FINE, camera, street.light.air);
    subject.paint(&mut canvas, &street, z);
    Sensor::draw(&mut random).read(&canvas, Vec::new()).image
}

enum SingleObject {
    Thing(Box<Thing>),
    House(Building, f32),
}

impl SingleObject {
    fn draw(random: &mut Random, class: usize) -> Self {
        let turn = random.uniform(-1.0, 1.0) + if random.chance(0.5) { 0.0 } else { 2.5 };
        let thing = match class::OBJECT_CLASSES[class] {
            "car" => {
                let body = [Body::Saloon, Body::Hatch][random.below(2)];
                Thing::Vehicle(Vehicle::draw(random, body), turn)
            }
            "bus" => Thing::Vehicle(Vehicle::draw(random, Body::Bus), turn),
            "truck" => {
                let body = [Body::Truck, Body::Truck, Body::Van][random.below(3)];
                Thing::Vehicle(Vehicle::draw(random, body), turn)
            }
            "bicycle" => Thing::Bicycle(Bicycle::draw(random)),
            "person" => Thing::Person(Person::draw(random)),
            "dog" => Thing::Dog(Dog::draw(random)),
            "tree" => Thing::Tree(Tree::draw(random, 1.0)),
            "sign" => Thing::Post(Post::sign(random)),
            "traffic light" => Thing::Post(Post::traffic_light(random)),
            _ => return Self::House(Building::draw(random, Style::House), random.uniform(-4.0, 4.0)),
        };
        Self::Thing(Box::new(thing))
    }

    /// Height and width in metres.
    fn extent(&self) -> (f32, f32) {
        match self {
            Self::House(house, _) => (house.height + 3.0, 12.0),
            Self::Thing(thing) => match &**thing {
                Thing::Vehicle(v, _) => (v.height(), 2.0 * thing.shade().half_width),
                Thing::Person(p) => (p.height(), 0.6),
                Thing::Dog(d) => (d.height(), 1.6 * d.height()),
                Thing::Tree(t) => (t.height, 2.0 * t.radius),
                Thing::Post(p) => (p.height() * 1.1, 1.4),
                Thing::Bicycle(_) => (1.1, 1.9),
                Thing::Lamp(..) => (6.0, 2.0),
            },
        }
    }

    fn paint(&self, canvas: &mut Canvas, street: &Street, z: f32) {
        // The object stands straight ahead, wherever the road runs.
        let s = street.offset - street.bend * z * z;
        let front = canvas.next_layer();
        match self {
            Self::Thing(thing) => {
                thing.paint(canvas, &street.light, 0, street.point(s, 0.0, z));
                paint_behind(canvas, street);
                let placed = Placed { s, z, thing: (**thing).clone() };
                paint_shadow(canvas, street, &placed, front);
            }
            Self::House(house, skew) => {
                // Its street front is turned to the camera.
                let (left, right) = ([-5.0, 0.0, z - skew * 0.4], [5.0, 0.0, z + skew * 0.4]);
                house.paint(canvas, &street.light, class::mark(class::BUILDING, 0), left, right, -1.0);
                paint_behind(canvas, street);
            }
        }
    }
}
