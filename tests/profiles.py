"""Hypothesis profiles: `dev` (the default), `ci` and `deep`, chosen by the environment variable AGENTKIT_PROFILE.

`dev` and `ci` draw the same examples in every run, and `ci` draws more of them. `deep` draws many examples, and
others in each run.
"""

from __future__ import annotations

import os
from typing import Final

from hypothesis import HealthCheck, settings

__all__ = ["PROFILE", "examples"]

_FACTORS: Final = {"dev": 0.15, "ci": 0.3, "deep": 50.0}
_MIN_EXAMPLES: Final = 5
_SLOW: Final = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

PROFILE: Final = os.environ.get("AGENTKIT_PROFILE", "dev")


def examples(number: int, *suppressed: HealthCheck) -> settings:
    """Returns the settings of a property that draws `number` examples, times the factor of the profile.

    `suppressed` are health checks to leave out besides those on slow and large examples.
    """
    return settings(
        max_examples=max(round(number * _FACTORS[PROFILE]), _MIN_EXAMPLES),
        derandomize=PROFILE != "deep",
        database=None,
        deadline=None,
        print_blob=False,
        suppress_health_check=[*_SLOW, *suppressed],
    )
