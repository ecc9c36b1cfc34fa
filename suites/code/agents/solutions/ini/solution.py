def parse(text):
    sections, here = {}, None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            here = sections.setdefault(line[1:-1], {})
        elif line and line[0] not in ";#":
            key, _, value = line.partition("=")
            here[key.strip()] = value.strip()
    return sections
