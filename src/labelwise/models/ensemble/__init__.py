"""Several models that answer as one: the model itself, its members' training, the rules that combine their lists."""

from labelwise.models.ensemble.model import Ensemble

__all__ = ["Ensemble"]
