"""Changed models of the suite: a domain's XML is edited, then compiled.

``factor`` multiplies what the compiler resolved: total mass, the friction of every geom, the stiffness and damping of
every joint, gravity. ``absolute`` replaces what the XML states: total mass, gravity, and the friction, stiffness or
damping of the first default class that states one (of the root default where none does); geoms and joints that state
their own keep it.
"""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np
from dm_control.mujoco import wrapper

from ccwm.envs.change import Change

log = logging.getLogger(__name__)

DEFAULTS = {"friction": "geom", "stiffness": "joint", "damping": "joint"}
"""Which element of a default class carries each value."""


@contextlib.contextmanager
def changed_models(domain: ModuleType, change: Change) -> Iterator[None]:
    """While open, every model that a suite domain builds is built with the change.

    All domains, after any edits of their own, hand it to their own ``Physics.from_xml_string``.
    """

    def build(cls: Any, xml: str | bytes, assets: Mapping[str, bytes] | None = None) -> Any:
        return cls.from_model(wrapper.MjModel(compile_changed(xml, assets or {}, change)))

    if "from_xml_string" in vars(domain.Physics):
        raise RuntimeError(f"{domain.__name__}.Physics has its own from_xml_string; changed_models would lose it")
    domain.Physics.from_xml_string = classmethod(build)
    try:
        yield
    finally:
        del domain.Physics.from_xml_string


def compile_changed(xml: str | bytes, assets: Mapping[str, bytes], change: Change) -> mujoco.MjModel:
    """Compile a suite model with the change; log what the change could not reach."""
    text = xml.decode() if isinstance(xml, bytes) else xml
    original = _compile(_parse(text, assets))
    if change.units == "absolute":
        text = _replace_defaults(text, change)
    spec = _parse(text, assets)
    if change.units == "factor":
        _scale(spec, change)
    if change.gravity is not None:
        gravity = np.asarray(spec.option.gravity)
        spec.option.gravity = gravity * change.gravity if change.units == "factor" else [0.0, 0.0, -change.gravity]
    model = _compile(spec)
    if change.mass is not None:
        total = float(original.body_mass.sum()) * change.mass if change.units == "factor" else change.mass
        mujoco.mj_setTotalmass(model, total)
        mujoco.mj_setConst(model, mujoco.MjData(model))  # what the compiler derived from the masses
    _warn_without_effect(original, model, change)
    return model


def _parse(text: str, assets: Mapping[str, bytes]) -> mujoco.MjSpec:
    """Includes and other assets come from dm_control in one mapping; MuJoCo wants them apart."""
    include = {name: data for name, data in assets.items() if name.endswith(".xml")}
    others = {name: data for name, data in assets.items() if not name.endswith(".xml")}
    return mujoco.MjSpec.from_string(text, include=include, assets=others)


def _compile(spec: mujoco.MjSpec) -> mujoco.MjModel:
    with warnings.catch_warnings():
        # Cheetah's own XML states its mass this way; which is fixed in dm_control.
        warnings.filterwarnings("ignore", "compiler attribute 'settotalmass' is deprecated")
        return spec.compile()


def _scale(spec: mujoco.MjSpec, change: Change) -> None:
    if change.friction is not None:
        for geom in spec.geoms:
            geom.friction = np.asarray(geom.friction) * change.friction
    for joint in spec.joints:
        if change.stiffness is not None:
            joint.stiffness = np.asarray(joint.stiffness) * change.stiffness
        if change.damping is not None:
            joint.damping = np.asarray(joint.damping) * change.damping


def _replace_defaults(text: str, change: Change) -> str:
    root = ElementTree.fromstring(text)
    for name, element in DEFAULTS.items():
        value = getattr(change, name)
        if value is None:
            continue
        target = root.find(f"./default//{element}[@{name}]")
        if target is None:
            defaults = root.find("./default")
            defaults = ElementTree.SubElement(root, "default") if defaults is None else defaults
            target = defaults.find(f"./{element}")
            target = ElementTree.SubElement(defaults, element) if target is None else target
        target.set(name, " ".join(map(str, value)) if isinstance(value, tuple) else str(value))
    return ElementTree.tostring(root, encoding="unicode")


def _warn_without_effect(before: mujoco.MjModel, after: mujoco.MjModel, change: Change) -> None:
    reached = {
        "friction": not np.array_equal(before.geom_friction, after.geom_friction),
        "stiffness": not np.array_equal(before.jnt_stiffness, after.jnt_stiffness),
        "damping": not np.array_equal(before.dof_damping, after.dof_damping),
        "gravity": not (after.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY),
    }
    for name, effective in reached.items():
        value = getattr(change, name)
        if value is not None and not effective:
            log.warning("%s %s (%s) changes nothing in this model", name, value, change.units)
