"""Linear models one label at a time, in 64-bit floats: nothing is shrunk, hidden or kept aside."""

import numpy as np


def losses(loss, margins):
    """The loss of each margin y w·x."""
    if loss == "logistic":
        return np.logaddexp(0, -margins)
    return np.maximum(0, 1 - margins) ** (2 if loss == "squared-hinge" else 1)


def primal(X, signs, costs, W, loss):
    """(n_labels,) 1/2 |w|² + Σ cost · loss, over the documents whose sign is not 0."""
    each = np.where(signs > 0, costs[:, :1], costs[:, 1:])
    violations = np.where(signs != 0, each * losses(loss, signs * (X @ W)), 0)
    return 0.5 * (W**2).sum(axis=0) + violations.sum(axis=0)


def solve(X, signs, costs, loss, sweeps=2000):
    """(n_features, n_labels) weights by plain cyclic coordinate descent on the dual."""
    W = np.zeros((X.shape[1], signs.shape[1]))
    for label in range(signs.shape[1]):
        rows = np.flatnonzero(signs[:, label])
        y = signs[rows, label].astype(float)
        cost = np.where(y > 0, costs[rows, 0], costs[rows, 1]).astype(float)
        W[:, label] = solve_label(X[rows] * y[:, None], cost, loss, sweeps)
    return W


def solve_label(X, cost, loss, sweeps):
    """One label's weights; rows of X are y·x."""
    alpha = np.zeros(len(X)) if loss != "logistic" else cost / 2
    w = X.T @ alpha
    for _ in range(sweeps):
        largest = 0.0
        for x, c, i in zip(X, cost, range(len(X)), strict=True):
            new = step(loss, alpha[i], x @ w, x @ x, c)
            w += (new - alpha[i]) * x
            largest = max(largest, abs(new - alpha[i]) / c)
            alpha[i] = new
        if largest < 1e-9:
            break
    return w


def step(loss, alpha, margin, square, cost):
    """The best value of one dual variable, the others fixed."""
    if loss == "squared-hinge":
        diagonal = 0.5 / cost
        return max(alpha - (margin - 1 + diagonal * alpha) / (square + diagonal), 0)
    if loss == "hinge":
        return min(max(alpha - (margin - 1) / square, 0), cost) if square else cost
    low, high = -700.0, 700.0  # the logit of alpha / cost, by bisection
    for _ in range(100):
        middle = (low + high) / 2
        gradient = margin + square * (cost / (1 + np.exp(-middle)) - alpha) + middle
        low, high = (middle, high) if gradient < 0 else (low, middle)
    return cost / (1 + np.exp(-low))
