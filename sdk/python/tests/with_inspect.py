"""The Inspect provider against a cloved: python3 -m unittest tests.with_inspect.

CLOVE_COMMAND is the program clove.
"""

import asyncio
import os
import unittest
from unittest import mock

from tests import standins

standins.inspect_ai()

import clove.inspect_ai  # noqa: E402 it registers itself

SETTINGS = {"command": os.environ["CLOVE_COMMAND"], "memory": "256M"}


class Inspect(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.provider = standins.REGISTERED["clove"]
        self.config = self.provider.config_deserialize(SETTINGS)
        await self.provider.task_init("task", self.config)
        self.all = await self.provider.sample_init("task", self.config, {})
        self.sample = self.all["default"]

    async def asyncTearDown(self):
        await self.provider.sample_cleanup("task", self.config, self.all, False)

    async def sh(self, script, **how):
        return await self.sample.exec(["sh", "-c", script], **how)

    async def test_commands(self):
        self.assertEqual(await self.sh("echo hi; echo to >&2; exit 3"), standins.InspectResult(False, 3, "hi\n", "to\n"))
        there = await self.sh("mkdir -p sub; cd sub; pwd; id -un; id -un >../who")
        self.assertEqual(there.stdout, "/workspace/sub\nagent\n")
        done = await self.sh('pwd; id -u; echo "$A"; cat', input="in $A\n", cwd="sub", env={"A": "x y"}, user="root")
        self.assertEqual(done.stdout, "/workspace/sub\n0\nx y\nin $A\n")
        self.assertEqual((await self.sh("cat", input=b"")).stdout, "")
        self.assertEqual((await self.sample.exec(["printf", "%s", *["x" * 65536] * 16])).stdout, "x" * 65536 * 16)
        self.assertEqual((await self.sample.exec(["printf", "%s", *["é" * 30000] * 7])).stdout, "é" * 30000 * 7)

    async def test_commands_that_cannot_be_executed(self):
        with self.assertRaises(PermissionError):
            await self.sample.exec(["/etc/passwd"])
        for why, command, how in (("nosuch", ["nosuch"], {}), ("/nodir", ["id"], {"cwd": "/nodir"}), ("nobodys", ["id"], {"user": "nobodys"})):
            done = await self.sample.exec(command, **how)
            self.assertFalse(done.success)
            self.assertIn(why, done.stderr)

    async def test_a_command_that_runs_out_of_time_ends_with_its_children(self):
        with self.assertRaises(TimeoutError):
            await self.sh("sleep 1000 & echo $! >child; echo $$ >own; wait", timeout=8)  # time to begin on a busy machine
        pids = " ".join([(await self.sample.read_file(name)).strip() for name in ("child", "own")])
        left = await self.sh(f"for p in {pids}; do kill -0 $p 2>/dev/null && echo $p; done; kill -0 $$ && echo control")
        self.assertEqual(left.stdout, "control\n")

    async def test_output_has_a_limit(self):
        with mock.patch.object(standins.Limits, "MAX_EXEC_OUTPUT_SIZE", 1000):
            self.assertEqual(len((await self.sh("head -c 1000 /dev/zero | tr '\\0' x")).stdout), 1000)
            with self.assertRaises(standins.OutputLimitExceededError) as caught:
                await self.sh("yes")
        self.assertEqual(caught.exception.truncated_output, "y\n" * 500)

    async def test_files(self):
        data = bytes(range(256)) * 4096
        await self.sample.write_file("a b/c/'d", data)
        self.assertEqual(await self.sample.read_file("/workspace/a b/c/'d", text=False), data)
        with self.assertRaises(UnicodeDecodeError):
            await self.sample.read_file("a b/c/'d")
        await self.sample.write_file("a b/c/'d", "é\r\n")
        self.assertEqual(await self.sample.read_file("a b/c/'d"), "é\r\n")
        with mock.patch.object(standins.Limits, "MAX_READ_FILE_SIZE", 3), self.assertRaises(standins.OutputLimitExceededError):
            await self.sample.read_file("a b/c/'d")

    async def test_files_that_cannot_be_used(self):
        await self.sh("echo >shut; chmod 0 shut")
        for kind, name in ((FileNotFoundError, "none"), (IsADirectoryError, "/etc"), (PermissionError, "shut"), (NotADirectoryError, "/etc/passwd/x")):
            with self.assertRaisesRegex(kind, name):
                await self.sample.read_file(name)
        for kind, name in ((IsADirectoryError, "/etc"), (PermissionError, "shut"), (PermissionError, "/etc/new/file")):
            with self.assertRaisesRegex(kind, name):
                await self.sample.write_file(name, "x")

    async def test_a_sandbox_that_ended_is_unavailable(self):
        await self.sample.box.close()
        for attempt in (self.sh("true"), self.sample.read_file("x"), self.sample.write_file("x", "")):
            with self.assertRaises(standins.SandboxUnavailableError):
                await attempt

    async def test_the_connection_is_a_command(self):
        shown = await self.sample.connection(user="root")
        self.assertIn(f"exec -it -u 0:0 -w /workspace {self.sample.box.name} -- sh", shown.command)

    async def test_samples_are_apart(self):
        other = await self.provider.sample_init("task", self.config, {})
        await self.sample.write_file("/tmp/mine", "x")
        self.assertFalse((await other["default"].exec(["ls", "/tmp/mine"])).success)
        await self.provider.sample_cleanup("task", self.config, other, True)
        self.assertTrue((await self.sample.exec(["ls", "/tmp/mine"])).success)

    async def test_a_mistake_in_the_settings_starts_nothing(self):
        with self.assertRaisesRegex(ValueError, "no setting 'memroy'"):
            await self.provider.task_init("task", {"memroy": "1G"})
        with self.assertRaisesRegex(Exception, "rootfs"):
            await self.provider.sample_init("task", {**SETTINGS, "rootfs": "/none"}, {})

    async def test_a_cancelled_start_leaves_nothing(self):
        with mock.patch("clove.sandbox.Sandbox._running", side_effect=asyncio.CancelledError), mock.patch("clove.inspect_ai.Sandbox") as made:
            made.side_effect = lambda *words: boxes.append(Box(*words)) or boxes[-1]
            boxes = []
            with self.assertRaises(asyncio.CancelledError):
                await self.provider.sample_init("task", self.config, {})
        await boxes[0].close()
        self.assertEqual(await runs(boxes[0]), [self.sample.box.name])


Box = clove.inspect_ai.Sandbox


async def runs(box):
    from clove.session import call

    return [run["spec"]["name"] for run in (await call(box.socket, "run.list", all=True))["runs"]]
