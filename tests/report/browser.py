"""A real, headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import base64
import http.client
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync --mute-audio --remote-debugging-port=0 --window-size=1100,900"
)
PATIENCE = 240.0
"""Seconds; a busy machine takes its time."""


class Tab:
    """One page, and what the browser said about it."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._calls = socket, 0
        self.complaints: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer to one command; events on the way are heard."""
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            self._hear(message)
            if message.get("id") == self._calls:
                assert "error" not in message, message
                answer: dict[str, Any] = message["result"]
                return answer

    def _hear(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])

    def open(self, page: Path, *, width: int = 1100, scheme: str = "light") -> None:
        """Load a file on a screen of this width, in this colour scheme."""
        self.complaints.clear()
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        given = {"expression": script, "returnByValue": True, "awaitPromise": True, "userGesture": True}
        answer = self.call("Runtime.evaluate", **given)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until the expression is true."""
        end = time.monotonic() + PATIENCE
        while not self.run(condition):
            assert time.monotonic() < end, f"never true: {condition}"
            time.sleep(0.05)

    def click(self, selector: str) -> None:
        """Press and release the mouse in the middle of an element."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect(); "
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path: Path) -> None:
        """The whole page as PNG."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def chromium(profile: Path) -> Iterator[Tab]:
    """A browser with one tab; it ends with the block."""
    command = [str(shutil.which("chromium")), *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connect(_address(profile), max_size=None, open_timeout=PATIENCE, ping_interval=None) as socket:
            yield Tab(socket)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _address(profile: Path) -> str:
    """Where the browser's first tab listens."""
    end = time.monotonic() + PATIENCE
    announced = profile / "DevToolsActivePort"
    while time.monotonic() < end:
        if announced.is_file() and (port := announced.read_text().split("\n")[0]):
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE)
            connection.request("GET", "/json/list")
            tabs = [tab for tab in json.loads(connection.getresponse().read()) if tab["type"] == "page"]
            if tabs:
                return str(tabs[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise TimeoutError("chromium did not say where it listens")
