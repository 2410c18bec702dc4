"""The words of errors: counts, lists of names, and what was meant by a name from elsewhere.

Nothing here is read as a request: a name that is not ours is refused, and the refusal says what ours is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from typing import TypeVar

N = TypeVar("N")

LONGEST = 32
"""Characters of a name that is compared with others: it takes time that grows with their square."""

MOST = 32
"""Names in one list of unknown ones that are compared with others. A thousand would take half a second."""

CLOSE = 0.75
"""How much alike two names are of which one is taken for a slip of the other; 1 is equal."""

FOREIGN = {
    # Tensors.
    "x": "input inputs data image images",
    "weight": "w weights kernel kernels filter filters",
    "bias": "b biases",
    "indices": "index argmax mask",
    "dy": "grad_output grad_outputs grad_y gradient grad dout upstream",
    "dx": "grad_input grad_x",
    "dweight": "grad_weight grad_w dw",
    "dbias": "grad_bias grad_b db",
    "y": "output outputs out",
    # Fields of config.
    "kernel": "kernel_size kernel_shape pool_size ksize size"
    " window window_size window_shape window_dimensions",
    "stride": "strides window_strides step",
    "padding": "pad pads auto_pad",
    "padding_mode": "pad_mode mode",
    "dilation": "dilations dilation_rate rate rhs_dilation",
    "groups": "group num_group feature_group_count",
    "layout": "data_format data_layout dimension_numbers",
    "weight_layout": "weight_format filter_format kernel_layout",
    "activation": "act nonlinearity relu leaky_relu elu selu gelu silu swish sigmoid tanh softplus",
    "output_size": "output_shape size",
    "return_indices": "return_mask",
    "ceil_mode": "ceil",
    "p": "norm_type ord norm",
    "name": "activation type function",
    "alpha": "negative_slope slope",
    # Values of fields.
    "same": "same_upper",
    "valid": "none no",
    "replicate": "edge nearest",
    "zeros": "constant",
    "circular": "wrap",
    "lowest": "-inf",
    "silu": "swish",
    "exponential": "exp",
    "identity": "linear none",
    **dict.fromkeys(("NWC", "NHWC", "NDHWC"), "channels_last"),
    **dict.fromkeys(("NCW", "NCHW", "NCDHW"), "channels_first"),
    # Element types.
    "float16": "half f16 fp16",
    "float32": "single f32 fp32",
    "float64": "double f64 fp64",
    "int32": "i32",
    "int64": "long i64",
    # Operations, without the number of their dimensions, and actions.
    "conv": "convolution convolve cross_correlation correlate depthwise_conv",
    "conv_transpose": "transposed_conv conv_transposed convolution_transpose deconvolution",
    "max_pool": "max_pooling",
    "avg_pool": "average_pool average_pooling mean_pool",
    "adaptive_avg_pool": "global_avg_pool global_average_pool global_average_pooling",
    "adaptive_max_pool": "global_max_pool global_max_pooling",
    "forward": "fwd call predict apply",
    "backward": "bwd grad gradient vjp",
    "plan": "shape shapes",
}
"""Our names, and those that PyTorch, ONNX, Keras, TensorFlow and JAX have for the same."""

INPUT_DILATION = ("lhsdilation", "basedilation", "inputdilation")
"""Names for zeros between the numbers of x, which are close to `dilation`, that of windows."""

NEEDLESS = {
    **dict.fromkeys(
        ("kernel", "kernelsize", "kernelshape", "outchannels", "filters"),
        "the shape of weight tells it",
    ),
    "inchannels": "the shape of x tells it",
    "depthmultiplier": "groups and the shape of weight tell it",
    **dict.fromkeys(("bias", "usebias"), "it is a tensor, beside config"),
    "paddingmode": "it always pads with zeros",
    "outputpadding": "only conv_transpose has it",
    **dict.fromkeys(
        INPUT_DILATION, "zeros between the numbers of x are the stride of conv_transpose"
    ),
}
"""Fields that convolutions have elsewhere; here the tensors say the same, or there is nothing to choose."""

ELSEWHERE = {
    "paddingmode": "only conv has it",
    "countincludepad": "only avg_pool has it",
    **dict.fromkeys(INPUT_DILATION, "x is not dilated here"),
}
"""Fields of ours that others than convolutions lack, whose names are close to those of their own."""

OTHERS = frozenset(("relu6", "prelu", "celu", "crelu", "rrelu", "softsign", "logsigmoid"))
"""Functions that are not ours, whose names are close to those of ours."""


class Words(str):
    """A description of what was found; any other text that was found is quoted where it is told."""

    __slots__ = ()


def counted(number: int, one: str, many: str = "") -> Words:
    """A number of things, as `1 item` and `2 items`."""
    return Words(f"{number} {one if number == 1 else many or one + 's'}")


def one_of(names: Iterable[str]) -> str:
    """What is expected where a name out of some is; of one name, that."""
    several = list(names)
    return several[0] if len(several) == 1 else f"one of {', '.join(several)}"


def did_you_mean(
    name: object, known: Iterable[str], prefix: str = "", *, slips: bool = True
) -> str:
    """The end of a message about a name that is not among the known: what was meant, or nothing.

    Args:
        prefix: put before a name that is found, as the path that leads to it.
        slips: whether a name that is close to one of the known may be a slip of it.
    """
    if not isinstance(name, str) or len(name) > LONGEST:
        return ""
    plain, ours = _plain(name), {_plain(one): one for one in known}
    for other in (plain, *_MEANT.get(plain, ())):
        if other in ours:
            return f"; did you mean {prefix}{ours[other]}?"
    reasons = NEEDLESS if "weightlayout" in ours else ELSEWHERE
    if plain in reasons:
        return f"; {reasons[plain]}"
    close = get_close_matches(plain, ours, 1, CLOSE) if slips and plain not in OTHERS else []
    return f"; did you mean {prefix}{ours[close[0]]}?" if close else ""


def hints(names: Iterable[N], hint: Callable[[N], str]) -> Iterator[tuple[N, str]]:
    """Names, and what `hint` says of each; of more than can be shown it is not asked."""
    for place, name in enumerate(names):
        yield name, hint(name) if place < MOST else ""


def _plain(name: str) -> str:
    """A name without what spellings of it differ in, and without its number of dimensions."""
    return re.sub(r"[123]d|[_ -]", "", name.lower())


def _inverted() -> dict[str, list[str]]:
    meant: dict[str, list[str]] = {}
    for ours, names in FOREIGN.items():
        for name in names.split():
            meant.setdefault(_plain(name), []).append(_plain(ours))
    return meant


_MEANT = _inverted()
