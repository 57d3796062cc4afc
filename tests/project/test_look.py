"""The one look: pages that escape what they are given, a palette that pages and figures share."""

import re

import pytest

from nearkernel import _look
from nearkernel._base.printable import printable
from nearkernel._commands import streams as _terminal
from nearkernel._look import drawing

EVIL = "<script>alert('&')</script>"


def paint(figure):
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], "o-", mfc="white")
    axes.plot([0, 1], [1, 0], color=drawing.GRAY)
    axes.set(xlabel="a < b")


@pytest.mark.parametrize(
    "make",
    [
        lambda text: _look.page(text, text, text, text, _look.section(text)),
        lambda text: _look.table([text], [[text, 1]]),
        lambda text: _look.definitions({text: [text, text]}),
        lambda text: _look.figure(text, text, _look.inline("<svg ></svg>", "name")),
        lambda text: _look.paragraphs(text),
        lambda text: _look.warning(text),
        lambda text: _look.heading(text),
        lambda text: _look.code(text),
        lambda text: _look.reproduce(text),
        lambda text: _look.footer({text: text}),
    ],
)
def test_text_is_escaped_and_html_is_not(make):
    made = make(EVIL)
    assert "<script" not in made and "alert(&#x27;&amp;&#x27;)" in made
    assert _look.paragraphs(_look.Html("<b>bold</b>")) == "<p><b>bold</b></p>"


INSTRUCTIONS = "\x1b[2Jname\x00\x9b\u202eback\u2066"


def test_a_name_is_not_an_instruction(capsys):
    instead = "\N{REPLACEMENT CHARACTER}"
    plain = f"{instead}[2Jname{instead * 3}back{instead}"
    assert _look.paragraphs(INSTRUCTIONS) == f"<p>{plain}</p>"
    _terminal.console().print(INSTRUCTIONS, markup=False)
    _terminal.note(INSTRUCTIONS)
    assert capsys.readouterr() == (f"{plain}\n", f"{plain}\n")
    assert printable("two\nlines\tשלום 数据") == "two\nlines\tשלום 数据"


def test_names_in_figures_are_neither_formulas_nor_instructions():
    def named(figure):
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], label=f"$^$ {INSTRUCTIONS} 数据")
        axes.set_xticks([0, 1], [f"$x_$ {INSTRUCTIONS}", "$"])
        axes.set(title="$\\frac{", ylabel=EVIL)
        axes.legend()

    _, text = drawing.png_and_svg((3, 2), named)
    assert "$^$" in text and "$x_$" in text and "<script" not in text
    assert not set(INSTRUCTIONS) & {"\x1b", "\x00", "\x9b", "\u202e", "\u2066"} & set(text)


def test_light_and_dark_define_the_same_colors_and_either_can_be_chosen():
    css = _look.style()
    light = set(re.findall(r"(--[\w-]+): #", css.split("@media")[0]))
    asked = re.search(r"prefers-color-scheme: dark\) \{(.*?)\n\}", css, re.DOTALL)[1]
    chosen = re.search(r'\n:root\[data-theme="dark"\] \{(.*?)\}', css, re.DOTALL)[1]
    assert ':root:not([data-theme="light"])' in asked
    pairs = lambda text: dict(re.findall(r"(--[\w-]+): (#\w+)", text))
    assert pairs(asked) == pairs(chosen) and set(pairs(chosen)) == light
    assert len({f"--series-{i}" for i in range(1, 7)} & light) == 6


def test_figures_and_pages_have_one_palette():
    light = dict(re.findall(r"(--[\w-]+): (#\w+)", _look.style().split("@media")[0]))
    assert tuple(light[f"--series-{i}"] for i in range(1, 7)) == drawing.SERIES
    assert (light["--ink"], light["--card"], light["--line"]) == (drawing.INK, drawing.PAPER, drawing.LINE)


def test_a_drawing_stands_alone_and_follows_the_page_it_is_set_into():
    png, svg = drawing.png_and_svg((3, 2), paint)
    assert (png, svg) == drawing.png_and_svg((3, 2), paint)
    assert png.startswith(b"\x89PNG") and drawing.BLUE in svg and "a &lt; b" in svg
    one, two = _look.inline(svg, "first, one"), _look.inline(svg, "second")
    assert not re.search(r"#[0-9a-f]{6}\b", one)  # no color that dark pages would not change
    assert "var(--series-1)" in one and "var(--series-6)" in one and "currentColor" in one
    ids = lambda text: set(re.findall(r'id="([^"]*)"', text))
    assert ids(one) and not ids(one) & ids(two)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', one)) <= ids(one)


def test_powers_of_ten_are_plain_text():
    def paint(figure):
        axes = figure.subplots()
        axes.loglog([0.02, 0.05], [1e-3, 1e4])

    drawn = drawing.svg((3, 2), paint)
    assert "10⁻²" in drawn and "10⁴" in drawn and "3×10⁻²" in drawn
    assert drawing.plain_power("") == ""


def test_a_formula_is_written_with_its_letters_signs_and_indices():
    assert _look.formula("K^(l+1) <= C_b + lam_max theta.x^-1") == (
        '<span class="formula"><var>K</var><sup><var>l</var>+1</sup> ≤ <var>C</var><sub><var>b</var></sub> + '
        "<var>λ</var><sub>max</sub> <var>θ</var>.<var>x</var><sup>−1</sup></span>"
    )
    assert "&lt;" in _look.formula("a < b") and "sqrt" not in _look.formula("sqrt(2 pi)")
