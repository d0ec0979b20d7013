//! Sky, ground and what lines the street: everything behind the things in it.

use super::canvas::{Canvas, FINE, Patch};
use super::class;
use super::light::Light;
use super::street::{FAR, Fence, Plot, Side, Street};
use super::texture::{Colour, clouds, hue, mix, noise, part, rise, speck, times, under, whole};

/// Sky down to the horizon and a row below it, behind everything.
pub(super) fn paint_sky(canvas: &mut Canvas, light: &Light, seed: u32) {
    let camera = canvas.camera;
    let rows = ((camera.horizon.max(0.0) as usize) + 2).min(canvas.height);
    let sky = class::mark(class::SKY, 0);
    // Air and clouds are smooth: one sample serves a whole pixel.
    for y in (0..rows).step_by(FINE) {
        let up = ((camera.horizon - (y + FINE / 2) as f32) / camera.focal).max(0.0);
        let base = mix(light.horizon, light.zenith, up / (0.22 + up));
        // Clouds lie on a plane high above, so they crowd towards the horizon.
        let distance = 1.0 / (up + 0.09);
        let veil = rise(up, 0.0, 0.12);
        for x in (0..canvas.width).step_by(FINE) {
            let samples = (y..(y + FINE).min(canvas.height))
                .flat_map(|line| (0..FINE).map(move |k| (line, x + k)))
                .map(|(line, column)| line * canvas.width + column);
            let bare: Vec<usize> = samples.filter(|&sample| canvas.is_bare(sample)).collect();
            if bare.is_empty() {
                continue;
            }
            let across = ((x + FINE / 2) as f32 - camera.centre) / camera.focal;
            let puff = clouds(across * distance * 1.1 + 3.0, distance * 1.7, seed);
            let cloud = rise(puff, 0.74 - 0.4 * light.cover, 0.86 - 0.3 * light.cover) * veil;
            let shaded = mix(light.cloud, times(light.cloud, 0.86), rise(puff, 0.6, 0.85));
            let colour = mix(base, shaded, cloud * 0.85);
            bare.into_iter().for_each(|sample| canvas.put(sample, sky, colour));
        }
    }
}

/// How high the buildings of a side stand at each metre ahead: what throws its shadow on the street.
struct Skyline {
    heights: Vec<f32>,
}

const BEHIND: f32 = 60.0;

impl Skyline {
    fn of(side: &Side) -> Self {
        let mut heights = vec![0.0; (BEHIND + FAR) as usize + 40];
        for plot in &side.plots {
            let Some(building) = &plot.building else { continue };
            // The row of houses goes on behind the camera, as its first metres repeated.
            for (metre, height) in heights.iter_mut().enumerate() {
                let z = metre as f32 - BEHIND;
                let z = if z < 0.0 { -z } else { z };
                if z >= plot.from && z < plot.to {
                    *height = building.height;
                }
            }
        }
        Self { heights }
    }

    fn at(&self, z: f32) -> f32 {
        let metre = (z + BEHIND).clamp(0.0, (self.heights.len() - 1) as f32);
        self.heights[metre as usize]
    }
}

/// The ground from the bottom of the image to the horizon.
pub(super) fn paint_ground(canvas: &mut Canvas, street: &Street) {
    let camera = canvas.camera;
    let light = &street.light;
    let sunny = light.on([0.0, 1.0, 0.0]);
    let shaded = light.in_shade();
    let sun_side = usize::from(light.to_sun[0] > 0.0);
    let side = &street.sides[sun_side];
    let skyline = Skyline::of(side);
    let line = street.plot_line(side).abs();
    let (sun_x, sun_y, sun_z) = (light.to_sun[0].abs().max(0.05), light.to_sun[1], light.to_sun[2]);
    for y in (camera.horizon.max(0.0) as usize)..canvas.height {
        let below = y as f32 + 0.5 - camera.horizon;
        if below <= 0.25 {
            continue;
        }
        let z = camera.focal * camera.height / below;
        let middle = street.bend * z * z - street.offset;
        let metres = z / camera.focal;
        for x in 0..canvas.width {
            let sample = y * canvas.width + x;
            if !canvas.is_bare(sample) {
                continue;
            }
            let s = (x as f32 + 0.5 - camera.centre) * metres - middle;
            let (mark, colour) = ground(street, s, z, metres);
            let way = line - side.sign * s;
            let hit = way * sun_y / sun_x;
            let edge = skyline.at(z + way * sun_z / sun_x) - hit;
            let shadow = if way > 0.0 { rise(edge, -0.15, 0.15) } else { 0.0 };
            let lit = under(colour, mix(sunny, shaded, shadow));
            canvas.put(sample, class::mark(mark, 0), canvas.air.over(lit, z));
        }
    }
}

/// Class and colour of the ground at a place; `metres` is the width of a sample there.
fn ground(street: &Street, s: f32, z: f32, metres: f32) -> (u8, Colour) {
    let ground = &street.ground;
    let side = &street.sides[usize::from(s > 0.0)];
    let from_kerb = s.abs() - street.half_road;
    let fine = 0.06 / (0.06 + metres * 3.0);
    let grain = fine * (speck(whole(s * 24.0), whole(z * 24.0), street.seed) - 0.5);
    if from_kerb < 0.0 {
        return (class::ROAD, road(street, s, z, metres, grain));
    }
    if from_kerb < 0.22 {
        return (class::PAVEMENT, times(ground.pavement, 1.12 + 0.2 * grain));
    }
    let paved = from_kerb < side.pavement || side.paved;
    if paved {
        let mut tone = 0.9 + 0.2 * noise(s * 0.7, z * 0.7, street.seed) + 0.25 * grain;
        if ground.tile > 0.0 {
            let joint = part(s / ground.tile) < 0.07 || part(z / ground.tile) < 0.07;
            let seen = (0.09 * ground.tile / metres).min(1.0);
            let slab = speck(whole(s / ground.tile), whole(z / ground.tile), street.seed ^ 5) - 0.5;
            tone += seen * (0.1 * slab - if joint { 0.2 } else { 0.0 });
        }
        return (class::PAVEMENT, times(ground.pavement, tone));
    }
    let tuft = noise(s * 2.2, z * 2.2, street.seed) * 0.3 + noise(s * 0.3, z * 0.3, street.seed) * 0.35;
    let blade = fine * (speck(whole(s * 40.0), whole(z * 14.0), street.seed ^ 3) - 0.5) * 0.5;
    (class::GRASS, times(ground.grass, 0.68 + tuft + blade))
}

fn road(street: &Street, s: f32, z: f32, metres: f32, grain: f32) -> Colour {
    let ground = &street.ground;
    let worn = noise(s * 0.9, z * 0.25, street.seed ^ 11) - 0.5;
    let mended = noise(s * 0.3 + 9.0, z * 0.2, street.seed ^ 23) > 0.74;
    let gutter = 1.0 - 0.25 * rise(s.abs(), street.half_road - 0.5, street.half_road);
    let tone = (0.97 + 0.22 * worn + 0.4 * grain) * gutter * if mended { 0.84 } else { 1.0 };
    let mut colour = times(ground.road, tone);
    if ground.wet > 0.0 {
        let puddle = rise(noise(s * 0.5, z * 0.35, street.seed ^ 31), 0.5, 0.6) * ground.wet;
        colour = mix(colour, times(street.light.horizon, 0.8), puddle);
    }
    if !painted_line(street, s, z) {
        return colour;
    }
    let seen = (0.14 / metres).min(1.0);
    let scuffed = 0.65 + 0.35 * noise(s * 5.0, z * 2.0, street.seed ^ 41);
    mix(colour, ground.line, seen * scuffed)
}

/// Whether there is road paint at a place.
fn painted_line(street: &Street, s: f32, z: f32) -> bool {
    let ground = &street.ground;
    if let Some(from) = ground.crossing
        && z > from
        && z < from + 3.0
    {
        return part(s / 1.0 + 0.25) < 0.5;
    }
    let half = street.half_road;
    let lane = 2.0 * half / ground.lanes as f32;
    let to_lane = (part(s / lane + 0.5) - 0.5).abs() * lane;
    let inner = s.abs() < half - 0.6 * lane;
    let dashed = ground.dash == 0.0 || part(z / ground.dash) < 0.5;
    let between = inner && to_lane < 0.09 && dashed;
    let edge = ground.edge_lines && (half - s.abs() - 0.35).abs() < 0.07;
    between || edge
}

/// Woods or far houses at the end of the street.
pub(super) fn paint_backdrop(canvas: &mut Canvas, street: &Street) {
    let back = &street.backdrop;
    let z = FAR + 25.0;
    let kind = if back.woods { class::TREE } else { class::BUILDING };
    let reach = 400.0;
    let foot = street.point(0.0, 0.0, z);
    let patch = Patch::facing([0.0, foot[1], z], reach, back.height * 1.6);
    let lit = street.light.on([0.0, 0.2, -0.98]);
    let leaf = mix(street.ground.grass, [0.12, 0.25, 0.16], 0.5);
    canvas.paint(&patch, class::mark(kind, 0), |u, v, _| {
        if back.woods {
            let top = back.height * (0.5 + 0.8 * clouds(u * 0.07, 0.5, street.seed));
            let tone = 0.7 + 0.6 * noise(u * 0.5, v * 0.5, street.seed);
            return (v < top).then(|| under(times(leaf, tone), lit));
        }
        let block = whole(u / 13.0);
        let top = back.height * (0.45 + speck(block, 2, street.seed));
        let wall = mix(back.colour, hue(speck(block, 3, street.seed), 0.3, 0.6), 0.5);
        let window = part(u / 2.6) < 0.45 && part(v / 3.1) < 0.45;
        (v < top).then(|| under(times(wall, if window { 0.55 } else { 1.0 }), lit))
    });
}

/// Buildings, gardens and fences of both sides, from near to far.
pub(super) fn paint_plots(canvas: &mut Canvas, street: &Street) {
    for side in street.sides.iter().rev() {
        for plot in &side.plots {
            canvas.next_layer();
            paint_plot(canvas, street, side, plot);
        }
    }
}

fn paint_plot(canvas: &mut Canvas, street: &Street, side: &Side, plot: &Plot) {
    let line = street.plot_line(side);
    let light = &street.light;
    if let Some(building) = &plot.building {
        let gap = if building.setback() > 0.0 { 0.8 } else { 0.0 };
        let s = line + side.sign * building.setback();
        let (near, far) = (street.point(s, 0.0, plot.from + gap), street.point(s, 0.0, plot.to));
        building.paint(canvas, light, class::mark(class::BUILDING, 0), near, far, side.sign);
    }
    for (behind, z, tree) in &plot.trees {
        if *z > 2.5 {
            let foot = street.point(line + side.sign * behind, 0.0, *z);
            tree.paint(canvas, light, class::mark(class::TREE, 0), foot);
        }
    }
    if let Some(fence) = &plot.fence {
        paint_fence(canvas, street, (line, plot.from, plot.to), fence);
    }
}

fn paint_fence(canvas: &mut Canvas, street: &Street, (s, from, to): (f32, f32, f32), fence: &Fence) {
    let (a, b) = (street.point(s, 0.0, from), street.point(s, 0.0, to));
    let d = [b[0] - a[0], 0.0, b[2] - a[2]];
    let length = (d[0] * d[0] + d[2] * d[2]).sqrt();
    let u = d.map(|v| v / length);
    let patch =
        Patch { origin: a, u, v: [0.0, 1.0, 0.0], u_range: (0.0, length), v_range: (0.0, fence.height) };
    let facing = if s > 0.0 { -1.0 } else { 1.0 };
    let lit = street.light.on([facing * u[2], 0.0, -facing * u[0]]);
    canvas.paint(&patch, class::mark(class::FENCE, 0), |u, v, z| {
        let tone = 0.88 + 0.24 * noise(u * 1.7, v * 2.3, street.seed);
        if fence.slats == 0.0 {
            let cap = if v > fence.height - 0.14 { 1.15 } else { 1.0 };
            return Some(under(times(fence.colour, tone * cap), lit));
        }
        let slat = part(u / fence.slats);
        let rail = (v - fence.height * 0.3).abs() < 0.06 || (v - fence.height * 0.75).abs() < 0.06;
        let gap = slat > 0.66 && !rail;
        let post = whole(u / fence.slats) % 8 == 0;
        let dark = if gap { 1.0 - 0.5 * 22.0 / (22.0 + z) } else { 1.0 };
        let pointed = v < fence.height - 0.25 * (slat - 0.33).abs() || post;
        pointed.then(|| under(times(fence.colour, tone * dark), lit))
    });
}
