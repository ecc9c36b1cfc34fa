"""A small agent that asks a language model, with the standard library alone.

    sudo clove run --network none --model echo examples/ask.py

It has no key and no network: clove answers on its loopback, and echo is a model that needs
no provider. With a model of /etc/clove/models.yaml it is the same program. A client library
needs no more: its base URL is in the environment.
"""

import json
import os
import sys
import urllib.error
import urllib.request

QUESTION = "Which sandbox am I in?"


def ask(model, question):
    """The answer of a model, by OpenAI's chat completions."""
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": model, "messages": [{"role": "user", "content": question}]}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else "echo"
    try:
        answer = ask(model, QUESTION)
    except urllib.error.HTTPError as problem:
        sys.exit(f"refused: {json.load(problem)['error']['message']}")
    print(f"{model}: {answer['choices'][0]['message']['content']}")
    print(f"{answer['usage']['total_tokens']} tokens")


if __name__ == "__main__":
    main()
