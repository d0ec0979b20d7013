"""What runs on clusters, without one: the schedule of work items on nodes that die and fail, and a judge of batches."""

from __future__ import annotations

import io
import random
from types import SimpleNamespace

import numpy as np
import pytest

import evenkeel as ek
from evenkeel import EvenkeelError, _core
from evenkeel import _ray_schedule as scheduling
from evenkeel._ray_schedule import Schedule
from evenkeel.ray import Judge


class RayError(Exception):
    pass


class RayTaskError(RayError):
    cause = None


class TaskUnschedulableError(RayError):
    pass


class Cluster:
    """As much of ray as a schedule asks for: tasks end in random order, and `fate(node, item)` says how."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError, TaskUnschedulableError=TaskUnschedulableError)

    def __init__(self, nodes, fate):
        self.alive, self.fate, self.chance = dict.fromkeys(nodes, True), fate, random.Random(1)
        self.began = []

    def nodes(self):
        return [{"NodeID": node, "Alive": alive, "Resources": {"CPU": 4.0}} for node, alive in self.alive.items()]

    def start(self, item, node):
        node = node or self.chance.choice([name for name, alive in self.alive.items() if alive])
        self.began.append((node, item))
        return (len(self.began), node, item)

    def wait(self, tasks, num_returns, timeout):
        return [self.chance.choice(tasks)], []

    def get(self, task):
        said = self.fate(task[1], task[2])
        if isinstance(said, Exception):
            raise said
        return (task[1], 0 if said else 1, 0.5, said)


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A clock that every look moves on by a second."""
    now = [0.0]

    def monotonic():
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(scheduling.time, "monotonic", monotonic)


def run(cluster, items, retries=5):
    schedule = Schedule(cluster, [(f"item {n}", 1.0 + n % 3) for n in range(items)], cluster.start, 2, retries)
    most = 0
    while schedule.queue or schedule.flying:
        schedule.fill()
        most = max(most, len(schedule.flying))
        schedule.wait(1.0)
    assert schedule.ended == items == schedule.made
    return schedule, most


def test_items_end_once_and_no_more_are_in_flight_than_run_twice_over():
    cluster = Cluster("ab", lambda node, item: None)
    schedule, most = run(cluster, 50)
    assert most == 8 and schedule.tries == [1] * 50 and "50 of 50 work items, 100 %" in schedule.words(0.0)


def test_what_died_is_begun_again_and_not_for_ever():
    chance = random.Random(2)
    schedule, _ = run(Cluster("ab", lambda node, item: RayError("died") if chance.random() < 0.3 else None), 60, retries=20)
    assert sum(schedule.tries) > 70 and max(schedule.tries) <= 21
    with pytest.raises(EvenkeelError, match="failed 4 times; what is done is kept. The last time: died"):
        run(Cluster("ab", lambda node, item: RayError("died") if item == "item 3" else None), 9, retries=3)


def test_a_node_that_fails_is_passed_by_and_asked_again_later():
    full = Cluster("abc", lambda node, item: "no space left" if node == "b" else None)
    schedule, _ = run(full, 300)
    on_b = sum(node == "b" for node, _ in full.began)
    assert 1 <= on_b < 40, on_b
    assert max(schedule.tries) <= 3
    healed = {"b": 3}

    def fate(node, item):
        if node == "b" and healed["b"]:
            healed["b"] -= 1
            return "not mounted yet"
        return None

    later = Cluster("ab", fate)
    run(later, 400)
    assert sum(node == "b" for node, _ in later.began[200:]) > 20, "it gets work again"


def test_an_item_that_fails_everywhere_ends_the_run():
    wrong = Cluster("ab", lambda node, item: "4.png is no picture" if item == "item 4" else None)
    with pytest.raises(EvenkeelError, match="4.png is no picture"):
        run(wrong, 30)
    assert {node for node, item in wrong.began if item == "item 4"} == {"a", "b"}
    with pytest.raises(EvenkeelError, match="what is around it"):
        run(Cluster("a", lambda node, item: RayTaskError("what is around it")), 2)


def test_a_node_that_is_gone_gets_nothing():
    cluster = Cluster("ab", lambda node, item: None)

    def fate(node, item):
        if item == "item 5":
            cluster.alive["a"] = False
        return None if cluster.alive[node] else RayError("its node died")

    cluster.fate = fate
    schedule, _ = run(cluster, 80)
    assert all(node == "b" for node, _ in cluster.began[-20:])
    assert max(schedule.tries) <= 6


def test_a_node_that_is_gone_and_still_listed_costs_no_tries():
    def fate(node, item):
        if node == "a":
            return TaskUnschedulableError("the node doesn't exist any more")
        return "no space left" if node == "b" else None

    cluster = Cluster("abc", fate)
    # so that items are sent to nodes by name
    cluster.start = lambda item, node, start=cluster.start: start(item, node or "b")
    schedule, _ = run(cluster, 60, retries=3)
    assert max(schedule.tries) <= 3, "what was never begun is no try"
    assert schedule.nodes.gone == {"a"} and sum(node == "a" for node, _ in cluster.began) <= 8


def test_a_judge_adds_columns_of_plain_types():
    scene = ek.scenes.render(3).image
    settings = {"detector": "variance", "threshold": 0.0, "seed": 5}
    judge = Judge("embedded:segmenter", maps=True, keep=True, **settings)
    out = judge({"image": np.stack([scene]), "id": np.array([1])})
    verdict = ek.Pipeline(ek.shipped("segmenter"), **settings)(scene)
    assert out["answer"][0] == verdict.prediction.json() and out["score"][0] == verdict.score and out["alarm"][0] == verdict.alarm
    labels = _core.Image.decode(out["map"][0]).to_uint8(True)[..., 0]
    assert (labels == verdict.prediction.labels).all() and (out["image"][0] == scene).all()
    assert (out["label"][0], out["name"][0], out["error"][0]) == (-1, "", "")
    kinds = {name: values.dtype.kind for name, values in out.items()}
    assert kinds["label"] == "i" and kinds["alarm"] == "b" and kinds["score"] == "f" and kinds["answer"] == "O"


def test_a_judge_takes_pictures_as_people_keep_them(tmp_path):
    crop = ek.scenes.render(7, size=(64, 64)).image
    png = _core.Image.from_array(crop, True).png()
    (tmp_path / "crop.png").write_bytes(png)
    cells = np.empty(5, dtype=object)
    cells[:] = [png, str(tmp_path / "crop.png"), {"bytes": png, "path": None}, {"bytes": None, "path": str(tmp_path / "crop.png")}, b"no picture"]
    out = Judge("embedded:classifier", skip_bad=True)({"image": cells})
    assert len(set(out["answer"][:4])) == 1 and list(out["label"][:4]) == [out["label"][0]] * 4
    assert out["label"][4] == -1 and out["error"][4] and not any(out["error"][:4]) and np.isnan(out["score"]).all()
    assert not Judge("embedded:classifier", skip_bad=True)({"image": cells[4:]})["alarm"].any()


def test_a_judge_says_what_it_cannot_take():
    judge = Judge("embedded:classifier")
    crop = ek.scenes.render(7, size=(64, 64)).image
    for batch, words in [
        ({"photo": np.stack([crop])}, r"no column `image`, but photo"),
        ({"image": np.array([b"no picture"], dtype=object)}, "row 0 of a batch.*skip_bad"),
        ({"image": np.array(["nowhere.png"], dtype=object)}, "nowhere.png"),
        ([crop], "leave batch_format out"),
    ]:
        with pytest.raises(EvenkeelError, match=words):
            judge(batch)
    with pytest.raises(EvenkeelError):
        Judge("nowhere.onnx")


def test_maps_of_values_are_numpy_files():
    from evenkeel._ray_judge import _map, _png

    values = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    assert (np.load(io.BytesIO(_map(SimpleNamespace(labels=None, values=values)))) == values).all()
    assert _map(SimpleNamespace(labels=None, values=None)) == b""
    assert b"IHDR" in _png(np.full((2, 2), 300, dtype=np.uint16))
