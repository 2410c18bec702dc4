"""Takes a photograph through the layers of a running service and draws a contact sheet.

The photograph is scikit-learn's `china.jpg` (danielbuechele, CC BY 2.0). With the service running:

    python examples/photo.py --output photo.png
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from PIL import Image
from service import Array, Service, ServiceError
from sklearn.datasets import load_sample_image

POOL = 8
SHOWN_WIDTH = 380
DETAIL = (slice(0, 106), slice(130, 290))
CREDIT = "Photograph: danielbuechele, CC BY 2.0 (scikit-learn's china.jpg)"


@dataclass(frozen=True)
class Panel:
    """One picture of the sheet: `image` is (H, W, 3) in 0..1, or (H, W) drawn with `colours`."""

    title: str
    request: str
    image: Array
    colours: str = "gray"


def photograph() -> Array:
    """The photograph as float32 in 0..1, shape (1, 3, H, W), H and W multiples of POOL."""
    pixels = load_sample_image("china.jpg")
    height, width = (side // POOL * POOL for side in pixels.shape[:2])
    cropped = pixels[:height, :width].transpose(2, 0, 1)[None]
    return np.ascontiguousarray(cropped, dtype=np.float32) / np.float32(255)


def gaussian(size: int, deviation: float) -> Array:
    """A Gaussian of size × size taps whose sum is 1."""
    offsets = np.arange(size) - (size - 1) / 2
    line = np.exp(-(offsets**2) / (2 * deviation**2))
    plane = np.outer(line, line).astype(np.float32)
    plane /= plane.sum()
    return plane


def laplacian_of_gaussian(size: int, deviation: float) -> Array:
    """The Laplacian of `gaussian`, shifted so that its sum is 0: a flat region answers nothing."""
    offsets = np.arange(size) - (size - 1) / 2
    squares = offsets[:, None] ** 2 + offsets[None] ** 2
    plane = gaussian(size, deviation) * (squares / deviation**2 - 2).astype(np.float32)
    plane -= plane.mean()
    return plane


def bilinear(factor: int) -> Array:
    """The kernel with which a transposed convolution of stride `factor` interpolates linearly."""
    line = 1 - np.abs(np.arange(2 * factor) - (factor - 0.5)) / factor
    return np.outer(line, line).astype(np.float32)


def edges(service: Service, x: Array) -> Iterator[Panel]:
    luminance = np.array([0.299, 0.587, 0.114], np.float32).reshape(1, 3, 1, 1)
    grey = service.forward("conv", x=x, weight=luminance)["y"]
    config = {"padding": "same", "padding_mode": "reflect"}
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], np.float32)
    bank = np.stack([sobel, sobel.T])[:, None]
    across, down = service.forward("conv", config, x=grey, weight=bank)["y"][0]
    yield Panel("Vertical edges", "conv · Sobel 3×3", across, "RdBu_r")
    yield Panel("Horizontal edges", "conv · Sobel transposed", down, "RdBu_r")
    blob = laplacian_of_gaussian(13, 2.0)[None, None]
    y = service.forward("conv", config, x=grey, weight=blob)["y"]
    yield Panel("Blobs", "conv · Laplacian of Gaussian 13×13", -y[0, 0], "RdBu_r")
    dx = service.backward("conv", config, wants=["dx"], x=grey, weight=blob, dy=y)["dx"]
    yield Panel("What would sharpen it", "conv backward · dx of ½‖y‖²", dx[0, 0], "PuOr_r")


def pooling(service: Service, x: Array) -> Iterator[Panel]:
    window = {"kernel": POOL}
    highest = service.forward("max_pool", window | {"return_indices": True}, x=x)
    yield Panel("Brightest of each window", f"max_pool · {POOL}×{POOL}", picture(highest["y"]))
    mean = service.forward("avg_pool", window, x=x)["y"]
    yield Panel("Mean of each window", f"avg_pool · {POOL}×{POOL}", picture(mean))
    config = {"stride": POOL, "padding": POOL // 2}
    smooth = spread(service, config, bilinear(POOL), mean, np.ones_like(mean))
    yield Panel("The means, interpolated", "conv_transpose · bilinear 16×16", picture(smooth))
    yield from unpooling(service, highest, x.shape)


def unpooling(
    service: Service, highest: dict[str, Array], shape: tuple[int, ...]
) -> Iterator[Panel]:
    """Puts the maxima back where they were, then fills the gaps by a Gaussian of what is known."""
    full_size = {"output_size": list(shape[2:])}
    sparse, known = (
        service.forward("max_unpool", full_size, x=values, indices=highest["indices"])["y"]
        for values in (highest["y"], np.ones_like(highest["y"]))
    )
    yield Panel("The maxima, put back (detail)", "max_unpool", picture(sparse)[DETAIL])
    rebuilt = spread(service, {"padding": "same"}, gaussian(17, 3.0), sparse, known)
    title = f"Rebuilt from 1 value in {POOL * POOL}"
    yield Panel(title, "conv_transpose · Gaussian 17×17", picture(rebuilt))


def spread(
    service: Service, config: dict[str, Any], kernel: Array, x: Array, known: Array
) -> Array:
    """Spreads `x` by a kernel, each channel alone, as a mean weighted by what is known."""
    config = config | {"groups": x.shape[1]}
    weight = np.stack([kernel[None]] * x.shape[1])
    total, share = (
        service.forward("conv_transpose", config, x=values, weight=weight)["y"]
        for values in (x, known)
    )
    return total / np.maximum(share, np.float32(1e-6))


def attention(service: Service, x: Array) -> Iterator[Panel]:
    coarse = service.forward("adaptive_avg_pool", {"output_size": [14, 21]}, x=x)["y"]
    yield Panel("Any size to 14 × 21", "adaptive_avg_pool", picture(coarse))
    window = {"kernel": 7, "stride": 1, "padding": "same"}
    counts = service.backward("max_pool", window, x=x, dy=np.ones_like(x))["dx"].sum(axis=(0, 1))
    title = "How often a pixel won (detail)"
    yield Panel(title, "max_pool backward · 7×7 / 1", np.log1p(counts)[DETAIL], "magma")


def picture(x: Array) -> Array:
    """The first sample as rows of pixels, its values cut to 0..1."""
    pixels: Array = np.clip(x[0].transpose(1, 2, 0), 0, 1)
    return pixels


def draw(panels: list[Panel], path: Path) -> None:
    """Writes the sheet: four panels a row, each with its title, its request and its size."""
    figure = Figure(figsize=(15, 9.5))
    rows = -(-len(panels) // 4)
    grid = figure.subplots(rows, 4, gridspec_kw={"hspace": 0.3, "wspace": 0.06})
    figure.subplots_adjust(left=0.02, right=0.98, top=0.87, bottom=0.04)
    for axes, panel in zip(grid.flat, panels, strict=True):
        draw_panel(axes, panel)
    title = "One photograph, eleven answers of the service"
    figure.text(0.02, 0.95, title, fontsize=19, fontweight="bold")
    figure.text(0.98, 0.012, CREDIT, fontsize=7.5, color="#888888", ha="right")
    buffer = BytesIO()
    figure.savefig(buffer, dpi=110)
    # 256 colours are enough for the eye here and make the file a third of the size.
    Image.open(buffer).convert("RGB").quantize(256).save(path, optimize=True)


def draw_panel(axes: Axes, panel: Panel) -> None:
    height, width = panel.image.shape[:2]
    norm = Normalize()
    if panel.image.ndim == 2 and panel.image.min() < 0:
        # Symmetric about zero, so that white means zero; the few strongest values are cut.
        highest = float(np.quantile(np.abs(panel.image), 0.995))
        norm = Normalize(-highest, highest)
    # What is shown smaller than it is, is averaged; what is shown larger keeps its pixels.
    how = "antialiased" if width > SHOWN_WIDTH else "nearest"
    axes.imshow(panel.image, cmap=panel.colours, aspect="auto", interpolation=how, norm=norm)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.set_title(panel.title, loc="left", fontsize=11.5, fontweight="bold", pad=19)
    caption = f"{panel.request}   {height}×{width}"
    axes.text(0, 1.025, caption, transform=axes.transAxes, fontsize=8.5, color="#666666")


def main() -> int:
    parser = argparse.ArgumentParser(description="A photograph through the service's layers.")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--output", type=Path, default=Path("photo.png"))
    options = parser.parse_args()
    x = photograph()
    panels = [Panel("The photograph", "x", picture(x))]
    try:
        with Service(options.url) as service:
            for stage in (edges, pooling, attention):
                panels += stage(service, x)
    except ServiceError as error:
        print(error, file=sys.stderr)
        return 1
    draw(panels, options.output)
    print(f"{len(panels)} pictures in {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
