"""Stage 3: linear models, one per label (or per node), trained and searched."""
