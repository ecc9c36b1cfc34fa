import re


def evaluate(text):
    words = re.findall(r"[\d.]+|[-+*/()]", text)

    def atom():
        word = words.pop(0)
        if word == "-":
            return -atom()
        if word == "(":
            value = sum_()
            words.pop(0)
            return value
        return float(word)

    def product():
        value = atom()
        while words and words[0] in "*/":
            value = value * atom() if words.pop(0) == "*" else value / atom()
        return value

    def sum_():
        value = product()
        while words and words[0] in "+-":
            value = value + product() if words.pop(0) == "+" else value - product()
        return value

    return sum_()
