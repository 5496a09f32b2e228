"""A study beside the project: its own settings, lock file and results in a directory that git keeps.

    evidence/maze/params.yaml   its settings
    evidence/maze/dvc.lock      DVC's books
    evidence/maze/results/…     small results and run records, as the cells finish

It runs in a clone below ``.work/fleet/studies``, which is made anew from these files and DVC's cache whenever it is
missing. The project's cache and MLflow store are the study's too.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from ccwm.cells import PARAMS, run_command
from ccwm.errors import UserError
from ccwm.files import write_atomically
from ccwm.fleet import FLEET
from ccwm.fleet.code import Code, capture, lay_out, presets_at, write_cache_config
from ccwm.fleet.slot import DVC_LOCK
from ccwm.settings.presets import PRESETS, load_preset, preset_text

EVIDENCE = Path("evidence")


def study_root(project: Path, into: Path | None) -> Path:
    """Where a fleet fills DVC's books: the project itself, or the clone of the study that is kept in ``into``."""
    if into is None:
        return project
    inside = (project / into).resolve()
    if project.resolve() not in inside.parents:
        raise UserError(f"{into} is outside the project")
    return project / FLEET / "studies" / "-".join(inside.relative_to(project.resolve()).parts)


def lay_out_study(project: Path, into: Path, *, preset: str | None, commit: str | None) -> Code:
    """Bring a study's clone to the code, the settings and the results that it has to start from."""
    kept, root = project / into, study_root(project, into)
    if preset is not None:
        text = _preset_text(project, preset, commit)
        if (kept / PARAMS).is_file() and (kept / PARAMS).read_text() != text:
            hint = f"`ccwm fleet run --into {into}` resumes it as it is; delete the file to begin anew"
            raise UserError(f"{into / PARAMS} has other settings than the preset {preset!r}", hint=hint)
        kept.mkdir(parents=True, exist_ok=True)
        write_atomically(kept / PARAMS, text.encode())
    if not (kept / PARAMS).is_file():
        raise UserError(f"{into / PARAMS} is missing", hint="write it, or name a preset")
    code = capture(project, commit=commit, params=(kept / PARAMS).read_text())
    lay_out(code, root)
    (root / EVIDENCE).mkdir(exist_ok=True)  # the report depends on it, and it is no code
    command = [sys.executable, "-m", "dvc", "cache", "dir"]
    write_cache_config(root, run_command(command, "DVC has no cache", project).strip())
    if (kept / DVC_LOCK).is_file():
        shutil.copyfile(kept / DVC_LOCK, root / DVC_LOCK)
    if (kept / "results").is_dir():
        shutil.copytree(kept / "results", root / "results", dirs_exist_ok=True)
    check_out_objects(root)
    return code


def other_studies(kept: Path) -> list[Path]:
    """The directories beside a kept study that keep one, too."""
    return sorted(lock.parent for lock in kept.parent.glob(f"*/{DVC_LOCK}") if lock.parent != kept)


def check_out_objects(root: Path) -> None:
    """Lay out the agents and data of finished cells, as far as DVC's cache has them: a fresh clone's has none."""
    command = [sys.executable, "-m", "dvc", "checkout", "--allow-missing", "--force", "--quiet"]
    run_command(command, "the study's objects could not be laid out", root)


def _preset_text(project: Path, preset: str, commit: str | None) -> str:
    """A preset's settings, as the commit has it whose code will read them."""
    if commit is None:
        load_preset(preset)
        return preset_text(preset)
    with TemporaryDirectory() as folder, tarfile.open(fileobj=BytesIO(presets_at(project, commit))) as archive:
        archive.extractall(folder, filter="data")
        return preset_text(preset, Path(folder) / PRESETS)
