"""Starts a run, works in it, and waits for its end: the user's side of cloved.

    sudo PYTHONPATH=sdk/python python3 examples/drive_run.py
"""

import asyncio
import pathlib
import tempfile

from clove.cloved import Cloved

# Its stderr is closed: a shell reports there that a child was ended.
AGENT = "exec 2>&-; trap 'echo asked to end; exit 3' TERM; echo begun; while :; do sleep 0.1; done"


async def main():
    cloved = Cloved()
    run = (await cloved.start(["sh", "-c", AGENT], name="driven")).run
    print(f"{run.spec.name} is {run.state}")
    try:
        await cloved.exec("driven", ["tee", "numbers"], input=b"3\n1\n2\n")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "numbers")
            await cloved.copy_out("driven", "/workspace/numbers", file)
            await cloved.copy_in("driven", file, "/tmp", "numbers")
        done = await cloved.exec("driven", ["sort", "/tmp/numbers"])
        print(done.returncode, done.stdout.decode().split())
        async with cloved.run.logs("driven", follow=True) as notes:
            print("log:", (await notes.__anext__()).line.text)
        await cloved.run.stop("driven")
        record = (await cloved.run.wait("driven")).record
        print(f"{record.status} {record.exit_code}")
        print("log:", ", ".join([line.text async for line in cloved.logs("driven")]))
        events = cloved.event.follow(after=0, run=run.spec.id, what=["started", "ended"])
        print("events:", ", ".join([note.event.what async for note in events]))
    finally:
        await cloved.run.remove("driven", force=True)


asyncio.run(main())
