"""The models: they compose the stages and hold no algorithm."""
