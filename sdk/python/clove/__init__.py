"""A client of clove's agent socket.

    import clove

    with clove.connect() as agent:
        if agent.grant.check("tool:fetch").allowed:
            agent.budget.charge({"tokens": 120})

It works inside the sandbox of a run that clove started with --grant, --budget or
--agent-socket. `python3 -m clove` is a command line to the same calls.
"""

from .agent import Agent, connect
from .api import *  # noqa: F403 the types and exceptions
from .errors import CloveError, UnansweredError, UnreachableError
from .notes import Note, Notifications
