"""Which documents are held out, and what they are used for: the same for every model."""

from __future__ import annotations

from dataclasses import dataclass

from labelwise.config.settings import Settings, ShareBelowOne


@dataclass(frozen=True, kw_only=True)
class HoldoutConfig(Settings):
    """Which documents choose and calibrate, and whether the model learns from them afterwards.

    Documents of a validation split are held out where one is given. Otherwise a share of the training documents is: all
    choices are made and the calibration is fitted while linear models and encoder have not seen these documents, and
    the linear models then learn from them too.
    """

    share: ShareBelowOne = 0.05
    """Share of the training documents that is held out where no validation documents are given; 0 for none. Of a small
    data set up to a tenth, if a calibration needs as many."""
    calibrate: bool = True
    """Fit a calibration on the held-out documents, so that predictions are probabilities."""
    learn_validation: bool = False
    """Train the linear models on given validation documents too, once these have chosen and calibrated: there is more
    to learn from, but figures of these documents are then those of the model before. Encoders do not."""
