"""Plans: counts over rates, and one line for what cannot be planned."""

import dataclasses
import json

import pytest

import nearkernel as nk
from nearkernel._commands.kernel.plan import spoken
from nearkernel.scale import rates as _rates
from support.commands import nearkernel

RATES = nk.results.Rates(cores=2, build=1e8, product=2e8, entries=1e8, flops=3e10, disk=1e9)
GIB = 2**30


def plan(n, d=50, **others):
    return nk.scale.plan(n, d, RATES, memory="16GiB", **others)


def test_rates_are_measured_by_the_code_that_they_predict(monkeypatch):
    monkeypatch.setattr(_rates, "_POINTS", 400)
    monkeypatch.setattr(_rates, "_DISK", 2**20)
    found = nk.scale.measure_rates(nk.kernels.RBF(2.0), 5)
    assert found.cores >= 1 and all(value > 0 for value in dataclasses.astuple(found))


def test_a_product_is_half_of_the_entries_over_the_rate_of_all_cores():
    found = plan(100_000)
    assert found.product.seconds == pytest.approx(0.5 * 1e10 / 4e8)
    assert found.solve.seconds > 31 * found.product.seconds
    assert plan(200_000).product.seconds == pytest.approx(4 * found.product.seconds)


def test_workers_share_a_build_until_something_else_is_slower():
    rates = dataclasses.replace(RATES, disk=1e10, network=1e11)
    alone, few, many = (nk.scale.plan(100_000, 50, rates, workers=w, memory="16GiB") for w in (0, 8, 1000))
    assert alone.build.limit == few.build.limit == "computing"
    assert alone.build.seconds / few.build.seconds == pytest.approx(4, rel=0.05)
    assert many.build.limit == "the disk" and many.build.seconds < few.build.seconds
    assert few.build.disk == pytest.approx(4e10, rel=0.05)
    slow = dataclasses.replace(RATES, task=1.0)
    assert nk.scale.plan(100_000, 50, slow, workers=1000, memory="64GiB").build.limit == "the scheduler"
    thin = dataclasses.replace(RATES, network=1e5)
    assert nk.scale.plan(100_000, 50, thin, workers=1000, memory="64GiB").build.limit == "the network"


def test_workers_on_one_machine_have_no_more_than_its_cores():
    quick = dataclasses.replace(RATES, disk=1e12, network=1e12, task=1e-9)
    two, four = (nk.scale.plan(20_000, 50, quick, workers=w, machines=1).build.seconds for w in (2, 4))
    assert four == pytest.approx(two / 0.9, rel=0.01)  # and hinder each other


def test_the_last_blocks_leave_workers_idle():
    quick = dataclasses.replace(RATES, disk=1e12, network=1e12, task=1e-9)
    three, many = (nk.scale.plan(4000, 50, quick, workers=w).build.seconds for w in (3, 30))
    assert many == pytest.approx(three, rel=0.01)  # there are three blocks


def test_a_pass_over_centers_adds_entries_sums_and_factors():
    found = plan(1_000_000, centers=2000)
    assert found.centers.limit == "sums of squares"
    entries, sums = 2e9 / 2e8, 4e12 / 6e10
    assert found.centers.seconds == pytest.approx(entries + sums, rel=0.1)
    assert plan(100, centers=2000).m == 100
    slow = nk.scale.plan(10**6, 50, dataclasses.replace(RATES, disk=1e6), centers=10)
    assert slow.centers.limit == "the disk"


def test_the_solver_follows_from_size_memory_and_patience():
    assert plan(2000).solver == "direct"
    assert plan(100_000).solver == "cg" and not plan(100_000).direct.possible
    assert plan(10**7).solver == "nystrom"
    assert plan(100_000, patience=10.0).solver == "nystrom"
    assert "patience" in plan(100_000, patience=10.0).reason
    assert not plan(10**10).solve.possible and "fits in memory" in plan(10**10).reason


def test_a_store_has_only_so_many_blocks():
    assert plan(10**6).build.possible and not nk.scale.plan(10**7, 50, RATES, memory="900GiB").build.possible


BAD = {
    "`n` must be": {"n": 0},
    "`d` must be": {"d": 1.5},
    "`workers` must be": {"workers": -1},
    "`machines` must be": {"workers": 2, "machines": 0},
    "`iterations` must be": {"iterations": 0},
    "`centers` must be": {"centers": 0},
    "`dtype_bytes` must be 4 or 8; got 2": {"dtype_bytes": 2},
    "`memory` must be a size": {"memory": "much"},
    "`patience` must be greater than 0": {"patience": 0},
    "`rates` must be nk.results.Rates; got dict": {"rates": {}},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_arguments_cost_one_line(message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        nk.scale.plan(**{"n": 10, "d": 3, "rates": RATES, **BAD[message]})
    assert "\n" not in str(caught.value)


def test_rates_are_positive():
    with pytest.raises(ValueError, match="`disk` must be greater than 0; got 0"):
        dataclasses.replace(RATES, disk=0)
    with pytest.raises(TypeError, match=r"`kernel` must be a kernel of nk\.kernels; got str"):
        nk.scale.measure_rates("rbf", 3)
    with pytest.raises(ValueError, match="`dtype` must be"):
        nk.scale.measure_rates(nk.kernels.RBF(1.0), 3, dtype="float16")


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setattr(nk.scale, "measure_rates", lambda kernel, d, dtype: RATES)


def typed(*words: str, code: int = 0):
    return nearkernel("kernel", "plan", "--n", "10000000", "--d", "50", *words, code=code)


def test_the_command(known):
    text = typed("--kernel", "ntk", "--workers", "64").stdout
    assert "10,000,000 points of 50 features, kernel ntk in float64" in text
    assert "64 workers" in text and "each worker holds" in text and "choose solver='nystrom'" in text
    found = json.loads(
        typed("--kernel", "rbf", "--disk", "4GB/s", "--network", "2GB/s", "--entries", "3e8", "--json").stdout
    )
    assert (
        found["rates"]["disk"] == 4e9 and found["rates"]["network"] == 2e9 and found["rates"]["build"] == 3e8
    )
    assert found["solver"] == "nystrom" and found["kernel"]["length"] == 50**0.5
    small = nearkernel("kernel", "plan", "--n", "1000", "--d", "5", "--kernel", "ntk", "--dtype", "float32")
    assert "in float32" in small.stdout and "choose solver='direct'" in small.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kernel", "ntk", "--entries", "0"), "error: --entries 0: give entries per second and core"),
        (("--kernel", "ntk", "--disk", "fast"), "error: `--disk` must be a size such as"),
        (("--kernel", "ntk", "--network", "-1"), "error: `--network` must be a size such as"),
        (("--kernel", "ntk", "--memory", "x"), "error: `--memory` must be a size such as"),
        (("--kernel", "ntk", "--workers", "-1"), "error: --workers -1:"),
        (("--kernel", "rbf", "--length", "0"), "error: --length 0.0: give a finite number above 0"),
        (("--kernel", "ntk", "--length", "1"), "error: --length belongs to --kernel rbf or laplace"),
    ],
)
def test_bad_words_cost_one_line(known, words, message):
    found = typed(*words, code=2)
    assert found.stderr.startswith(message) and found.stderr.count("\n") == 1


def test_times_are_spoken_in_the_unit_that_fits():
    assert [spoken(s) for s in (0.123, 75, 600, 7200, 3e5, 1e9)] == [
        "0.12 s", "75 s", "10.0 min", "2.0 h", "3.5 days", "31.7 years",
    ]  # fmt: skip
