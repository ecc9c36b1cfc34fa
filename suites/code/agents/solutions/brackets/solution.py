def balanced(text):
    open_ = []
    for c in text:
        if c in "([{":
            open_.append(c)
        elif c in ")]}" and (not open_ or open_.pop() + c not in ("()", "[]", "{}")):
            return False
    return not open_
