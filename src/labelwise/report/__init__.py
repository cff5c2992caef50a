"""Plots and reports. matplotlib is imported only when something is drawn."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelwise.report.write import write_report

__all__ = ["write_report"]


def __getattr__(name: str) -> Any:
    """`write_report`, imported on first use: plots alone need no models."""
    if name == "write_report":
        from labelwise.report.write import write_report

        return write_report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
