"""Writes a note for each line of the plan."""
import pathlib

notes = pathlib.Path("/notes")
for topic in (notes / "plan.txt").read_text().split():
    (notes / f"note-{topic}.txt").write_text(f"What agents need to know of {topic}.\n")
    print("wrote", topic)
