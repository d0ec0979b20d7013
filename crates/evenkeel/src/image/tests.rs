//! Files as people have them: every depth and kind, turned by EXIF, painted, and broken.

use super::*;
use crate::random::Random;
use std::path::Path;

fn noise(height: usize, width: usize, seed: u64) -> Image {
    let mut random = Random::new(seed);
    Image::new(height, width, (0..3 * height * width).map(|_| random.unit()).collect()).unwrap()
}

fn write_png(path: &Path, colour: png::ColorType, depth: png::BitDepth, size: (u32, u32), data: &[u8]) {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size.1, size.0);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    if colour == png::ColorType::Indexed {
        encoder.set_palette(vec![9, 8, 7, 255, 0, 0, 0, 0, 255, 1, 2, 3]);
    }
    encoder.write_header().unwrap().write_image_data(data).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn both_depths_come_back_as_they_were_saved() {
    let folder = tempfile::tempdir().unwrap();
    let image = noise(5, 7, 1);
    image.save_png(folder.path().join("a.png")).unwrap();
    assert_eq!(Image::load(folder.path().join("a.png")).unwrap(), image.rounded_to_8_bits());
    image.save_png16(folder.path().join("b.png")).unwrap();
    let back = Image::load(folder.path().join("b.png")).unwrap();
    let far = back.pixels().iter().zip(image.pixels()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far <= 0.5001 / 65535.0, "{far}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file was left");
}

#[test]
fn grey_alpha_and_palette_become_rgb() {
    use png::{BitDepth::*, ColorType::*};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_png(&at("grey.png"), Grayscale, Eight, (1, 2), &[0, 51]);
    assert_eq!(Image::load(at("grey.png")).unwrap().pixels(), [0.0, 0.2, 0.0, 0.2, 0.0, 0.2]);
    write_png(&at("alpha.png"), Rgba, Eight, (1, 1), &[255, 51, 0, 7]);
    assert_eq!(Image::load(at("alpha.png")).unwrap().pixels(), [1.0, 0.2, 0.0]);
    write_png(&at("grey_alpha16.png"), GrayscaleAlpha, Sixteen, (1, 1), &[0x33, 0x33, 1, 2]);
    assert_eq!(Image::load(at("grey_alpha16.png")).unwrap().pixels(), [0.2, 0.2, 0.2]);
    write_png(&at("palette.png"), Indexed, Two, (1, 4), &[0b00_01_10_11]);
    let painted = Image::load(at("palette.png")).unwrap();
    assert_eq!(painted.to_rgb8(), [9, 8, 7, 255, 0, 0, 0, 0, 255, 1, 2, 3]);
    assert_eq!(LabelMap::load(at("palette.png")).unwrap().labels(), [0, 1, 2, 3]);
}

/// A JPEG of the given picture with an EXIF block that says `orientation`.
fn turned_jpeg(image: &Image, orientation: u8) -> Vec<u8> {
    let mut plain = Vec::new();
    ::image::codecs::jpeg::JpegEncoder::new_with_quality(&mut plain, 100)
        .encode(
            &image.to_rgb8(),
            image.width() as u32,
            image.height() as u32,
            ::image::ExtendedColorType::Rgb8,
        )
        .unwrap();
    let tiff = [
        b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".as_slice(),
        &[orientation, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let header = [[0xff, 0xe1].as_slice(), &(tiff.len() as u16 + 2).to_be_bytes(), &tiff].concat();
    [&plain[..2], &header, &plain[2..]].concat()
}

#[test]
fn exif_orientation_is_honoured() {
    let mut image = Image::filled(16, 32, 0.1);
    image.pixels_mut()[..8].fill(0.9); // bright at the top left
    let upright = Image::decode(&turned_jpeg(&image, 1), "a.jpg").unwrap();
    assert_eq!(upright.size(), (16, 32));
    let turned = Image::decode(&turned_jpeg(&image, 6), "a.jpg").unwrap();
    assert_eq!(turned.size(), (32, 16), "orientation 6 is a quarter turn");
    let at = |i: &Image, y: usize, x: usize| i.plane(0)[y * i.width() + x];
    assert!((at(&upright, 0, 0) - at(&turned, 0, 15)).abs() < 1e-6, "its top left goes to the top right");
}

#[test]
fn broken_files_are_refused_in_words() {
    let refused = |bytes: &[u8]| Image::decode(bytes, "dir/x.png").unwrap_err().to_string();
    assert_eq!(refused(b""), "dir/x.png: the file is empty");
    assert_eq!(refused(b"hello, world"), "dir/x.png: neither a PNG nor a JPEG file");
    let whole = noise(40, 40, 3).encode_png().unwrap();
    assert!(refused(&whole[..whole.len() / 2]).starts_with("dir/x.png: cut short or damaged"));
    let mut huge = Vec::new();
    png::Encoder::new(&mut huge, 30000, 30000).write_header().unwrap();
    let sentence = refused(&huge);
    assert_eq!(
        sentence,
        "dir/x.png: the header announces 30000x30000 pixels, more than the 100 million accepted"
    );
    let missing = Image::load("no/such/file.png").unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file.png: "), "{missing}");
}

#[test]
fn cmyk_is_refused_in_words() {
    let mut bytes = turned_jpeg(&noise(16, 16, 4), 1);
    let frame = bytes.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    bytes[frame + 9] = 4;
    let sentence = Image::decode(&bytes, "c.jpg").unwrap_err().to_string();
    assert!(sentence.contains("CMYK"), "{sentence}");
}

#[test]
fn a_jpeg_cut_short_is_refused_however_little_is_missing() {
    let whole = turned_jpeg(&noise(64, 64, 9), 1);
    assert!(Image::decode(&whole, "c.jpg").is_ok());
    for missing in [2, 40, whole.len() / 2] {
        let sentence = Image::decode(&whole[..whole.len() - missing], "c.jpg").unwrap_err().to_string();
        assert!(sentence.starts_with("c.jpg: cut short"), "{sentence}");
    }
}

#[test]
fn any_cut_or_flipped_byte_is_an_error_or_a_picture() {
    let png = noise(9, 9, 5).encode_png().unwrap();
    let jpeg = turned_jpeg(&noise(16, 24, 6), 3);
    let mut random = Random::new(8);
    for whole in [png, jpeg] {
        for _ in 0..300 {
            let mut bytes = whole.clone();
            bytes.truncate(1 + random.below(whole.len()));
            let at = random.below(bytes.len());
            bytes[at] = random.bits() as u8;
            let _ = Image::decode(&bytes, "x");
        }
    }
}

#[test]
fn label_maps_keep_their_numbers_and_colours() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let map = LabelMap::new(2, 3, vec![0, 1, 20, 255, 5, 7]).unwrap();
    let voc = Palette::of_voc(21);
    map.save_png(at("plain.png"), None).unwrap();
    map.save_png(at("palette.png"), Some(&voc)).unwrap();
    assert_eq!(LabelMap::load(at("plain.png")).unwrap(), map);
    assert_eq!(LabelMap::load(at("palette.png")).unwrap(), map);
    let wide = LabelMap::new(1, 2, vec![3, 1000]).unwrap();
    wide.save_png(at("wide.png"), None).unwrap();
    assert_eq!(LabelMap::load(at("wide.png")).unwrap(), wide);
    assert_eq!(voc.colour(15).unwrap(), [192, 128, 128], "person, as VOC paints it");
    assert_eq!(Palette::of_cityscapes().colour(0).unwrap(), [128, 64, 128], "road");
}

#[test]
fn painted_maps_are_read_by_their_palette() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("painted.png");
    let cityscapes = Palette::of_cityscapes();
    let map = LabelMap::new(1, 4, vec![0, 18, 255, 11]).unwrap();
    map.painted(&cityscapes).unwrap().save_png(&path).unwrap();
    assert_eq!(LabelMap::load_painted(&path, &cityscapes).unwrap(), map);
    let sentence = LabelMap::load(&path).unwrap_err().to_string();
    assert!(sentence.contains("not a label map"), "{sentence}");
    let sentence = LabelMap::load_painted(&path, &Palette::of_voc(3)).unwrap_err().to_string();
    assert!(sentence.contains("belongs to no class"), "{sentence}");
}

#[test]
fn unknown_classes_and_wrong_sizes_are_refused() {
    let map = LabelMap::new(1, 2, vec![3, 255]).unwrap();
    assert!(map.check_classes(4, "labels.png").is_ok());
    let sentence = map.check_classes(3, "labels.png").unwrap_err().to_string();
    assert!(sentence.starts_with("labels.png: label 3 has no class"), "{sentence}");
    assert!(map.painted(&Palette::of_voc(3)).is_err());
    assert!(map.overlaid(&Image::filled(2, 2, 0.5), &Palette::of_voc(4), 0.5).is_err());
    let over = map.overlaid(&Image::filled(1, 2, 0.5), &Palette::of_voc(4), 1.0).unwrap();
    assert_eq!(over.to_rgb8(), [128, 128, 0, 128, 128, 128]);
    assert!(Palette::new(vec![[1, 2, 3], [1, 2, 3]]).is_err());
}

#[test]
fn label_maps_are_resized_by_their_centres() {
    let map = LabelMap::new(2, 2, vec![1, 2, 3, 4]).unwrap();
    assert_eq!(map.resized(4, 4).labels(), [1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4]);
    assert_eq!(map.resized(1, 1).labels(), [4]);
}

#[test]
fn a_colour_profile_that_unpacks_to_far_more_than_the_picture_is_left_packed() {
    use ::image::ImageDecoder;
    for (size, unpacked) in [(1000usize, true), (80 << 20, false)] {
        let mut bytes = Vec::new();
        let mut info = png::Info::with_size(4, 2);
        (info.color_type, info.icc_profile) = (png::ColorType::Rgb, Some(vec![0; size].into()));
        let encoder = png::Encoder::with_info(&mut bytes, info).unwrap();
        encoder.write_header().unwrap().write_image_data(&[128; 24]).unwrap();
        assert!(bytes.len() < size / 100 + 300, "{}", bytes.len());
        let profile = super::load::png_decoder(&bytes, Path::new("a.png")).unwrap().icc_profile().unwrap();
        assert_eq!(profile.is_some(), unpacked, "{size}");
        assert_eq!(Image::decode(&bytes, "a.png").unwrap().size(), (2, 4));
    }
}
