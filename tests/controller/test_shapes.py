"""Pods of one shape are recognized by their encoding while pods of that shape exist, and no longer."""

from weakref import ref

import pytest

from kube.wire_format import enveloped, labels, message, read
from taintwarden.controller.clock import system_clock
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.engine.model import Pod
from taintwarden.kube.watch.frames import FrameDecoder as Frames
from taintwarden.kube.wire.kinds import ShapedPod
from taintwarden.kube.wire.resources import PODS

MOMENT = {1: 1_700_000_000}


class Reading:
    """Pods as they come from the API server, through both decoders."""

    def __init__(self) -> None:
        self.frames = Frames(PODS)
        self.decoder = Decoder(system_clock)

    def shaped(self, name: str, app: str = "web") -> ShapedPod:
        meta = {1: name, 3: "shop", 5: f"uid-{name}", 6: "7", 8: MOMENT, 11: labels(app=app)}
        body = {1: meta, 2: {4: 30, 10: "n1"}, 3: {1: "Running"}}
        good, _ = read(self.frames.page(enveloped(message({1: {2: "9"}, 2: [body]}))))
        found = good[0]
        assert isinstance(found, ShapedPod)
        return found

    def pod(self, name: str, app: str = "web") -> Pod:
        return self.decoder.pod(self.shaped(name, app))


@pytest.fixture
def reading() -> Reading:
    return Reading()


def test_a_shape_is_known_while_a_pod_of_it_exists(reading: Reading) -> None:
    pod = reading.pod("a")
    shape = ref(reading.shaped("b").shape)
    assert reading.shaped("c").shape is shape()
    assert reading.pod("d").shared is pod.shared


def test_a_shape_is_forgotten_with_its_last_pod(reading: Reading) -> None:
    pods = [reading.pod("a"), reading.pod("b")]
    shape = ref(reading.shaped("c").shape)
    pods.pop()
    assert shape() is not None
    pods.pop()
    assert shape() is None


def test_a_shape_that_was_forgotten_is_decoded_again(reading: Reading) -> None:
    shaped = reading.shaped("a")
    first = reading.decoder.pod(shaped)
    shared = ref(first.shared)
    del first
    assert shared() is None
    again = reading.decoder.pod(shaped)
    assert again.shared.labels == {"app": "web"}
