"""What an experiment is: settings, an answer of theory at once, and a check by real training that may take a while."""

import abc
import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import ClassVar

from .._base.settings import Settings
from .picture import Answer


class Stopped(Exception):
    """The user has left, or pressed Stop."""


class Watch:
    """Told by a long run how far it is; raises `Stopped` in it when nobody waits any more."""

    def __init__(self, show: Callable[[float, str, Answer | None], object] = lambda *_: None):
        self._show, self._left = show, threading.Event()

    def __call__(self, share: float, words: str, answer: Answer | None = None) -> None:
        """`share` of the work is done; `answer` is what can be shown already."""
        if self._left.is_set():
            raise Stopped
        self._show(share, words, answer)

    def stop(self) -> None:
        self._left.set()


@dataclasses.dataclass(frozen=True)
class Preset:
    """A view worth looking at: a `title` for its button, `settings` that differ from the defaults, and what to see."""

    title: str
    settings: Mapping[str, object]
    see: str


@dataclasses.dataclass(frozen=True)
class Experiment(Settings, abc.ABC):
    """A page of the lab; its fields are its controls. The docstring of a subclass says what is to be seen.

    `theory` is called while a slider moves: once it is compiled, it and the drawing have 300 ms. `check`, where there
    is one, trains or samples for real and tells `watch` of its progress.
    """

    title: ClassVar[str]
    menu: ClassVar[str] = ""  # a shorter title for the menu
    formulas: ClassVar[tuple[str, ...]] = ()  # LaTeX, one a line
    button: ClassVar[str] = ""  # words on the button that starts `check`; none without
    presets: ClassVar[tuple[Preset, ...]] = ()  # views to try
    movie: ClassVar[str] = ""  # the setting that Play moves, and that an exported page can move; none without
    about: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.about = " ".join((cls.__doc__ or "").split())

    @abc.abstractmethod
    def theory(self) -> Answer:
        """The prediction of the theory."""

    def check(self, watch: Watch) -> Answer:
        """The prediction with the results of training beside it."""
        raise NotImplementedError(f"{self.name()} has no check to run.")

    @abc.abstractmethod
    def python(self, checked: bool = False) -> str:
        """A program that draws the pictures of `theory`, or of `check`, with Matplotlib.

        It uses public names alone. Each curve with a name is a line, or the points, with that label.
        """
