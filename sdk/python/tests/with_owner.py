"""What becomes of a sandbox whose owner ends: python3 -m unittest tests.with_owner.

CLOVE_COMMAND is the program clove.
"""

import asyncio
import os
import signal
import subprocess
import sys
import unittest
import unittest.mock

from clove.api import NotFoundError
from clove.options import read
from clove.sandbox import Sandbox
from clove.session import call, daemon_path

PATIENCE = 120

SETTINGS = {"command": os.environ["CLOVE_COMMAND"], "memory": "128M"}

OWNER = f"""
import asyncio, time
from clove.options import read
from clove.sandbox import Sandbox

async def main():
    box = Sandbox(read({SETTINGS!r}))
    await box.start()
    print(box.name, box._keeper.pid, flush=True)
    time.sleep(1000)

asyncio.run(main())
"""


class Owner(unittest.IsolatedAsyncioTestCase):
    async def owned(self):
        """The process of an owner, the name of its sandbox and the id of its keeper."""
        owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE)
        self.addCleanup(owner.stdout.close)
        self.addCleanup(owner.wait)
        self.addCleanup(owner.kill)
        name, keeper = (await asyncio.to_thread(owner.stdout.readline)).split()
        return owner, name.decode(), int(keeper)

    async def ends(self, name):
        try:
            await asyncio.wait_for(call(daemon_path(), "run.wait", run=name), PATIENCE)
        except NotFoundError:
            pass  # it was removed already

    async def test_a_killed_owner_takes_its_sandbox_with_it(self):
        owner, name, _ = await self.owned()
        self.assertEqual((await call(daemon_path(), "run.get", run=name))["run"]["state"], "running")
        owner.kill()
        await self.ends(name)

    async def test_a_killed_keeper_leaves_it_to_the_deadline(self):
        owner, name, keeper = await self.owned()
        os.kill(keeper, signal.SIGKILL)
        owner.kill()
        owner.wait()
        run = (await call(daemon_path(), "run.get", run=name))["run"]  # the control of the test before
        self.assertEqual((run["state"], run["spec"]["limits"]["wall_clock_ns"]), ("running", 24 * 3600 * 10**9))
        await call(daemon_path(), "run.remove", run=name, force=True)

    async def test_a_keeper_that_is_asked_to_end_removes_it_first(self):
        _, name, keeper = await self.owned()
        os.kill(keeper, signal.SIGTERM)
        await self.ends(name)

    async def test_a_cancelled_command_ends_inside(self):
        async with Sandbox(read(SETTINGS)) as box:
            task = asyncio.ensure_future(box.exec(["sh", "-c", "echo $$ >pid; exec sleep 1000"]))
            pid = await self.written(box, "pid")
            alive = ["kill", "-0", pid]
            self.assertEqual((await box.exec(["sh", "-c", " ".join(alive)])).returncode, 0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            async with Deadline() as deadline:
                while (await box.exec(["sh", "-c", " ".join(alive)])).returncode == 0:
                    deadline.check()

    async def written(self, box, file):
        async with Deadline() as deadline:
            while True:
                try:
                    text = (await box.read(file)).decode().strip()
                except FileNotFoundError:
                    text = ""
                if text:
                    return text
                deadline.check()

    async def test_the_agents_user_cannot_end_its_sandbox(self):
        async with Sandbox(read(SETTINGS)) as box:
            kill = ["sh", "-c", "kill -KILL -1; kill -KILL $(pgrep -f 86400)"]
            await box.exec(kill)
            self.assertEqual((await box.exec(["echo", "hi"])).stdout, b"hi\n")
            await box.exec(kill, user="root")  # the control
            await self.ends(box.name)

    async def test_a_queued_sandbox_is_waited_for_and_then_given_up(self):
        box = Sandbox(read({**SETTINGS, "deadline": "1m", "wait": 1}))
        answer = {"run": {"state": "queued"}, "reason": "no memory"}
        with unittest.mock.patch("clove.sandbox.call", return_value=answer):
            with self.assertRaisesRegex(Exception, "did not start within 1 s: no memory"):
                await box.start()
        await box.close()
        with self.assertRaises(NotFoundError):
            await call(daemon_path(), "run.get", run=box.name)


class Deadline:
    async def __aenter__(self):
        self.end = asyncio.get_running_loop().time() + PATIENCE
        return self

    async def __aexit__(self, *problem):
        pass

    def check(self):
        if asyncio.get_running_loop().time() > self.end:
            raise AssertionError("it did not come about in time")
