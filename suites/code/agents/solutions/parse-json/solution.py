import json


def flatten(text):
    found = {}

    def walk(path, value):
        if isinstance(value, dict):
            children = value.items()
        elif isinstance(value, list):
            children = enumerate(value)
        else:
            found[".".join(path)] = value
            return
        for name, child in children:
            walk(path + [str(name)], child)

    walk([], json.loads(text))
    return found
