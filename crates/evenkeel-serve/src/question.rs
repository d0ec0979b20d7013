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
use evenkeel::network::Tensor;
use evenkeel::pipeline::{Pipeline, Verdict};

use crate::choice::Choice;
use crate::error::{Error, Result};
use crate::hosted::Hosted;
use crate::pictures::{Pictures, pictures};
use crate::queue::Lane;
use crate::watched::{Stop, Watched};

/// Where an image comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A PNG or JPEG file.
    Encoded(Bytes),
    /// Pixels of 8 bits, of any size.
    Pixels(Image),
    /// Numbers at the network's own size.
    Tensor(Image),
}

/// What is wanted beyond scores.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wants {
    /// The detection score.
    pub score: bool,
    /// The prediction and everything else that makes a verdict.
    pub verdict: bool,
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
    /// The most pixels of an image.
    pub pixels: usize,
}

/// What a model made of one image.
pub(crate) struct Outcome {
    /// The scores, one part for each output of the model.
    pub scores: Tensor,
    /// The verdict, if anything beyond scores was wanted.
    pub verdict: Option<Verdict>,
    /// A fingerprint of the image as it came.
    pub hash: String,
    /// The image as it came, for those who keep what raised an alarm.
    pub image: Image,
    /// Pictures, if they were wanted.
    pub pictures: Option<Pictures>,
}

impl Question {
    /// Whether each image takes one pass.
    pub fn lane(&self) -> Lane {
        let plain = self.choice.is_plain() && !self.wants.score && !self.wants.pictures;
        if plain { Lane::Plain } else { Lane::Defended }
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

    /// Answers it; `stop` is asked before every pass of the network.
    ///
    /// # Errors
    /// If an image cannot be used, or the network fails.
    pub(crate) fn answer(&self, stop: Stop) -> Result<Vec<Outcome>> {
        let mut model = (*self.hosted.model).clone();
        model.network = Arc::new(Watched::new(model.network, self.hosted.passes.clone(), stop));
        let model = Arc::new(model);
        let images =
            self.images.iter().map(|source| self.image(&model, source)).collect::<Result<Vec<_>>>()?;
        if self.lane() == Lane::Plain && !self.wants.verdict {
            let scores = model.scores_of(&images.iter().map(|(image, _)| image).collect::<Vec<_>>())?;
            let outcome =
                |((image, hash), scores)| Outcome { scores, verdict: None, hash, image, pictures: None };
            return images.into_iter().zip(scores).map(|pair| Ok(outcome(pair))).collect();
        }
        let pipeline = self.pipeline(&model)?;
        images.into_iter().map(|(image, hash)| self.judge(&pipeline, image, hash)).collect()
    }

    fn judge(&self, pipeline: &Pipeline, image: Image, hash: String) -> Result<Outcome> {
        let mut verdict = pipeline.run(&image)?;
        if self.choice.always {
            // the pipeline was told of no threshold, so that it defends in any case
            verdict.alarm = verdict.score.zip(self.hosted.threshold()).map(|(score, most)| score > most);
        }
        let pictures = self.wants.pictures.then(|| pictures(pipeline, &image, &verdict)).transpose()?;
        Ok(Outcome { scores: verdict.scores.clone(), verdict: Some(verdict), hash, image, pictures })
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
    fn image(&self, model: &Model, source: &Source) -> Result<(Image, String)> {
        match source {
            Source::Encoded(bytes) => {
                check_pixels(announced(bytes), self.pixels)?;
                let image = Image::decode(bytes, Path::new("image"))?;
                Ok((model.fit(&image)?, blake3::hash(bytes).to_hex().to_string()))
            }
            Source::Pixels(image) => Ok((model.fit(image)?, hash_of(image))),
            Source::Tensor(image) => {
                check_size(model, image.size())?;
                Ok((image.clone(), hash_of(image)))
            }
        }
    }
}

fn hash_of(image: &Image) -> String {
    let mut hasher = blake3::Hasher::new();
    image.pixels().iter().for_each(|v| {
        hasher.update(&v.to_le_bytes());
    });
    hasher.finalize().to_hex().to_string()
}

fn check_pixels(announced: Option<(usize, usize)>, limit: usize) -> Result<()> {
    match announced {
        Some((height, width)) if height.saturating_mul(width) > limit => {
            Err(Error::TooLarge { what: "image", limit, unit: "pixels" })
        }
        _ => Ok(()),
    }
}

/// (height, width) as the header of a PNG or JPEG announces them; what is neither is refused later, by the decoder.
fn announced(bytes: &[u8]) -> Option<(usize, usize)> {
    let four = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
    let two = |at: usize| Some(usize::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    if bytes.starts_with(b"\x89PNG") {
        return Some((four(20)?, four(16)?));
    }
    if !bytes.starts_with(&[0xff, 0xd8]) {
        return None;
    }
    let mut at = 2;
    loop {
        while *bytes.get(at)? == 0xff && *bytes.get(at + 1)? == 0xff {
            at += 1;
        }
        match (*bytes.get(at)?, *bytes.get(at + 1)?) {
            (0xff, 0xc4 | 0xc8 | 0xcc) => at += 2 + two(at + 2)?,
            (0xff, 0xc0..=0xcf) => return Some((two(at + 5)?, two(at + 7)?)),
            (0xff, 0x01 | 0xd0..=0xd7) => at += 2,
            (0xff, 0xda | 0xd9) => return None,
            (0xff, _) => at += 2 + two(at + 2)?,
            _ => return None,
        }
    }
}

/// Refuses sizes that the network does not take; a tensor is not resized.
fn check_size(model: &Model, (height, width): (usize, usize)) -> Result<()> {
    let wrong = |wanted: String| {
        let reason = format!(
            "is {width} wide and {height} high; the network takes {wanted}; encoded images (BYTES) are resized"
        );
        Err(Error::malformed("image", reason))
    };
    match model.size {
        Some((h, w)) if (h, w) != (height, width) => wrong(format!("{w}x{h}")),
        None if height % model.multiple != 0 || width % model.multiple != 0 || height.min(width) < 8 => {
            wrong(format!("multiples of {}, at least 8", model.multiple))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_judged_before_anything_is_decoded() {
        let png = Image::filled(20, 30, 0.5).encode_png().unwrap();
        assert_eq!(announced(&png), Some((20, 30)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        Image::filled(24, 40, 0.5).save_jpeg(&path, 90).unwrap();
        let jpeg = std::fs::read(path).unwrap();
        assert_eq!(announced(&jpeg), Some((24, 40)));
        assert_eq!(announced(b"<svg/>"), None);
        (0..jpeg.len().min(700)).for_each(|n| {
            let _ = announced(&jpeg[..n]);
        });
        assert!(check_pixels(Some((60_000, 60_000)), 16_000_000).is_err());
    }
}
