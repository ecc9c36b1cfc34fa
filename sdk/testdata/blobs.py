"""Sends a body that is larger than a call, and gets it back."""

import hashlib

from clove.agent import Agent
from clove.errors import CloveError

agent = Agent()
content = bytes((i * 7 ^ i >> 8) & 255 for i in range(3_000_001))
blob = agent.upload(content)
at = {"scope": "namespace", "path": "big"}
agent.state.set("big", None, scope="namespace", blob=blob.sha256)


def same(got: bytes) -> str:
    return str(got == content and hashlib.sha256(got).hexdigest() == blob.sha256).lower()


def word(call) -> str:
    try:
        call()
    except CloveError as problem:
        return problem.word
    return "done"


print(f"{blob.bytes} bytes, the same: {same(agent.download(blob.sha256))}, by the key: {same(agent.download(blob.sha256, at=at))}")
print(f"of none: {word(lambda: agent.download('0' * 64))}, empty: {word(lambda: agent.upload(b''))}")
