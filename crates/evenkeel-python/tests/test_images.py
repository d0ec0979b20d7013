"""Images in every form: the type that came in goes out, and what is no image is refused in a sentence."""

from __future__ import annotations

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import EvenkeelError


def variants(image):
    """The same image in other forms that must work."""
    yield "bytes", image
    yield "float32", (image / 255).astype(np.float32)
    yield "float64", image / 255
    read_only = image.copy()
    read_only.setflags(write=False)
    yield "read-only", read_only
    yield "fortran", np.asfortranarray(image)
    yield "negative strides", image[:, ::-1].copy()[:, ::-1]
    yield "all strides negative", image[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1]
    wide = np.zeros((64, 128, 3), np.uint8)
    wide[:, ::2] = image
    yield "every second column", wide[:, ::2]
    yield "big-endian", (image / 255).astype(">f4")
    shifted = np.zeros(image.size * 8 + 1, np.uint8)[1:].view(np.float64).reshape(image.shape)
    shifted[...] = image / 255
    yield "unaligned", shifted
    yield "an array of channels first, turned", np.ascontiguousarray(image.transpose(2, 0, 1)).transpose(1, 2, 0)


def test_every_form_of_an_image_gives_the_same_answer(classifier, crop):
    plain = classifier.tensors(crop)
    for form, image in variants(crop):
        again = classifier.tensors(image)
        for name, array in plain.items():
            assert np.array_equal(array, again[name]), form


def test_the_type_that_came_in_goes_out(classifier, crop):
    for form, image in variants(crop):
        fitted = classifier.fit(image)
        assert fitted.dtype == image.dtype.newbyteorder("="), form
        assert fitted.shape == (64, 64, 3), form
        assert np.allclose(np.asarray(fitted, np.float64), np.asarray(image, np.float64), atol=1e-6), form
    half = classifier.fit((crop / 255).astype(np.float16))
    assert half.dtype == np.float16


def test_pictures_and_files(classifier, crop, tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="PIL is not installed")
    picture = Image.fromarray(crop)
    path = tmp_path / "crop.png"
    picture.save(path)
    plain = classifier.predict(crop)
    assert classifier.predict(picture) == classifier.predict(path) == classifier.predict(str(path)) == plain
    assert isinstance(classifier.fit(picture), Image.Image)
    assert np.array_equal(classifier.fit(path), crop)
    assert classifier.predict(picture.convert("RGBA")) == plain


def test_a_batch_gives_a_list_in_order(segmenter):
    images = [ek.scenes.render(seed).image for seed in range(4)]
    alone = [segmenter.predict(image) for image in images]
    assert segmenter.predict(images) == alone
    assert segmenter.predict(np.stack(images)) == alone
    assert segmenter.predict(tuple(images)) == alone
    assert segmenter.predict([]) == []


BAD = {
    "a number": 3,
    "nothing": None,
    "an empty array": np.zeros((0, 64, 3), np.uint8),
    "one dimension": np.zeros(12, np.uint8),
    "grey": np.zeros((64, 64), np.uint8),
    "channels first": np.zeros((3, 64, 64), np.uint8),
    "alpha": np.zeros((64, 64, 4), np.uint8),
    "five dimensions": np.zeros((1, 1, 64, 64, 3), np.uint8),
    "NaN": np.full((64, 64, 3), np.nan, np.float32),
    "infinity": np.full((64, 64, 3), np.inf),
    "0 to 255 in floats": np.full((64, 64, 3), 200.0, np.float32),
    "negative": np.full((64, 64, 3), -0.5),
    "whole numbers": np.zeros((64, 64, 3), np.int64),
    "switches": np.zeros((64, 64, 3), bool),
    "complex": np.zeros((64, 64, 3), np.complex64),
    "objects": np.full((64, 64, 3), None),
    "words": np.full((64, 64, 3), "a"),
    "too small": np.zeros((2, 2, 3), np.uint8),
    "no such file": "no/such/file.png",
    "a dict": {},
    "a set": {1},
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_image_is_refused_in_a_sentence(segmenter, what):
    with pytest.raises(EvenkeelError) as refused:
        segmenter.predict(BAD[what])
    assert len(str(refused.value)) > 10


def test_the_sentence_says_what_to_do(segmenter):
    for what, words in [
        ("channels first", "transpose(1, 2, 0)"),
        ("alpha", "[..., :3]"),
        ("0 to 255 in floats", "divide by 255"),
        ("NaN", "NaN"),
        ("no such file", "no/such/file.png"),
    ]:
        with pytest.raises(EvenkeelError) as refused:
            segmenter.predict(BAD[what])
        assert words in str(refused.value)


def test_corruptions_keep_the_type_and_the_order(scene):
    images = [scene.image, scene.image[:, ::-1]]
    both = ek.corrupt(images, "gaussian_noise", 2, seed=3)
    assert np.array_equal(both[1], ek.corrupt(images[1], "gaussian_noise", 2, seed=3))
    assert ek.corrupt(scene.image / 255, "fog", 1).dtype == np.float64
    for wrong in [("fog", 0), ("fog", 6), ("mist", 1)]:
        with pytest.raises(EvenkeelError):
            ek.corrupt(scene.image, *wrong)
