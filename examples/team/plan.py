"""Adds a job for each topic, and tells the report how many there are."""
from clove.agent import Agent

agent = Agent()
topics = ["limits", "networks", "budgets", "mail"]
for topic in topics:
    agent.job.add("topics", topic)
agent.mail.send("notes.report", len(topics))
print(len(topics), "topics")
