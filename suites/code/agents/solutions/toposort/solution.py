def order(needs):
    left, done = {name: set(of) for name, of in needs.items()}, []
    while left:
        ready = sorted(name for name, of in left.items() if of <= set(done))
        if not ready:
            return None
        done.append(ready[0])
        del left[ready[0]]
    return done
