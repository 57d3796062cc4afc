"""Formulas within the sentences of claims as LaTeX: `C_W = 2` becomes `$C_W = 2$`.

Claims are written for the terminal. A formula is a run of terms (letters, Greek names, functions, brackets, numbers)
with signs between them. What is not recognized stays text.
"""

import re

_GREEK = "alpha beta gamma delta theta kappa lambda mu nu xi pi sigma tau phi chi psi Theta Sigma".split()
_SYMBOLS = {name: rf"\{name}" for name in _GREEK} | {"eps": r"\epsilon", "lam": r"\lambda", "lr": r"\eta"}
_SYMBOLS |= {"ntk": r"\Theta", "fan_in": r"\text{fan-in}"}
_FUNCTIONS = {name: rf"\{name}" for name in ("exp", "log", "ln", "sinh", "cos", "min", "max")}
_FUNCTIONS |= {"log2": r"\log_2", "arcsinh": r"\operatorname{arcsinh}"}
_PREFIXES = {"sum": r"\sum", "prod": r"\prod", "grad": r"\nabla", "tr": r"\operatorname{tr}"}
_SIGNS = {"<=": r"\le", ">=": r"\ge", "~": r"\sim", "·": r"\cdot", ".": r"\cdot"}
_INDICES = {"perp": r"\perp", "par": r"\parallel", "max": r"\max", "min": r"\min", "T": r"\top"}
_BRACKETS = {"(": ("(", ")", ")"), "[": ("[", "]", "]"), "|": (r"\lvert ", r"\rvert", "|")}
_ARTICLES = ("a", "A", "I")  # letters that are words

_NUMBER = re.compile(r"(\d+(?:\.\d+)?)(?:e(-?)0*(\d+))?")
_NAME = re.compile(r"fan_in\b|[A-Za-z]+\d*(?![A-Za-z]|-[A-Za-z])")
_POSSESSIVE = re.compile(r"[A-Za-z]{2,}'")
_OPERATOR = re.compile(r"( ?/ ?| (?:<=|>=|[-+=~<>·.]) |·|\.(?=[A-Za-z])| |(?=[A-Za-z(]))")
_INDEX = re.compile(r"_([A-Za-z0-9]+)|\^(?:\(([^()]*)\)|(-?\d+|-?[A-Za-z]+))|('+)|([*#])(?!\w)")
_START = re.compile(r"(?!e\.g\.|i\.e\.)(?<![\w/^.'-])(?=[\w(\[|~-])")
_PLAIN = re.compile(r"[\w'-]+|.", re.DOTALL)


class _Formula:
    """Reads the formula that begins at a place of a text, as far as it goes."""

    def __init__(self, text: str, at: int = 0):
        self.text, self.at = text, at
        self.symbols = 0  # a formula without any, such as 4/5, stays text

    def read(self, inside: bool = False, words: bool = False) -> str | None:
        """Terms and signs between them. `inside` brackets every letter is one; an argument may be a word (`words`)."""
        start, found = self.at, ""
        if first := self._next(re.compile(r"-(?=\S)|~ ")):
            found = {"-": "-", "~ ": r"\sim "}[first[0]]
        term = self._term(inside, words)
        if term is None:
            self.at = start
            return None
        found += term
        while True:
            before = self.at, self.symbols
            operator = self._next(_OPERATOR)
            if operator is None:
                return found
            sign = operator[0].strip()
            minus = "-" if sign in ("=", "/") and self._next(re.compile(r"-(?=\S)")) else ""
            number = _NUMBER.match(self.text, self.at)
            term = None if number and not sign else self._term(inside, words=operator[0] == "/")
            if term is None:
                self.at, self.symbols = before
                return found
            letter = sign == "/" and number and self.text[self.at : self.at + 1].isalpha()
            if letter and (rest := self._term(inside, words=False)):  # L/2n
                term = f"({term} {rest})"
            joined = "/" if sign == "/" else f" {_SIGNS.get(sign, sign)} " if sign else r"\, "
            if not operator[0]:
                joined = " "
            found += joined + minus + term

    def _next(self, pattern: re.Pattern) -> re.Match | None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def _term(self, inside: bool, words: bool) -> str | None:
        if number := self._next(_NUMBER):
            mantissa, minus, power = number.groups()
            return self._indexed(_scientific(mantissa, minus, power) if power else mantissa)
        if self.text[self.at : self.at + 1] in _BRACKETS:
            found = self._bracket()
            return found and self._indexed(found)
        return self._named(inside, words)

    def _bracket(self, arguments: bool = False) -> str | None:
        start, before = self.at, self.symbols
        left, right, end = _BRACKETS[self.text[self.at]]
        self.at += 1
        parts = [self.read(inside=True, words=arguments)]
        while arguments and self._next(re.compile(", ")):
            parts.append(self.read(inside=True, words=True))
        if None in parts or self.text[self.at : self.at + 1] != end:
            self.at, self.symbols = start, before
            return None
        self.at += 1
        return left + ", ".join(map(str, parts)) + right

    def _named(self, inside: bool, words: bool) -> str | None:
        start, before = self.at, self.symbols
        match = None if _POSSESSIVE.match(self.text, self.at) else self._next(_NAME)
        if match is None:
            return None
        name, after = match[0], self.text[self.at : self.at + 1]
        found = self._applied(name, after)
        if found is None:
            self.at, self.symbols = match.end(), before
            base, digits = re.fullmatch(r"([A-Za-z_]+?)(\d*)", name).groups()
            known = _SYMBOLS.get(base) or (name if len(name) == 1 else None)
            if known and (inside or name not in _ARTICLES or after in ("_", "^")):
                self.symbols += 1
                found = self._indexed(f"{known}_{digits}" if digits else known)
            elif (words or after == "^") and name.isalpha() and after != "_":
                self.symbols += 1
                found = self._indexed(rf"\text{{{name}}}")
        if found is None:
            self.at, self.symbols = start, before
        return found

    def _applied(self, name: str, after: str) -> str | None:
        """A function of what follows it."""
        before = self.symbols
        if name in _PREFIXES:
            term = self._term(inside=False, words=False) if self._next(re.compile(" ")) else None
            return None if term is None or self.symbols == before else f"{_PREFIXES[name]} {term}"
        if name == "E" and after == "[":
            found = self._bracket()
            return found and self._indexed(rf"\mathbb{{E}}{found}")
        if name in ("log", "ln") and after in (" ", "|"):
            follows = after == "|" or self._next(re.compile(" "))
            term = self._term(inside=False, words=False) if follows else None
            return None if term is None or self.symbols == before else f"{_FUNCTIONS[name]} {term}"
        if after != "(":
            return None
        found = self._bracket(arguments=True)
        if found is None:
            return None
        self.symbols += name in _FUNCTIONS or name == "sqrt" or len(name) == 1
        if self.symbols == before:
            return None
        if name == "sqrt":
            return self._indexed(rf"\sqrt{{{found[1:-1]}}}")
        known = (
            _FUNCTIONS.get(name) or _SYMBOLS.get(name) or (name if len(name) == 1 else rf"\text{{{name}}}")
        )
        return self._indexed(known + found)

    def _indexed(self, base: str) -> str:
        lower = upper = ""
        while index := self._next(_INDEX):
            low, bracket, power, primes, mark = index.groups()
            self.symbols += any(map(str.isalpha, index[0]))
            if low in ("tilde", "hat"):
                base = rf"\{low}{{{base}}}"
            elif low:
                lower = _index(low)
            elif primes:
                base += primes
            elif mark == "*" and not lower:
                lower = "*"
            else:
                if upper:
                    base, lower = f"({base}{_lowered(lower)}^{{{upper}}})", ""
                upper = _whole(bracket) if bracket else _index(power or f"\\{mark}")
        return base + _lowered(lower) + (f"^{{{upper}}}" if upper else "")


def _whole(text: str) -> str:
    """A formula that fills a text, or the text."""
    formula = _Formula(text)
    latex = formula.read(inside=True, words=True)
    return latex if latex and formula.at == len(text) else text


def _scientific(mantissa: str, minus: str, power: str) -> str:
    return ("" if mantissa == "1" else rf"{mantissa} \cdot ") + f"10^{{{minus}{power}}}"


def _index(name: str) -> str:
    known = _INDICES.get(name)
    return known or (
        name if len(name) == 1 or not name.islower() or not name.isalpha() else rf"\text{{{name}}}"
    )


def _lowered(index: str) -> str:
    return f"_{{{index}}}" if index else ""


def typeset(text: str) -> str:
    """A text of a claim as Markdown."""
    found, at = "", 0
    while at < len(text):
        formula = _Formula(text, at)
        latex = formula.read() if _START.match(text, at) else None
        if latex and formula.symbols:
            found, at = f"{found}${latex}$", formula.at
        else:
            rest = _PLAIN.match(text, at)
            found, at = found + plain(rest[0]), rest.end()
    return found


def plain(text: str) -> str:
    """Markdown would take these for markup."""
    for sign in "|*_<":
        text = text.replace(sign, "\\" + sign)
    return text
