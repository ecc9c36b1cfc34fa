"""A small agent that passes on less than it was given, and takes it back.

    sudo clove run -v "$PWD/sdk/python:/opt/sdk:ro" -e PYTHONPATH=/opt/sdk \
        --grant tool:fetch examples/grant_agent.py
"""

import clove


def main():
    with clove.connect() as agent:
        for what in ("tool:fetch", "tool:write"):
            answer = agent.grant.check(what)
            print(f"{what}: {'yes' if answer.allowed else 'no'}")
        (held,) = agent.grants()
        part = agent.grant.derive(held.id, "tool:fetch", uses=1, reason="for one page").grant
        print(f"derived {part.grant} for {part.uses_left} use")
        try:
            agent.grant.derive(part.id, "tool:fetch", uses=2)
        except clove.DeniedError as problem:
            print(f"more than that: {problem.word}")
        gone = agent.grant.revoke(part.id).revoked
        print(f"revoked {len(gone)}, left {len(list(agent.grants()))}")


if __name__ == "__main__":
    main()
