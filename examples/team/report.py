"""Waits for all notes, and prints them."""
from clove.agent import Agent

agent = Agent()
agent.ready()
count, notes = None, []
while count is None or len(notes) < count:
    message = agent.mail.receive(within_ms=60000).messages[0]
    if isinstance(message.body, int):
        count = message.body
    else:
        notes.append(message.body)
    agent.mail.ack([message.id])
print("\n".join(sorted(notes)))
