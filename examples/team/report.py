"""Says what was written."""
import pathlib

print(len(list(pathlib.Path("/notes").glob("note-*.txt"))), "notes")
