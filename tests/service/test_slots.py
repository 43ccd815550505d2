"""Slots are given in the order in which they were asked for."""

import threading
import time

from discreet.service._slots import WorkerSlots


def started(slots: WorkerSlots, order: list[int], number: int) -> threading.Thread:
    """A thread that waits for a slot; it is the last of those who wait."""

    def take() -> None:
        assert slots.take(60)
        order.append(number)

    thread, before = threading.Thread(target=take), len(slots._waiting)
    thread.start()
    while len(slots._waiting) == before:
        time.sleep(0.001)
    return thread


def test_who_waits_longest_gets_the_slot_that_is_free() -> None:
    """And nobody who comes at the moment when it gets free, however busy the machine is."""
    slots, order = WorkerSlots(1), list[int]()
    assert slots.take()
    threads = [started(slots, order, number) for number in range(4)]
    for number, thread in enumerate(threads):
        slots.give_back()
        assert not slots.take(0)
        thread.join(60)
        assert order == [*range(number + 1)]
    slots.give_back()
    assert slots.take(0)


def test_who_gave_up_takes_no_slot() -> None:
    slots = WorkerSlots(2)
    assert [slots.take(0) for _ in range(3)] == [True, True, False]
    assert not slots.take(0.001)
    assert not slots._waiting
    slots.give_back()
    slots.give_back()
    assert [slots.take(0) for _ in range(3)] == [True, True, False]
