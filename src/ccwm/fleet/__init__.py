"""The fleet: the cells of the matrix in parallel on Ray; DVC alone says what is stale and what is done.

A *slot* is a clone of the project at the exact commit, in which one cell runs at a time. *Home* is the project whose
``dvc.lock`` the fleet fills. Only this package imports ray.
"""

from ccwm.cells import WORK

FLEET = WORK / "fleet"
"""Where a project keeps its slots, its logs and its status."""
MARKER = FLEET / "marker"
"""A random name of the project: a host that reads it at home's path shares home's files."""
ARRIVED = FLEET / "arrived"
"""Parcels of finished cells that DVC's books do not have yet."""
