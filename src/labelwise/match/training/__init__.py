"""Fine-tuning an encoder on clusters of labels."""
