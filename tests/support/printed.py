"""What pages and notebooks print, compared with what they say that they print."""

import re

_NUMBER = re.compile(r"-?\d+(?:\.(\d+))?(?:e([+-]\d+))?")


def same_text(found: str, expected: str) -> bool:
    """Word by word; numbers may differ by one unit of the last digit that is printed."""
    found_words, words = found.split(), expected.split()
    return len(found_words) == len(words) and all(map(same_word, found_words, words))


def same_word(found: str, expected: str) -> bool:
    numbers, expected_numbers = list(_NUMBER.finditer(found)), list(_NUMBER.finditer(expected))
    if _NUMBER.sub("#", found) != _NUMBER.sub("#", expected) or len(numbers) != len(expected_numbers):
        return False
    for one, other in zip(numbers, expected_numbers, strict=True):
        unit = 10.0 ** (int(other[2] or 0) - len(other[1] or "")) if other[1] or other[2] else 0.0
        if abs(float(one[0]) - float(other[0])) > 1.001 * unit:
            return False
    return True
