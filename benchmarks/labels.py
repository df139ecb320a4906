"""How fast complementary labels are drawn: ten million from a 10-class matrix.

    python benchmarks/labels.py

Prints seconds and the process's peak memory, beside a plain loop of ``numpy.random.choice`` on a small part.
"""

from __future__ import annotations

import platform
import resource
import time

import numpy as np

from wcll.labels import imbalance_counts, inverse_size_transition, make_complementary

N, K, LOOP = 10_000_000, 10, 20_000


def main() -> None:
    sizes = imbalance_counts(N, n_classes=K, minority=[0], p=5)
    y = np.repeat(np.arange(K), sizes)
    matrix = inverse_size_transition(sizes)

    start = time.perf_counter()
    make_complementary(y, matrix, random_state=0)
    ours = time.perf_counter() - start

    rng = np.random.default_rng(0)
    some = rng.choice(y, LOOP)
    start = time.perf_counter()
    for label in some:
        rng.choice(K, p=matrix[label])
    loop = (time.perf_counter() - start) * N / LOOP

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"labels: {N:,} in {ours:.2f} s, peak memory {peak:.2f} GiB")
    print(f"a loop over samples: {loop:.0f} s (from {LOOP:,})")
    print(f"ratio: {loop / ours:.0f}")
    print(f"python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")


if __name__ == "__main__":
    main()
