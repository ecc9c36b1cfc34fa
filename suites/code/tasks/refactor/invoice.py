def invoice(items, country):
    lines = []
    net = 0
    for name, count, cents in items:
        amount = count * cents
        net = net + amount
        lines.append(name + " " + str(count) + " x " + str(cents // 100) + "." + str(cents % 100).zfill(2) + " = " + str(amount // 100) + "." + str(amount % 100).zfill(2))
    if country == "de":
        vat = (net * 19 + 50) // 100
    elif country == "at":
        vat = (net * 20 + 50) // 100
    elif country == "ch":
        vat = (net * 81 + 500) // 1000
    else:
        vat = 0
    total = net + vat
    lines.append("net " + str(net // 100) + "." + str(net % 100).zfill(2))
    lines.append("vat " + str(vat // 100) + "." + str(vat % 100).zfill(2))
    lines.append("sum " + str(total // 100) + "." + str(total % 100).zfill(2))
    return "\n".join(lines)
