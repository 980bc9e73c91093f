"""Steps under way end, and none begins once the gate is closed."""

from __future__ import annotations

import threading

import pytest

from service.flows.step_gate import Moment, StepGate


def test_steps_pass_side_by_side_and_one_that_fails_is_over_too() -> None:
    gate = StepGate()
    with gate.one(), gate.one():
        pass
    with pytest.raises(ZeroDivisionError), gate.one():
        raise ZeroDivisionError

    assert gate.wait_until_empty(0)


def test_a_closed_gate_waits_for_what_is_inside_and_lets_nothing_in() -> None:
    gate = StepGate()
    inside, go_on, begun = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        with gate.one():
            inside.set()
            go_on.wait(60)

    def late() -> None:
        with gate.one():
            begun.set()

    first = threading.Thread(target=slow)
    first.start()
    assert inside.wait(60)
    gate.close()
    # It waits for ever, as in a service that ends.
    threading.Thread(target=late, daemon=True).start()

    assert not gate.wait_until_empty(0.2)
    go_on.set()
    assert gate.wait_until_empty(60)
    first.join(60)
    assert not begun.wait(0.2)


def test_whoever_listens_hears_how_far_each_step_has_come() -> None:
    gate = StepGate()
    heard: list[tuple[str, Moment]] = []
    gate.tell("nobody listens", Moment.BEGUN)
    gate.listen(lambda step, moment: heard.append((step, moment)))
    gate.tell("look", Moment.BEGUN)

    assert heard == [("look", Moment.BEGUN)]
