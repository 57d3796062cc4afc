"""Where the lab listens, and by which names it may be called."""

import pytest

from nearkernel.lab.server.serve import LOCAL, names, serve


@pytest.mark.parametrize(
    ("host", "bound", "allowed", "more"),
    [
        ("127.0.0.1", "127.0.0.1", (), ()),
        ("localhost", "127.0.0.1", ("lab.example",), ("lab.example",)),
        ("::1", "::1", (), ()),
        ("192.168.0.7", "192.168.0.7", (), ("192.168.0.7",)),
        ("desk", "192.168.0.7", (), ("desk", "192.168.0.7")),
        ("0.0.0.0", "0.0.0.0", ("desk", "192.168.0.7"), ("desk", "192.168.0.7")),
        ("::", "::", ("fe80::1", "[fe80::2]"), ("[fe80::1]", "[fe80::2]")),
    ],
)
def test_the_lab_answers_to_names_it_was_given(host, bound, allowed, more):
    assert names(host, bound, allowed) == (*LOCAL, *more)


@pytest.mark.parametrize("host", ["0.0.0.0", "", "0"])
def test_who_listens_everywhere_is_asked_for_names(host):
    with pytest.raises(
        ValueError, match=r"--host .*: say how others will call this machine, like --allow-host \S+; give"
    ):
        serve(host, None, open_browser=False)


@pytest.mark.parametrize("name", ["*", "*.example", "http://lab.example", "lab.example:80", "a b", "", "a/b"])
def test_a_name_is_a_name(name):
    with pytest.raises(
        ValueError, match=r"--allow-host .*: give a name or an address alone, like lab.example"
    ):
        names("0.0.0.0", "0.0.0.0", (name,))


def test_an_address_that_cannot_be_had_costs_one_line():
    with pytest.raises(ValueError, match=r"--host 203\.0\.113\.7: .*; choose another, or leave it out\."):
        serve("203.0.113.7", None, open_browser=False)
    with pytest.raises(ValueError, match=r"--host a\.\.b: .*; choose another"):
        serve("a..b", None, open_browser=False)
