import collections
import sys

counted = collections.Counter(line.split()[0] for line in sys.stdin if line.strip())
for address, n in sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:3]:
    print(address, n)
