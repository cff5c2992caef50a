"""What the estimators of `labelwise.sklearn` are made of. Nothing else here imports scikit-learn."""
