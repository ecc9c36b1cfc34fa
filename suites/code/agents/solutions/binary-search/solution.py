from bisect import bisect_left


def search(items, x):
    i = bisect_left(items, x)
    return i if i < len(items) and items[i] == x else -1
