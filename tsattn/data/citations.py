"""What the archives ask to be cited, and what they say of licences."""

from __future__ import annotations

NOT_STATED = "not stated by the archive"

CITATIONS = {
    "UEA": (
        "Bagnall, Dau, Lines, Flynn, Large, Bostrom, Southam, Keogh: The UEA multivariate time series "
        "classification archive, 2018. arXiv:1811.00075"
    ),
    "UCR": (
        "Dau, Bagnall, Kamgar, Yeh, Zhu, Gharghabi, Ratanamahatana, Keogh: The UCR time series archive. "
        "IEEE/CAA Journal of Automatica Sinica 6(6), 2019. arXiv:1810.07758"
    ),
}
"""By name of the archive; for the other collections none is known here."""
