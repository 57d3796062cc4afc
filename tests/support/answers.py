"""What is shown by an answer of the lab, by name."""


def curves(picture):
    return {part.name: part for part in picture.parts}


def part(answer, picture, name):
    return curves(answer.pictures[picture])[name]


def numbers(answer):
    return {number.name: number.value for number in answer.numbers}


def number(answer, name):
    return numbers(answer)[name]
