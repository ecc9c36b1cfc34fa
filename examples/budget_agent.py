"""A small agent that spends from a budget: it sums up chapters, and each costs tokens.

    sudo clove run -v "$PWD/sdk/python:/opt/sdk:ro" -e PYTHONPATH=/opt/sdk \
        --budget tokens=1000 --at-end refuse examples/budget_agent.py

It reserves the most that a chapter can cost before it begins, and settles what it has cost.
So it stops in time, and never spends more than it was given. Without --at-end refuse, the
reservation that does not fit would end the run.
"""

import clove

CHAPTERS = {"One": 260, "Two": 240, "Three": 310, "Four": 280}  # what each costs
MOST = 320


def main():
    with clove.connect() as agent:
        for chapter, cost in CHAPTERS.items():
            try:
                held = agent.budget.reserve({"tokens": MOST}).reservation
            except clove.BudgetError as problem:
                print(f"chapter {chapter} has to wait: {problem.word}")
                break
            agent.budget.settle(held, {"tokens": cost})
            print(f"chapter {chapter} took {cost} tokens")
        for note in agent.listen(timeout=10):
            if note.method == "budget.warning":
                print(f"warned: {note.params.budget.dimension} reached {note.params.budget.warn_at}")
                break
        for budget in agent.budget.get().budgets:
            if budget.dimension == "tokens":
                print(f"used {budget.used} of {budget.granted} tokens")


if __name__ == "__main__":
    main()
