from itertools import groupby


def encode(text):
    return "".join(f"{len(list(run))}{c}" for c, run in groupby(text))
