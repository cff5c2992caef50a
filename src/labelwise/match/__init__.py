"""Neural matching: a pretrained encoder, fine-tuned to map a text to its clusters of labels (paper, 3.2)."""
