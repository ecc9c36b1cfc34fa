def groups(words):
    found = {}
    for word in words:
        found.setdefault("".join(sorted(word)), []).append(word)
    return sorted(sorted(group) for group in found.values())
