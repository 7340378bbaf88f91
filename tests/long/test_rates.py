"""A rate over a longer time: four workers of two supervisors, one common bucket.

The figures are printed: `make test-long ARGS=-s`.

    RQ_RATE_SECONDS=30   how long
"""

import os

from tests.support.rates import RATE, SUPERVISORS, begun_within

SECONDS = int(os.environ.get("RQ_RATE_SECONDS") or 30)


def test_it_is_kept_and_used(witnessed, witness):
    begun = begun_within(SECONDS, start=witnessed, witness=witness)
    share = begun / (RATE * SECONDS)
    print(  # noqa: T201
        f"\n{begun:,} begun in {SECONDS} s at {RATE}/s by {SUPERVISORS} supervisors: "
        f"{share:.1%}"
    )
    assert 1 <= share <= 1.05
