"""Keyword arguments are the tables' own: taken by the entries that read them, refused by name by the others, listed by help."""

from __future__ import annotations

import inspect
import pydoc

import pytest

import evenkeel as ek
from evenkeel import EvenkeelError, _core
from evenkeel._settings import TABLES, knobs


def value_for(knob):
    """A value that a knob accepts, as a person would write it."""
    accepts = knob["accepts"]
    if accepts.startswith("a distance"):
        return 3 / 255
    if accepts.startswith("a whole number"):
        return 3 if " 3 " in accepts else 2
    if accepts.startswith("one of "):
        return accepts.removeprefix("one of ").split(", ")[0]
    if accepts == "true or false":
        return True
    return "reference" if "name" in accepts else 0.25


@pytest.mark.parametrize("table", TABLES)
def test_entries_take_what_they_read_and_refuse_the_rest_by_name(table):
    for entry in TABLES[table]:
        own = {knob["name"] for knob in entry["settings"]}
        for name, knob in knobs(table).items():
            if name in own:
                assert ek.Spec(table, entry["name"], {name: value_for(knob)}).values
            else:
                with pytest.raises(EvenkeelError, match=f"does not read `{name}`"):
                    ek.Spec(table, entry["name"], {name: value_for(knob)})
        with pytest.raises(EvenkeelError, match="no setting `nonsense`"):
            ek.Spec(table, entry["name"], {"nonsense": 1})


def test_values_are_read_as_people_write_them():
    def epsilon(value):
        return ek.defence("equivariance", epsilon=value).values["epsilon_255"]

    assert epsilon(4 / 255) == epsilon("4/255") == 4.0
    assert ek.defence("equivariance", epsilon_255=4).values["epsilon_255"] == 4.0
    assert ek.defence("equivariance", steps=None) == ek.defence("equivariance", steps=None)
    for wrong in [-1, "x", float("nan"), [4], {}, 2.0, True, object()]:
        with pytest.raises(EvenkeelError):
            epsilon(wrong)
    with pytest.raises(EvenkeelError, match="did you mean 4/255"):
        epsilon(4)
    for wrong in [0, -3, 1.5, 10**30, "many", float("inf")]:
        with pytest.raises(EvenkeelError):
            ek.defence("equivariance", steps=wrong)


@pytest.mark.parametrize(
    ("function", "table", "prefix"),
    [
        (ek.attack, "attack", ""),
        (ek.detect, "detector", ""),
        (ek.calibrate, "detector", ""),
        (ek.defence, "defence", ""),
        (ek.answer, "answer", ""),
        (ek.Pipeline.__init__, "defence", "defence_"),
        (ek.Pipeline.__init__, "answer", "answer_"),
        (ek.Pipeline.__init__, "detector", "detector_"),
    ],
)
def test_help_lists_every_setting_and_entry(function, table, prefix):
    parameters = inspect.signature(function).parameters
    words = pydoc.plain(pydoc.render_doc(function))
    for knob in knobs(table).values():
        assert prefix + knob["name"] in parameters
        assert f"{prefix}{knob['name']}: {knob['help']}" in words
    for entry in TABLES[table]:
        assert f"{entry['name']}: {entry['about']}" in words


def test_a_pipeline_refuses_what_has_no_effect(classifier):
    for wrong, words in [
        ({"defence_steps": 3}, "without defence=NAME"),
        ({"threshold": 0.2}, "without detector=NAME"),
        ({"steps": 3}, "start with defence_"),
        ({"defence": "magic"}, "is not one of"),
        ({"defence": ek.answer("vote")}, "table answer"),
        ({"defence": 3}, "a name is needed"),
        ({"defence": "equivariance", "defence_draws": 3}, "`draws`"),
    ]:
        with pytest.raises(EvenkeelError, match=words):
            ek.Pipeline(classifier, **wrong)
    with pytest.raises(EvenkeelError):
        ek.Pipeline("net.onnx")


def test_views_of_ones_own_are_settings(classifier, crop):
    turned = ek.views.of([{"kind": "rotate", "degrees": [-10, 10]}, {"kind": "flip"}])
    assert len(turned) == 2 and ek.views.rules(turned)[1]["kind"] == "flip"
    own = ek.detect(classifier, crop, "variance", views=turned).score
    assert own != ek.detect(classifier, crop, "variance").score
    assert own == ek.detect(classifier, crop, ek.detector("variance", views=turned)).score
    with pytest.raises(EvenkeelError, match="does not read `views`"):
        ek.detect(classifier, crop, "rotation", views=turned)
    for wrong in ["no-such-set", [{"kind": "swirl"}], [{}], [], 3]:
        with pytest.raises(EvenkeelError):
            ek.views.as_views(wrong)


def test_the_tables_are_the_librarys():
    assert set(TABLES) == {"attack", "defence", "answer", "detector"}
    assert "apgd-ce" in ek.names("attack") and "equivariance" in ek.names("defence")
    assert _core.__version__ == ek.__version__
