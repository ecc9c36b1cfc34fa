"""Writes what is to be done, a line each."""
import pathlib

topics = ["limits", "networks", "budgets"]
pathlib.Path("/notes/plan.txt").write_text("\n".join(topics) + "\n")
print(len(topics), "topics")
