VAT = {"de": 190, "at": 200, "ch": 81}


def money(cents):
    return f"{cents // 100}.{cents % 100:02}"


def invoice(items, country):
    lines = [f"{name} {count} x {money(cents)} = {money(count * cents)}" for name, count, cents in items]
    net = sum(count * cents for _, count, cents in items)
    vat = (net * VAT.get(country, 0) + 500) // 1000
    totals = [f"net {money(net)}", f"vat {money(vat)}", f"sum {money(net + vat)}"]
    return "\n".join(lines + totals)
