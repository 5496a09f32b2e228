"""ccwm: world models that learn from retracing."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ccwm.loading import load_agent

__all__ = ["load_agent"]


def __getattr__(name: str) -> object:
    """What users import from the top, loaded when it is asked for: `import ccwm` itself needs no torch."""
    if name in __all__:
        return getattr(import_module("ccwm.loading"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
