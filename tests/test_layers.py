def upward():
    return []
