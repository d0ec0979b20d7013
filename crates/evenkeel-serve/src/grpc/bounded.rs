//! How messages of calls are decoded: as prost does it, but only those of few fields. An empty tensor takes two bytes of a message and three hundred of memory, so
//! that the bound on a message's bytes alone would let a small one fill the memory.

use std::marker::PhantomData;

use bytes::Buf;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost::{DecodeError, Message};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// The most fields of a message, those of its inputs and of their lists among them; a list of numbers is one.
const MOST_FIELDS: usize = 10_000;
/// Where a message holds others that hold lists: its inputs, and their contents.
const NESTED: &[u32] = &[5, 5];

/// prost's codec, with the bound.
pub(crate) struct Bounded<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Bounded<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T: Message + Send + 'static, U: Message + Default + Send + 'static> Codec for Bounded<T, U> {
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(ProstCodec::<T, U>::default().decoder())
    }
}

/// prost's decoder, with the bound.
pub(crate) struct BoundedDecoder<U>(ProstDecoder<U>);

impl<U: Message + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // the whole message lies in one piece
        let whole = &from.chunk()[..from.remaining().min(from.chunk().len())];
        match fields(whole, NESTED, 0) {
            Ok(count) if count > MOST_FIELDS => Err(Status::invalid_argument(format!(
                "message: more than the {MOST_FIELDS} fields accepted here"
            ))),
            Ok(_) => self.0.decode(from),
            Err(error) => Err(Status::invalid_argument(format!("message: {error}"))),
        }
    }
}

/// `count` and the fields of a message; it ends early once there are too many.
fn fields(mut message: &[u8], nested: &[u32], mut count: usize) -> Result<usize, DecodeError> {
    while message.has_remaining() && count <= MOST_FIELDS {
        count += 1;
        let (tag, kind) = decode_key(&mut message)?;
        match (kind, nested) {
            (WireType::LengthDelimited, [inner, deeper @ ..]) if tag == *inner => {
                let length = usize::try_from(decode_varint(&mut message)?).unwrap_or(usize::MAX);
                let Some((inside, rest)) = message.split_at_checked(length) else {
                    // prost says what is wrong with it
                    return Ok(count);
                };
                count = fields(inside, deeper, count)?;
                message = rest;
            }
            _ => skip_field(kind, tag, &mut message, DecodeContext::default())?,
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::inference::model_infer_request::InferInputTensor;
    use crate::grpc::inference::{InferTensorContents, ModelInferRequest};

    fn count(request: &ModelInferRequest) -> usize {
        fields(&request.encode_to_vec(), NESTED, 0).unwrap()
    }

    #[test]
    fn many_fields_are_seen_wherever_they_are() {
        let input = |strings: usize| {
            let bytes_contents = vec![bytes::Bytes::new(); strings];
            let contents = InferTensorContents { bytes_contents, ..InferTensorContents::default() };
            InferInputTensor { shape: vec![1; 9], contents: Some(contents), ..InferInputTensor::default() }
        };
        let request = |inputs: Vec<InferInputTensor>| ModelInferRequest {
            model_name: "net".into(),
            inputs,
            ..ModelInferRequest::default()
        };
        assert_eq!(
            count(&request(vec![input(3)])),
            1 + (1 + (1 + (1 + 3))),
            "name, input, shape, contents, strings"
        );
        assert!(count(&request(vec![InferInputTensor::default(); 2 * MOST_FIELDS])) > MOST_FIELDS);
        assert!(count(&request(vec![input(2 * MOST_FIELDS)])) > MOST_FIELDS);
        let contents =
            InferTensorContents { fp32_contents: vec![0.5; 100_000], ..InferTensorContents::default() };
        let numbers = InferInputTensor { contents: Some(contents), ..InferInputTensor::default() };
        assert_eq!(count(&request(vec![numbers])), 4, "a list of numbers is one field");
        assert!(fields(&[0x2a, 0xff], NESTED, 0).is_err());
    }
}
