def spiral(matrix):
    rows, found = [list(row) for row in matrix], []
    while rows:
        found += rows.pop(0)
        rows = [list(row) for row in zip(*rows)][::-1]
    return found
