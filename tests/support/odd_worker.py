"""A process that computes for a lab, with experiments that misbehave: the width of the catapult says how.

`steps` says how much: hundredths of a second, or MiB.
"""

import os
import time

from nearkernel.lab import Answer, Curve, Picture, find
from nearkernel.lab.server import worker as _worker

SPIN, ENDLESS, ASLEEP, ABORT, GROW, PRINT, RAISE, DIVIDE = range(51, 59)  # theory
TOLD, STUBBORN, WRONG, TALKATIVE = range(61, 65)  # check
_held = []


def spin(seconds):
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


def plain(self):
    return Answer((Picture("Loss", (Curve("theory", [0.0, 1.0], [1.0, self.ratio]),)),))


def theory(self):
    if self.width == SPIN:
        spin(self.steps / 100)
    if self.width == ENDLESS:
        spin(1e9)
    if self.width == ASLEEP:
        time.sleep(1e9)
    if self.width == ABORT:
        os.abort()
    if self.width == GROW:
        _held.append(os.urandom(self.steps << 20))
    if self.width == PRINT:
        print("not a message", flush=True)
    if self.width == RAISE:
        raise RuntimeError("the network\nis tired")
    if self.width == DIVIDE:
        return 1 / 0
    return plain(self)


def check(self, watch):
    while self.width == TOLD:
        watch(0.5, "working")
        time.sleep(0.01)
    if self.width == STUBBORN:
        watch(0.5, "working")
        time.sleep(60)
    if self.width == WRONG:
        raise ValueError("the network\nis tired")
    while self.width == TALKATIVE:
        watch(0.5, "x" * 100_000, plain(self))
    return plain(self)


if __name__ == "__main__":
    catapult, regression = find("catapult"), find("regression")
    catapult.theory, catapult.check = theory, check
    regression.theory = lambda self: Answer(
        (self._picture(),)
    )  # where points land, and nothing that takes time
    _worker.NAMES = ("catapult", "regression")  # the others take time to import
    _worker.main()
