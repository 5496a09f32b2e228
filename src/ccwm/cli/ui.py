"""`ccwm ui`: the MLflow UI, as model training and with our columns."""

from __future__ import annotations

from typing import Annotated

import typer

from ccwm.cells import PARAMS
from ccwm.cli.run import become
from ccwm.settings.loading import load_settings


def ui(port: Annotated[int, typer.Option(min=1, max=65535, help="Port on 127.0.0.1.")] = 5000) -> None:
    """Open the MLflow UI on 127.0.0.1, where every run can be compared."""
    from ccwm.tracking.store import tracking_uri, view_path

    address = f"http://127.0.0.1:{port}{view_path(load_settings(PARAMS).tracking.experiment)}"
    typer.echo(f"The runs: {address}\nCtrl-C ends the server.")
    become("-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", str(port), "--backend-store-uri", tracking_uri())
