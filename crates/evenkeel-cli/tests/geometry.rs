//! Pictures come back as they went in: attacked images, answers and defended images have the size of the photo, whatever the network is shown of it.

use std::path::Path;
use std::process::{Command, Stdio};

use evenkeel::{Image, shipped};

/// What the networks are shown, (height, width).
const FRAME: (usize, usize) = (128, 256);
const SIZES: [(usize, usize); 3] = [(77, 203), (141, 59), FRAME];

fn works(folder: &Path, line: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(folder).args(line.split_whitespace()).stdin(Stdio::null());
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A shipped network that is shown 128 x 256 by a rule, and photos of several forms.
fn bench(name: &str, rule: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let net = shipped::named(name).expect("it comes with the program");
    std::fs::write(at("net.onnx"), net.network).expect("written");
    let kept = net.contract.lines().filter(|line| !line.starts_with("resize") && !line.starts_with("size"));
    let input = format!("[input]\nresize = {rule:?}\nsize = \"256x128\"");
    let contract = kept.collect::<Vec<_>>().join("\n").replace("[input]", &input);
    std::fs::write(at("net.evenkeel.toml"), contract).expect("written");
    std::fs::create_dir(at("photos")).expect("made");
    for (k, (height, width)) in SIZES.into_iter().enumerate() {
        let value = |i: usize| ((i % width) * (k + 3) / 7 + i / width / 5) as f32 % 16.0 / 15.0;
        let image =
            Image::new(height, width, (0..3 * height * width).map(value).collect()).expect("an image");
        image.save_png(at(&format!("photos/p{k}.png"))).expect("written");
    }
    folder
}

#[test]
fn whatever_the_frame_pictures_have_the_size_of_the_photo() {
    for (net, rule) in [
        ("instances", "letterbox"),
        ("segmenter", "letterbox"),
        ("segmenter", "crop"),
        ("segmenter", "stretch"),
    ] {
        let bench = bench(net, rule);
        works(bench.path(), "attack net.onnx photos --steps 2 --out attacked");
        works(bench.path(), "defend net.onnx attacked/images --defence-steps 1 --out safe");
        let load = |file: String| {
            Image::load(bench.path().join(&file)).unwrap_or_else(|e| panic!("{net}, {rule}: {file}: {e}"))
        };
        for (k, size) in SIZES.into_iter().enumerate() {
            let what = format!("{net}, {rule}, {size:?}");
            let (photo, attacked) =
                (load(format!("photos/p{k}.png")), load(format!("attacked/images/p{k}.png")));
            assert_eq!(attacked.size(), size, "{what}");
            let apart = attacked.pixels().iter().zip(photo.pixels()).map(|(a, b)| (a - b).abs());
            let most = apart.fold(0.0, f32::max);
            assert!(most > 0.0 && most <= 4.51 / 255.0, "{what}: {most}");
            assert_eq!(load(format!("safe/p{k}.defended.png")).size(), size, "{what}");
            // a caption may stand below an answer, and beside one that is narrower than its words
            for answer in [format!("attacked/pictures/p{k}.answer.png"), format!("safe/p{k}.overlay.png")] {
                let (height, width) = load(answer).size();
                assert!(width >= size.1 && height >= size.0, "{what}: {height} x {width}");
            }
            if size == FRAME {
                assert!(!bench.path().join(format!("attacked/network/p{k}.png")).exists(), "{what}");
            } else {
                assert_eq!(load(format!("attacked/network/p{k}.png")).size(), FRAME, "{what}");
            }
        }
    }
}
