"""Where work runs: in threads of this process, or in the processes of a Ray cluster."""

from labelwise.engines.interface import ENGINES, Engine, EngineName, cpu_seconds, current_engine, engine

__all__ = ["ENGINES", "Engine", "EngineName", "cpu_seconds", "current_engine", "engine"]
