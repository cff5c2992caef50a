"""Features of texts: sparse tf-idf, and dense embeddings by pretrained encoders."""
