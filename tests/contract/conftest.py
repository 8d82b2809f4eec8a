"""Faults that the package has today."""

import pytest


@pytest.fixture
def known_fault(request):
    """Expects the running test to fail where the condition holds, and to pass as soon as the fault is mended."""

    def expect(condition, reason):
        if condition:
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason))

    return expect
