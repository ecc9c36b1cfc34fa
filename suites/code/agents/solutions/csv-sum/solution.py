import csv
import io


def total(text, column):
    return sum(float(row[column]) for row in csv.DictReader(io.StringIO(text)))
