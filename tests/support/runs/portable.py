"""Runs the numerical tests as other processors would: `make test-portable`.

OpenBLAS chooses its routines by the processor, and XLA its instructions. Both can be told to behave as on another one;
both copies of OpenBLAS, NumPy's and SciPy's, read the same variable. Profiles that this processor cannot run are left
out.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = ("activations", "models", "kernels", "dynamics", "statistics", "forecasts", "geometry", "laws")
# OpenBLAS's name of a processor, the widest instructions XLA may use (None: all), what the processor must have.
PROFILES = (
    ("Prescott", "SSE4_2", "sse4_2"),
    ("Haswell", "AVX2", "avx2"),
    ("Zen", None, "avx2"),
    ("SkylakeX", None, "avx512f"),
)


def can_run(feature: str) -> bool:
    cpuinfo = Path("/proc/cpuinfo")
    return not cpuinfo.exists() or feature in cpuinfo.read_text().split()


def run(core: str, isa: str | None, options: list[str]) -> int:
    flags = (
        f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_max_isa={isa}"
        if isa
        else os.environ.get("XLA_FLAGS", "")
    )
    cache = ROOT / ".jax_cache" / f"portable-{isa or 'default'}"
    env = os.environ | {
        "OPENBLAS_CORETYPE": core,
        "XLA_FLAGS": flags.strip(),
        "JAX_COMPILATION_CACHE_DIR": str(cache),
    }
    command = [sys.executable, "-m", "pytest", "-q", *(f"tests/{room}" for room in TESTS), *options]
    return subprocess.run(command, cwd=ROOT, env=env).returncode


def main(options: list[str]) -> int:
    lines, failed = [], 0
    for core, isa, feature in PROFILES:
        name = f"OpenBLAS {core}, XLA {isa or 'default'}"
        if not can_run(feature):
            lines.append(f"{name}: left out, this processor has no {feature}")
            continue
        print(f"== {name}", flush=True)
        began = time.monotonic()
        code = run(core, isa, options)
        failed += code != 0
        lines.append(
            f"{name}: {'passed' if code == 0 else 'FAILED'} in {(time.monotonic() - began) / 60:.1f} min"
        )
    print("\n".join(["", *lines]))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
