//! `POST /v2/models/{model}/judge`: one image file in, the verdict out, as JSON or (with `Accept: image/png`) as a picture.

use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::budget::Share;
use crate::choice::Choice;
use crate::error::{Error, Result};
use crate::hosted::Hosted;
use crate::protocol::Parameters;
use crate::question::{Outcome, Question, Source, Wants};
use crate::routes::Call;
use crate::{body, render, respond};

/// Fields of a form beside the image.
const MOST_FIELDS: usize = 32;

pub(crate) async fn answer(call: Call) -> Result<Response<Body>> {
    let hosted = call.model()?;
    let Call { service, request, .. } = call;
    let (head, sent) = request.into_parts();
    let mut share = Share::new(&service.budget);
    let sent = body::read(&head.headers, sent, &service.limits, &mut share).await?;
    let (image, mut parameters) = form(&head.headers, sent).await?;
    let pictures = matches!(parameters.remove("pictures"), Some(Value::String(text)) if text == "true");
    let choice = Choice::read(&parameters, &hosted.allowed)?;
    let accept = head.headers.get(header::ACCEPT).and_then(|v| v.to_str().ok());
    let overlay = accept.is_some_and(|accept| accept.contains("image/png"));
    let wants = Wants { score: true, verdict: true, overlay, pictures };
    let images = vec![Source::Encoded(image)];
    let pixels = service.limits.pixels();
    let question = Question { hosted: hosted.clone(), images, choice: choice.clone(), wants, pixels, share };
    let outcomes = service.ask(question, None).await?;
    let Some(outcome) = outcomes.into_iter().next() else { return Err(Error::Panicked) };
    match outcome.overlay {
        Some(png) => Ok(respond::bytes(StatusCode::OK, "image/png", png)),
        None => Ok(respond::json(StatusCode::OK, &verdict(&hosted, &choice, &outcome))),
    }
}

/// The verdict as JSON: what `evenkeel predict --json` prints, and what a page needs beside it.
fn verdict(hosted: &Hosted, choice: &Choice, outcome: &Outcome) -> Value {
    let Some(verdict) = &outcome.verdict else { return Value::Null };
    let mut all = match verdict.json(&hosted.model) {
        Value::Object(all) => all,
        _ => Map::new(),
    };
    all.insert("model".into(), json!(hosted.name));
    all.insert("blake3".into(), json!(outcome.hash));
    all.insert("threshold".into(), json!(hosted.threshold()));
    all.insert("words".into(), json!(render::words(&hosted.model, &verdict.prediction)));
    all.insert("sentence".into(), json!(render::sentence(verdict, hosted.threshold())));
    all.insert("defence".into(), json!(choice.defence));
    all.insert("answer".into(), json!(choice.answer));
    all.insert("seed".into(), json!(choice.seed));
    if let Some(pictures) = &outcome.pictures {
        all.insert("pictures".into(), json!(pictures));
    }
    Value::Object(all)
}

/// The image and the parameters of a form; a body that is an image itself has no parameters.
async fn form(headers: &HeaderMap, sent: Bytes) -> Result<(Bytes, Parameters)> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    if content_type.starts_with("image/") || content_type.starts_with("application/octet-stream") {
        return Ok((sent, Parameters::new()));
    }
    let Ok(boundary) = multer::parse_boundary(content_type) else {
        return Err(Error::Unsupported {
            what: "Content-Type",
            value: content_type.chars().take(80).collect(),
            accepted: "multipart/form-data with a file `image`, or an image as the body, are",
        });
    };
    let broken = |e: multer::Error| Error::malformed("form", e.to_string());
    let stream = http_body_util::BodyDataStream::new(http_body_util::Full::new(sent));
    let mut fields = multer::Multipart::new(stream, boundary);
    let (mut image, mut parameters) = (None, Parameters::new());
    while let Some(field) = fields.next_field().await.map_err(broken)? {
        let name = field.name().unwrap_or_default().to_owned();
        let value = field.bytes().await.map_err(broken)?;
        if (name == "image" && image.is_some()) || parameters.contains_key(&name) {
            return Err(Error::malformed(format!("field {name}"), "comes twice"));
        }
        if name == "image" {
            image = Some(value);
            continue;
        }
        let text = String::from_utf8(value.to_vec());
        let text = text.map_err(|_| Error::malformed(format!("field {name}"), "is not text"))?;
        parameters.insert(name, Value::String(text));
        if parameters.len() > MOST_FIELDS {
            return Err(Error::TooLarge { what: "form", limit: MOST_FIELDS, unit: "fields" });
        }
    }
    let image = image
        .ok_or_else(|| Error::malformed("form", "has no file named `image`: curl … -F image=@photo.jpg"))?;
    Ok((image, parameters))
}
