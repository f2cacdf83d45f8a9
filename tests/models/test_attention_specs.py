"""Specs as a user types them: what is accepted, what is refused, and what the refusal says to type."""

from __future__ import annotations

import re

import pytest

from tsattn.errors import InputError
from tsattn.models.attention import Heads, build, parse


@pytest.mark.parametrize(
    ("typed", "shortest"),
    [
        ("softmax", "softmax"),
        ("softmax+bn", "bn"),
        ("bn+sh", "bn+sh"),
        (" linear + bn ", "linear+bn"),
        ("local:32+bn+sh:1,1,2,4", "local:32+bn+sh:1,1,2,4"),
    ],
)
def test_spelling(typed: str, shortest: str) -> None:
    assert str(parse(typed)) == shortest


def test_refused_combinations_name_one_that_is_accepted(refused: str) -> None:
    with pytest.raises(InputError) as error:
        parse(refused)
    (suggestion,) = re.findall(r"write '([^']+)'", str(error.value))
    assert set(suggestion.split("+")) <= set(refused.split("+"))
    assert len(suggestion.split("+")) >= len(refused.split("+")) - 1
    build(suggestion, Heads(8, 4))


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("sofmax", "there is no part 'sofmax'. Did you mean 'softmax'?"),
        ("bm", "Did you mean 'bn'?"),
        ("BN+SH", "Did you mean 'bn'?"),
        ("softmax+softmax", "only one core can compute attention, write 'softmax'."),
        ("", "there is no part ''"),
        ("bn++sh", "there is no part ''"),
        ("linear+softmax", "only one core can compute attention, write 'linear' or 'softmax'"),
        ("bn+linear", "the core stands first, write 'linear+bn'"),
        ("bn+sh+bn", "'bn' stands twice, write 'bn+sh'"),
        ("conv+sh", "'conv' needs every timepoint and so cannot stand inside 'sh', write 'sh+conv'"),
        ("flow+bn+sh", "'flow' needs every timepoint and so cannot stand inside 'sh', write 'flow+bn'"),
        ("linear:3", "'linear' takes no option, write 'linear'"),
    ],
)
def test_refusals(typed: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        parse(typed)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("bn:", "beta must be a number of at most 1000 or learn, not '' (usage: bn:beta|learn)"),
        ("local:0", "the window must be a whole number of timepoints, 1 to 4096, not '0' (usage: local:W)"),
        ("local:x", "the window must be"),
        ("local:100000", "the window must be"),
        ("sh:99999999999999", "scales must be"),
        ("bn:x", "beta must be a number of at most 1000 or learn, not 'x' (usage: bn:beta|learn)"),
        ("bn:nan", "beta must be a number of at most 1000 or learn, not 'nan'"),
        ("bn:1e40", "beta must be a number of at most 1000 or learn, not '1e40'"),
        ("bn:-1001", "beta must be a number of at most 1000 or learn, not '-1001'"),
        ("conv:4", "the kernel must be an odd number of timepoints, not '4'"),
        ("conv:1000000001", "the kernel must be at most 255 timepoints, not '1000000001'"),
        ("conv:-3", "the kernel must be an odd number"),
        ("sh:1,0", "scales must be whole numbers of timepoints, 1 to 4096, not '1,0'"),
        ("sh:", "scales must be"),
        ("sh:conv,1,x", "scales must be whole numbers of timepoints, 1 to 4096, not '1,x'"),
        ("strided:-1", "the window must be"),
        ("sh:1,2,4", "3 scales cannot be spread evenly over 8 heads"),
    ],
)
def test_refused_options(typed: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        build(str(parse(typed)), Heads(8, 4))
    assert says in str(error.value)
