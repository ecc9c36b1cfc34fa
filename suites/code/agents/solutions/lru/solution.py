from collections import OrderedDict


def trace(capacity, steps):
    cache, found = OrderedDict(), []
    for what, key, *value in steps:
        if what == "get":
            found.append(cache.get(key))
        else:
            cache[key] = value[0]
        if key in cache:
            cache.move_to_end(key)
        while len(cache) > capacity:
            cache.popitem(last=False)
    return found
