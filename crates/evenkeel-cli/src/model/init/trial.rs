//! `model init --try PHOTO`: the network's answer under every preset of pixels, so that a person can see which is right.

use std::path::Path;

use anyhow::{Result, bail};
use evenkeel::image::Image;
use evenkeel::model::propose::{Answers, Proposal};
use evenkeel::model::{ModelFile, PIXEL_PRESETS};

use super::ask;

pub(super) fn run(model: &Path, proposal: &Proposal, answers: &Answers, photo: &Path) -> Result<()> {
    let image = Image::load(photo)?;
    let file = ModelFile::read(model)?;
    println!("{} under each preset of --pixels:", photo.display());
    for preset in &PIXEL_PRESETS {
        let tried = Answers {
            order: Some(preset.order),
            scale: Some(preset.scale),
            mean: Some(preset.mean),
            std: Some(preset.std),
            ..answers.clone()
        };
        let contract = match proposal.contract(&tried)? {
            Ok(contract) => contract,
            Err(left) => bail!("{}", ask::missing(model, &left)),
        };
        let said = file
            .model(&contract)
            .and_then(|model| Ok(model.predict(&model.fit(&image)?)?.ranking(&model.class_info(), 3)));
        match said {
            Ok(words) => println!("  {:18} {}", preset.name, words),
            Err(error) => println!("  {:18} refused: {error}", preset.name),
        }
    }
    println!(
        "choose the one whose answers are right for several photos: evenkeel model init {} --pixels NAME",
        model.display()
    );
    Ok(())
}
