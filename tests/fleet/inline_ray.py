"""Ray as a scheduler and its cells see it, in one process: a task runs when it is submitted, or is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ray.exceptions import RayError


class Result(NamedTuple):
    """What a task came to; the number tells equal results apart."""

    number: int
    value: Any


class Remote:
    """A function that is called by ``remote``."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.remote = call


class Handle:
    """An actor: every method is called by ``remote``."""

    def __init__(self, actor: object) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Remote:
        return Remote(getattr(self._actor, name))


class InlineRay:
    """``lost`` says by a task's name how its first attempts end; ``waits`` after how many waits the cluster is gone."""

    def __init__(self, lost: dict[str, list[RayError]] | None = None, waits: int | None = None) -> None:
        self._lost = {name: list(errors) for name, errors in (lost or {}).items()}
        self._waits = waits
        self.submitted: list[str] = []
        self.placed: dict[str, object] = {}

    def remote(self, **_: object) -> Callable[[Any], Any]:
        def wrap(target: Any) -> Any:
            return Remote(lambda: Handle(target())) if isinstance(target, type) else Task(self, target)

        return wrap

    def attempt(self, name: str, call: Callable[[], Any]) -> Result:
        self.submitted.append(name)
        errors = self._lost.get(name)
        try:
            value = errors.pop(0) if errors else call()
        except Exception as error:
            value = error
        return Result(len(self.submitted), value)

    def put(self, value: Any) -> Any:
        return value

    def get(self, found: Any) -> Any:
        value = found.value if isinstance(found, Result) else found
        if isinstance(value, Exception):
            raise value
        return value

    def wait(self, refs: Iterable[Any], **_: object) -> tuple[list[Any], list[Any]]:
        if self._waits == 0:
            raise RayError("the head is gone")
        self._waits = None if self._waits is None else self._waits - 1
        first, *rest = refs
        return [first], rest

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 100.0}

    def cancel(self, ref: object) -> None:
        """A task that runs when it is submitted has ended before it can be cancelled."""


class Task:
    """A function that is given to Ray under a name."""

    def __init__(self, ray: InlineRay, target: Callable[..., Any]) -> None:
        self._ray, self._target = ray, target

    def options(self, *, name: str, scheduling_strategy: object = None) -> Remote:
        if scheduling_strategy is not None:
            self._ray.placed[name] = scheduling_strategy
        return Remote(lambda *arguments: self._ray.attempt(name, lambda: self._target(*arguments)))
