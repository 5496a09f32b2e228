"""NaN and infinity: named at once on a CPU, kept from the optimiser on an accelerator."""

from __future__ import annotations

import pytest
import torch

from ccwm.training.finite import FiniteCheck, NotFinite, not_finite

FINE, NAN = torch.tensor(1.0), torch.tensor(float("nan"))


def test_what_is_finite_is_not_skipped() -> None:
    assert FiniteCheck().skip(0, {"model/kl": FINE}, {"grad_norm/model": FINE}, None) is None


@pytest.mark.parametrize("bad", [NAN, torch.tensor(float("inf")), torch.tensor(float("-inf"))])
def test_what_is_not_is_named(bad: torch.Tensor) -> None:
    metrics = {"model/kl": FINE, "model/reward": bad, "actor/loss": bad}
    with pytest.raises(NotFinite, match="update 7: model/reward, actor/loss not finite"):
        FiniteCheck().skip(7, metrics, {"grad_norm/model": FINE}, None)


def test_an_overflow_is_skipped_while_there_is_a_scale_to_lower() -> None:
    """Loss scaling of 16-mixed: the check is asked with the scaler itself."""
    for scale, fault in ((1024.0, False), (1.0, True)):
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        check, norms = FiniteCheck(), {"grad_norm/model": torch.tensor(float("inf"))}
        if fault:
            with pytest.raises(NotFinite, match="grad_norm/model"):
                check.skip(0, {"model/kl": FINE}, norms, scaler)
        else:
            skip = check.skip(0, {"model/kl": FINE}, norms, scaler)
            assert skip is not None
            assert skip == 1.0


def test_the_message_names_update_and_terms() -> None:
    error = not_finite(3, ["a", "b", "c"], torch.tensor([True, False, True]))
    assert "update 3: a, c not finite" in error.message
    assert "optimiser.grad_clip" in error.hint
