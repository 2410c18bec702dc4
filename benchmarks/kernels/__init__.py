"""The engine's kernels against PyTorch's, a naive im2col, and the machine's own limits.

    python -m benchmarks.kernels --short

Everything is timed in one process and one run, peer after peer and round after round, so that what
the machine does meanwhile happens to all of them.
"""

import os

# OpenBLAS reads this once, when NumPy is first imported. Its workers spin for up to 2^26 cycles after
# a product, on a core that the next peer needs; 2^20 is still longer than the gaps inside one call.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
