"""From documents to a fitted X-Transformer, stage by stage; what several models need is made once."""
