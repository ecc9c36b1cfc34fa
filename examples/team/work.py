"""Writes a note for each topic that it gets, until there are none left."""
import time

from clove.agent import Agent
from clove.errors import CloveError

agent = Agent()
while True:
    try:
        job = agent.job.claim("topics", within_ms=5000).job
    except CloveError as error:
        if error.word == "not-found":
            break
        raise
    print("has", job.body, flush=True)
    time.sleep(1)  # the work
    note = f"What agents need to know of {job.body}."
    # The note is sent and the job is done, or neither.
    agent.job.complete(job.id, then=[{"method": "mail.send", "params": {"to": "notes.report", "body": note}}])
