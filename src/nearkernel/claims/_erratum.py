"""What a source prints and an experiment excludes."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Erratum:
    """A line of a source that an experiment excludes, also in its most charitable reading.

    It says in public that an author was wrong, so it needs all four: `place`, the source and its line; `printed`, what
    stands there, in our words; `reading`, the most charitable way to take it, be it as a slip of this line alone;
    `row`, the quantity of the row that excludes the line even so. If some reading of the line as it stands is right,
    there is no erratum.
    """

    place: str
    printed: str
    reading: str
    row: str

    def __str__(self) -> str:
        return (
            f"{self.place}: {self.printed}. Most charitable reading: {self.reading}. Excluded by: {self.row}."
        )
