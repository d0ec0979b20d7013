//! A question to a model and its answer: images, what to do with them, what is wanted of the outcome. What a worker does.
//!
//! Encoded images and 8-bit pixels are brought to the network's size as the command line does it; tensors of numbers are taken as they are and must have a
//! size that the network takes. So a picture gets the same verdict here and from `evenkeel predict`, bit for bit.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use evenkeel::defence::DefenceSpec;
use evenkeel::image::Image;
use evenkeel::model::Model;
use evenkeel::network::{Network, Tensor};
use evenkeel::pipeline::{Pipeline, Verdict};

use crate::budget::Share;
use crate::choice::Choice;
use crate::error::Result;
use crate::hosted::Hosted;
use crate::pictures::{Pictures, pictures};
use crate::queue::Lane;
use crate::sizes::{check_announced, check_shown, check_size};
use crate::watched::{Stop, Watched};

/// Where an image comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A PNG or JPEG file.
    Encoded(Bytes),
    /// Pixels of 8 bits, of any size.
    Pixels(Pixels),
    /// Numbers at the network's own size.
    Tensor(Image),
}

/// Pixels of 8 bits, as they came.
#[derive(Clone, Debug)]
pub struct Pixels {
    /// Pixels down.
    pub height: usize,
    /// Pixels across.
    pub width: usize,
    /// Whether each pixel's red, green and blue lie together, and not all red first.
    pub interleaved: bool,
    /// Three values for each pixel.
    pub bytes: Bytes,
}

/// What a value of 8 bits stands for; looked up, it takes half the time of a division.
static LEVELS: [f32; 256] = {
    let mut levels = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        levels[byte] = byte as f32 / 255.0;
        byte += 1;
    }
    levels
};

impl Pixels {
    /// The same as an image.
    fn image(&self) -> Result<Image> {
        let Self { height, width, interleaved, ref bytes } = *self;
        if !interleaved {
            let pixels = bytes.iter().map(|byte| LEVELS[usize::from(*byte)]).collect();
            return Ok(Image::new(height, width, pixels)?);
        }
        let mut pixels = vec![0.0; bytes.len()];
        let (red, others) = pixels.split_at_mut(bytes.len() / 3);
        let (green, blue) = others.split_at_mut(bytes.len() / 3);
        for (((pixel, red), green), blue) in bytes.as_chunks::<3>().0.iter().zip(red).zip(green).zip(blue) {
            [*red, *green, *blue] = pixel.map(|byte| LEVELS[usize::from(byte)]);
        }
        Ok(Image::new(height, width, pixels)?)
    }
}

/// What is wanted beyond scores.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wants {
    /// The detection score.
    pub score: bool,
    /// The prediction and everything else that makes a verdict.
    pub verdict: bool,
    /// The answer painted on the image as it came, as a PNG file.
    pub overlay: bool,
    /// Pictures for a page.
    pub pictures: bool,
}

/// Images and what to do with them.
pub struct Question {
    /// The model.
    pub hosted: Arc<Hosted>,
    /// The images.
    pub images: Vec<Source>,
    /// How they are answered.
    pub choice: Choice,
    /// What is wanted.
    pub wants: Wants,
    /// The most pixels of all images together.
    pub pixels: usize,
    /// What it holds of the memory of requests.
    #[expect(dead_code, reason = "goes back when the question is dropped")]
    pub(crate) share: Share,
}

/// What a model made of one image.
pub(crate) struct Outcome {
    /// The scores, one part for each output of the model.
    pub scores: Tensor,
    /// The verdict, if anything beyond scores was wanted.
    pub verdict: Option<Verdict>,
    /// A fingerprint of the image as it came; empty without a verdict.
    pub hash: String,
    /// The image that was judged, for those who keep what raised an alarm.
    pub image: Option<Image>,
    /// The answer painted on the image as it came, if that was wanted.
    pub overlay: Option<Vec<u8>>,
    /// Pictures, if they were wanted.
    pub pictures: Option<Pictures>,
}

/// An image that is to be answered.
struct Seen {
    /// At the network's size.
    image: Image,
    /// As it came, where that is another size and will be painted on.
    original: Option<Image>,
    /// A fingerprint of what came, where a verdict is made of it.
    hash: Option<String>,
}

impl Question {
    /// Whether each image takes one pass.
    pub fn lane(&self) -> Lane {
        let plain = self.choice.is_plain() && !self.wants.score && !self.wants.pictures;
        if plain { Lane::Plain } else { Lane::Defended }
    }

    /// Whether a verdict is made of each image, and not only scores.
    fn is_judged(&self) -> bool {
        self.lane() == Lane::Defended || self.wants.verdict
    }

    /// What requests with the same cost have in common.
    pub(crate) fn kind(&self) -> String {
        match self.lane() {
            Lane::Plain => "plain".into(),
            Lane::Defended => {
                let choice = (&self.choice.defence, &self.choice.answer, self.choice.always);
                let wants = (self.wants.score, self.wants.pictures);
                format!("{} {wants:?}", serde_json::to_string(&choice).unwrap_or_default())
            }
        }
    }

    /// The passes that one image will probably take, a gradient counted as two.
    fn passes(&self) -> f64 {
        let views = self.hosted.detector.views.rules.len() as f64;
        let defence = self.choice.defence.as_ref().filter(|spec| DefenceSpec::takes_gradients(spec));
        let defence = defence.map_or(0.0, |spec| 3.0 * spec.settings().steps as f64 * (1.0 + views));
        let answer = self.choice.answer.as_ref().filter(|spec| !spec.is_plain());
        let answer = answer.map_or(1.0, |spec| match spec.name() {
            "noise-vote" => spec.settings().draws as f64,
            _ => 1.0 + spec.settings().views.set.rules.len() as f64,
        });
        let extra = f64::from(u8::from(self.wants.score)) + 2.0 * f64::from(u8::from(self.wants.pictures));
        defence + answer + extra * (1.0 + views)
    }

    /// The seconds that it will probably take.
    pub(crate) fn cost(&self) -> f64 {
        self.images.len() as f64 * self.hosted.cost(&self.kind(), self.passes())
    }

    /// Answers it, once: its images are taken out. `stop` is asked before every pass of the network.
    ///
    /// # Errors
    /// If an image cannot be used, or the network fails.
    pub(crate) fn answer(&mut self, stop: Stop) -> Result<Vec<Outcome>> {
        check_announced(&self.images, self.pixels)?;
        let images = std::mem::take(&mut self.images).into_iter().map(|source| self.seen(source));
        let images = images.collect::<Result<Vec<_>>>()?;
        let own = &self.hosted.model;
        let network = Watched::new(own.network.clone(), self.hosted.passes.clone(), stop);
        if !self.is_judged() {
            return plain(&network, &own.output.list(), images);
        }
        let model = Arc::new(Model { network: Arc::new(network), ..(**own).clone() });
        let pipeline = self.pipeline(&model)?;
        images.into_iter().map(|seen| self.judge(&pipeline, seen)).collect()
    }

    fn judge(&self, pipeline: &Pipeline, seen: Seen) -> Result<Outcome> {
        let Seen { image, original, hash } = seen;
        let hash = hash.unwrap_or_default();
        let mut verdict = pipeline.run(&image)?;
        if self.choice.always {
            // the pipeline was told of no threshold, so that it defends in any case
            verdict.alarm = verdict.score.zip(self.hosted.threshold()).map(|(score, most)| score > most);
        }
        let pictures = self.wants.pictures.then(|| pictures(pipeline, &image, &verdict)).transpose()?;
        let under = original.as_ref().unwrap_or(&image);
        let overlay = || verdict.overlay(&pipeline.model, under)?.drawn().encode_png();
        let overlay = self.wants.overlay.then(overlay).transpose()?;
        let (scores, image) = (verdict.scores.clone(), Some(image));
        Ok(Outcome { scores, verdict: Some(verdict), hash, image, overlay, pictures })
    }

    fn pipeline(&self, model: &Arc<Model>) -> Result<Pipeline> {
        let (hosted, choice) = (&self.hosted, &self.choice);
        let mut pipeline = Pipeline::new(model.clone()).with_seed(choice.seed);
        if let Some(spec) = &choice.defence {
            pipeline = pipeline.with_defence(spec.build(model, &hosted.heads_for(spec.name())?)?);
        }
        if let Some(spec) = &choice.answer {
            pipeline = pipeline.with_answer(spec.build(model)?);
        }
        if self.wants.score || !choice.always && hosted.threshold().is_some() && !choice.is_plain() {
            pipeline = pipeline.with_detector(hosted.detector_for(choice)?);
            pipeline.threshold = hosted.threshold().filter(|_| !choice.always);
            let rule = hosted.calibration.as_ref().map(|c| c.estimate_rule(evenkeel::detect::DELTA));
            pipeline.estimate = rule.transpose()?.flatten();
        }
        Ok(pipeline)
    }

    /// An image at the network's size, and the fingerprint of what came.
    fn seen(&self, source: Source) -> Result<Seen> {
        let (model, most, is_judged) = (&*self.hosted.model, self.hosted.most_pixels, self.is_judged());
        let hashed = |image: &Image| is_judged.then(|| hash_of(image));
        match source {
            Source::Encoded(bytes) => {
                let hash = is_judged.then(|| blake3::hash(&bytes).to_hex().to_string());
                let original = Image::decode(&bytes, Path::new("image"))?;
                check_shown(model, original.size(), most)?;
                let image = model.fit(&original)?;
                Ok(Seen { image, original: self.wants.overlay.then_some(original), hash })
            }
            Source::Pixels(pixels) => {
                let size = (pixels.height, pixels.width);
                check_shown(model, size, most)?;
                let image = pixels.image()?;
                let hash = hashed(&image);
                // pixels of 8 bits at the network's size are what fitting would make of them
                let image = if check_size(model, size).is_ok() { image } else { model.fit(&image)? };
                Ok(Seen { image, original: None, hash })
            }
            Source::Tensor(image) => {
                check_size(model, image.size())?;
                check_shown(model, image.size(), most)?;
                Ok(Seen { hash: hashed(&image), image, original: None })
            }
        }
    }
}

/// The network's own scores of images.
fn plain(network: &impl Network, names: &[&str], images: Vec<Seen>) -> Result<Vec<Outcome>> {
    let scores = network.run(&images.iter().map(|seen| &seen.image).collect::<Vec<_>>(), names)?;
    let outcome = |scores| Outcome {
        scores: Tensor::joined(scores),
        verdict: None,
        hash: String::new(),
        image: None,
        overlay: None,
        pictures: None,
    };
    Ok(scores.into_iter().map(outcome).collect())
}

fn hash_of(image: &Image) -> String {
    let bytes: Vec<u8> = image.pixels().iter().flat_map(|v| v.to_le_bytes()).collect();
    blake3::hash(&bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_of_8_bits_are_what_a_file_of_them_would_be() {
        let bytes: Vec<u8> = (0..16 * 16 * 3).map(|i| (i * 7 % 256) as u8).collect();
        let image = Image::from_rgb8(16, 16, &bytes).unwrap();
        let came = Pixels { height: 16, width: 16, interleaved: true, bytes: bytes.clone().into() };
        assert_eq!(came.image().unwrap(), image);
        assert_eq!(image.rounded_to_8_bits(), image, "fitting changes nothing");
        let planes = (0..3).flat_map(|channel| bytes.iter().skip(channel).step_by(3).copied());
        let bytes = planes.collect::<Vec<u8>>().into();
        assert_eq!(Pixels { interleaved: false, bytes, ..came }.image().unwrap(), image);
        let files = Image::decode(&image.encode_png().unwrap(), Path::new("image")).unwrap();
        assert_eq!(files, image);
    }
}
