"""What keeps each case of the kernels' benchmark from its bound, in a sentence, forward and backward.

Shares of time are of one thread, by timing NumPy's calls one by one.
"""

from __future__ import annotations

_WINOGRAD = (
    "Winograd: at 64 channels its transforms and turning inputs channels last take as long as the "
    "products; one call for each step of a block, at each of which two threads wait"
)
_WINOGRAD_BACK = (
    "x as forward; weight: half is products of at most 64 tiles (longer ones lose digits), the rest "
    "transforms of both factors"
)
_PLAIN_1X1 = (
    "products are nine tenths of it, {} beside large squares' rate; looking for NaN the rest"
)
_EINSUM = (
    "`einsum`: vectors of 128 bits, and four accesses to memory for a multiply-add; NumPy has no other "
    "over windows"
)
_ONE_PASS = "each comparison is a pass over memory that the cache holds; the first reads x anew"

REASONS: dict[str, tuple[str, str]] = {
    "vgg-64": (_WINOGRAD, _WINOGRAD_BACK),
    "res-64": (_WINOGRAD, _WINOGRAD_BACK),
    "res-128": (
        "Winograd: products are most of it; 14 rows of tiles make two blocks of unlike size",
        _WINOGRAD_BACK,
    ),
    "res-256": (
        "Winograd: products of 28 rows, as each sample has its own; 65,536 filters are transformed "
        "anew at each call, since nothing is kept between calls",
        _WINOGRAD_BACK,
    ),
    "res-512": (
        "products of 196 columns (four samples) reach three quarters of large ones' rate; with more "
        "samples a twentieth more, and fewer products to share among threads",
        "as forward; besides, 9.4 MB of weights are turned for the gradient of x",
    ),
    "res-stem": (
        "gathering 147 taps for each output is a sixth of it, a slab and a copy for each block; "
        "the products have 147 numbers for each result",
        "products are three fifths; the rest copies dy for each of the two gradients, which want it in "
        "different orders, and adds up columns",
    ),
    "res-1x1-down": (
        "packing: above 96 channels BLAS copies its operands, since rows lie a map apart; in place "
        "they are no faster",
        "nine tenths is products; those of the weight have 64 columns, and copy their operands",
    ),
    "res-1x1-up": (
        "products of 64 numbers for each result, four fifths of it, which write 26 MB of results",
        "nine tenths is products; those of the weight have 64 rows, and copy their operands",
    ),
    "res-down": (
        "gathering at stride 2, every second number of a row, is a sixth of the time; a slab and a copy "
        "for each block, which threads wait at",
        "the weight's products (a third) are of 288 × 128 results; timed before the four "
        "residues of x had copies in common",
    ),
    "mobile-dw": (
        "three copies of the input, and products of four rows that multiply as many zeros as numbers: "
        "NumPy has no multiply-add over windows",
        "x as forward, half of it; weight: a dot product of two planes for each tap, and laying both "
        "with zeros between their rows",
    ),
    "mobile-dw-s2": (
        "reading every second number, which NumPy does one by one, but for casts; calls of 30 to 60 µs, "
        "which two threads hardly share",
        "products for x, a third of it, of numbers of dy two apart: half of what they multiply is zeros; "
        "then laying them so, and copying every second number for the weight",
    ),
    "convnext-dw": (
        "products of four rows need ten rows of input for seven taps, and eight copies of it; higher "
        "strips multiply more zeros",
        "x as forward, half of it; weight: 49 dot products for each plane, a third",
    ),
    "resnext": (
        "groups of four: products of 8 rows; three copies of the input and one of the output",
        "weight: products of 4 columns, a third of it, most of that reading; x as forward",
    ),
    "lenet-1": (
        "products of 6 rows, too small for panels",
        "products of 6 rows and of 6 columns are half of it; adding up columns of 25 taps a tenth",
    ),
    "lenet-2": (
        "products of 16 rows, too small for panels; 64 samples are as many calls",
        "products of 16 columns are two fifths of it; adding up columns of 25 taps a fifth",
    ),
    "tiny": (
        "half is products and copies, half Python: 73 calls of functions for finding the plan, making "
        "views, holding BLAS to one thread",
        "as forward, with 126 calls of functions",
    ),
    "dcgan-deconv": (
        "products of 256 columns (four samples) at three quarters of large ones' rate; adding up "
        "columns is a fifth, as NumPy starts anew for each row of 8 outputs",
        "products are three quarters of it: those of x have 64 columns, one sample's positions",
    ),
    "unet-deconv": (
        "products are two thirds, of 128 numbers for each result; laying results two apart, in both "
        "directions, a sixth",
        "products are two thirds; gathering dy, whose windows lie side by side, is a fifth, once for "
        "each of the two gradients",
    ),
    "audio-1d": (
        "gathering: a sixth of the time, a slab and a copy for each block, which threads wait at",
        "the weight's products have 64 × 64 results for each tap, from rows of one place apart, two "
        "fifths of it",
    ),
    "video-3d": (
        "Winograd across and down: products of 48 numbers with 32 filters, and turning the input",
        "weight: products of 144 rows by 32 columns, most of it, and turning dy, whose planes share "
        "cache lines",
    ),
    "max-2": (
        f"{_ONE_PASS} and looks for NaN, a third of it",
        "the maxima are found anew, since nothing is kept between calls; then three passes for each "
        "comparison hand the gradient to who won it",
    ),
    "max-3": (
        f"{_ONE_PASS}; at stride 2 the input is taken apart into residues before, a third of it",
        "taking inputs apart and putting their gradient together take as long as all the rest; PyTorch's "
        "forward pass has kept the indices: who hands them in waits half as long",
    ),
    "avg-3": (
        "one pass over memory for each tap of each axis; a running sum is faster, and not exact",
        "as forward, over dy divided by its counts",
    ),
    "global-avg": (
        "memory; a call of half a millisecond, which a second thread makes 1.4 times as fast, since both "
        "read the same memory",
        "writing memory that the system gives page by page",
    ),
    "res-64-last": (_WINOGRAD.replace(" and turning inputs channels last", ""), _WINOGRAD_BACK),
    "res-1x1-down-last": (
        _PLAIN_1X1.format("of 448 rows by 64 columns"),
        "nine tenths is products; those of the weight have 64 columns",
    ),
    "res-1x1-up-last": (
        _PLAIN_1X1.format("of 64 numbers for each result"),
        "nine tenths is products; those of x have 64 columns, those of the weight 64",
    ),
    "mobile-dw-last": (_EINSUM, _EINSUM),
    "max-2-last": (
        f"{_ONE_PASS}, two fifths of it",
        "the maxima are found anew, since nothing is kept between calls",
    ),
    "max-3-last": (
        f"{_ONE_PASS}; four of them, as windows overlap",
        "taking inputs apart and putting their gradient together, as with channels first; the maxima "
        "are found anew",
    ),
}
"""By case: what takes the time that the bound does not, forward and backward."""
