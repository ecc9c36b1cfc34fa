from datetime import date


def days(a, b):
    return (date.fromisoformat(b) - date.fromisoformat(a)).days
