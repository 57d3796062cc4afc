"""Pictures of the site: each figure once more for the dark palette, and as a thumbnail."""

import io

import numpy as np
from PIL import Image

BACKGROUND = "#1e2129"  # of the theme's palette `slate`
_WHITEST = 0.93  # the lightness that black gets
_LIFT = 0.85  # below 1: colors between black and white become lighter, to stand out from the background
_DARK = 0.4  # colors darker than this look black: of their hues less is kept
_TO_LMS = np.array(
    [[0.4122215, 0.5363325, 0.0514460], [0.2119035, 0.6806995, 0.1073970], [0.0883025, 0.2817188, 0.6299787]]
)
_TO_LAB = np.array(
    [
        [0.2104543, 0.7936178, -0.0040720],
        [1.9779985, -2.4285922, 0.4505937],
        [0.0259040, 0.7827718, -0.8086758],
    ]
)


def dark(picture: Image.Image) -> Image.Image:
    """The picture with its lightness reversed and its hues kept: white becomes the background of the page."""
    pixels = on_white(picture)
    palette = np.reshape(pixels.getpalette(), (-1, 3)) / 255
    bottom = oklab(np.array([int(BACKGROUND[i : i + 2], 16) for i in (1, 3, 5)]) / 255)
    lab = oklab(palette)
    light = lab[:, :1]
    turned = bottom[0] + (_WHITEST - bottom[0]) * np.clip(1 - light, 0, 1) ** _LIFT
    hue = lab[:, 1:] * np.clip(light / _DARK, 0, 1)
    lab = shown(np.hstack([turned, hue + light * bottom[1:]]))
    pixels.putpalette(np.round(255 * rgb(lab)).astype(int).ravel().tolist())
    return pixels


def thumbnail(picture: Image.Image, width: int = 480) -> Image.Image:
    small = on_white(picture).convert("RGB")
    small.thumbnail((width, width), Image.Resampling.LANCZOS)
    return on_white(small)


def on_white(picture: Image.Image) -> Image.Image:
    """With a palette, and without transparency."""
    if picture.mode == "P" and "transparency" not in picture.info:
        return picture.copy()
    page = Image.new("RGBA", picture.size, "white")
    page.alpha_composite(picture.convert("RGBA"))
    return page.convert("RGB").quantize(256, dither=Image.Dither.NONE)


def png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


def oklab(srgb: np.ndarray) -> np.ndarray:
    """Lightness and two coordinates of color (Ottosson's OKLab), from sRGB between 0 and 1."""
    linear = np.where(srgb > 0.04045, ((srgb + 0.055) / 1.055) ** 2.4, srgb / 12.92)
    return np.cbrt(linear @ _TO_LMS.T) @ _TO_LAB.T


def rgb(lab: np.ndarray) -> np.ndarray:
    """The inverse of `oklab`, clipped to what a screen shows."""
    linear = np.clip(_linear(lab), 0, 1)
    return np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)


def shown(lab: np.ndarray) -> np.ndarray:
    """The nearest colors of the same lightness and hue that a screen shows."""
    low, high = np.zeros((len(lab), 1)), np.ones((len(lab), 1))
    for _ in range(20):
        middle = (low + high) / 2
        linear = _linear(lab * np.hstack([np.ones_like(middle), middle, middle]))
        fits = np.all((linear > -1e-3) & (linear < 1 + 1e-3), axis=1, keepdims=True)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return lab * np.hstack([np.ones_like(low), low, low])


def _linear(lab: np.ndarray) -> np.ndarray:
    return (lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_LMS).T
