import collections
import sys

words = collections.Counter(sys.stdin.read().split())
for word in sorted(words, key=str.encode):
    print(word, words[word])
