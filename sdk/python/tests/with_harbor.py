"""The Harbor environment against a cloved: python3 -m unittest tests.with_harbor.

CLOVE_COMMAND is the program clove.
"""

import os
import tempfile
import unittest
from pathlib import Path

from tests import standins

standins.harbor()

from clove.harbor import CloveEnvironment  # noqa: E402


class Harbor(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        (self.top / "Dockerfile").write_text("FROM debian\nWORKDIR /app\nWORKDIR inner\n")

    def make(self, config=None, policy=None, **settings):
        own = {"rootfs": "host", "command": os.environ["CLOVE_COMMAND"], **settings}
        config = config or standins.EnvironmentConfig(cpus=1, memory_mb=256, storage_mb=300)
        policy = policy or standins.NetworkPolicy(standins.NetworkMode.NO_NETWORK)
        return CloveEnvironment(
            self.top, "task", "task__1", None, config, persistent_env={"P": "1"}, mounts=[{"target": "/logs/agent"}], network_policy=policy, **own
        )

    async def started(self, **settings):
        trial = self.make(**settings)
        self.addAsyncCleanup(trial.stop, True)
        await trial.start(False)
        return trial

    async def test_commands(self):
        trial = await self.started()
        done = await trial.exec('pwd; id -un; echo "$P $X"; stat -c %a /logs/agent', env={"X": "x y"})
        self.assertEqual((done.stdout, done.return_code), ("/app/inner\nroot\n1 x y\n777\n", 0))
        trial.default_user = "agent"
        self.assertEqual((await trial.exec("id -un; pwd; exit 7", cwd="/tmp")).stdout, "agent\n/tmp\n")
        self.assertEqual((await trial.exec("id -u", user=33)).stdout, "33\n")
        self.assertEqual((await trial.exec("id -u", user="nobodys")).return_code, 126)
        with self.assertRaisesRegex(RuntimeError, "did not end within 1 s"):
            await trial.exec("sleep 1000", timeout_sec=1)
        long = await trial.exec("head -c 30000000 /dev/zero; echo end")
        self.assertTrue(long.stdout.startswith("[clove: ") and long.stdout.endswith("end\n"))

    async def test_limits_and_network_are_the_tasks(self):
        policy = standins.NetworkPolicy(standins.NetworkMode.ALLOWLIST, ["example.com"])
        o = self.make(policy=policy, memory="9G", deadline="1h")._options()
        self.assertEqual(
            o.flags(),
            ["--memory=256M", "--cpus=1", "--disk=300M", "--network=allowlist", "--allow=example.com", "--timeout=1h"],
        )

    async def test_files_in(self):
        trial = await self.started()
        (self.top / "in/sub").mkdir(parents=True)
        (self.top / "in/run.sh").write_text("#!/bin/sh\necho ran\n")
        (self.top / "in/run.sh").chmod(0o755)
        (self.top / "in/sub/b").write_bytes(b"\xc3\x28")
        await trial.upload_dir(self.top / "in", "/tests/deep")
        await trial.upload_file(self.top / "in/run.sh", "/solution/new/solve.sh")
        done = await trial.exec("/tests/deep/run.sh; /solution/new/solve.sh; stat -c %U:%a:%s /tests/deep/sub/b")
        self.assertEqual(done.stdout, "ran\nran\nroot:644:2\n")
        with self.assertRaises(FileNotFoundError):
            await trial.upload_file(self.top / "none", "/x")

    async def test_files_out_stay_in_their_folder(self):
        trial = await self.started()
        await trial.exec("mkdir -p /o/s; cd /o; printf '\\303(' >f; chmod 6755 f; echo 1 >s/g; ln -s f in; ln -s /etc/passwd out; ln -s ../.. up; mkfifo p")
        outside, target = self.top / "outside", self.top / "target"
        outside.mkdir()
        with self.assertLogs("harbor", "WARNING") as said:
            await trial.download_dir("/o", target)
        for name in ("out", "up", "p"):
            self.assertIn(f"o/{name}", said.output[0])
        self.assertEqual(sorted(p.name for p in target.iterdir()), ["f", "in", "s"])
        self.assertEqual((target / "f").read_bytes(), b"\xc3(")
        self.assertEqual((target / "f").stat().st_mode & 0o7777, 0o755)
        # A link where a folder comes next is replaced. The control: it leads out.
        os.symlink(outside, target / "t")
        (target / "t/before").write_text("")
        self.assertEqual(os.listdir(outside), ["before"])
        await trial.exec("cd /o; rm -r out up p; mkdir t; echo x >t/evil")
        await trial.download_dir("/o", target)
        self.assertEqual((os.listdir(outside), (target / "t/evil").read_text()), (["before"], "x\n"))
        await trial.download_file("/o/in", self.top / "new/one")
        self.assertEqual((self.top / "new/one").read_bytes(), b"\xc3(")
        for kind, name in ((FileNotFoundError, "/o/none"), (IsADirectoryError, "/o")):
            with self.assertRaises(kind):
                await trial.download_file(name, self.top / "x")

    async def test_mistakes_start_nothing(self):
        for kind, said, settings in (
            (ValueError, "no setting 'memroy'", {"memroy": "1G"}),
            (ValueError, "rootfs is missing", {"rootfs": ""}),
            (FileNotFoundError, "no folder /none/task", {"rootfs": "/none/{environment}"}),
            (ValueError, "network policy decides", {"network": "host"}),
        ):
            with self.assertRaisesRegex(kind, said):
                self.make(**settings)
        (self.top / "docker-compose.yaml").write_text("")
        with self.assertRaisesRegex(ValueError, "compose"):
            self.make()

    async def test_a_trial_that_is_not_started_says_so(self):
        with self.assertRaisesRegex(RuntimeError, "not started"):
            await self.make().exec("true")
