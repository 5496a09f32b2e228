"""Tables, figures and the page that turn result files into something to read."""

from ccwm.report.page import build_report

__all__ = ["build_report"]
