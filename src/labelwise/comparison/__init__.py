"""Several systems on the same documents.

What to train and on what (`system`, `splits`), one of them measured (`measure`), in a process of its own (`worker`),
all of them compared (`contest`) and shown (`tables`).
"""
