import asyncio
import base64
import io
import json
import os
import tarfile
import tempfile
import unittest
from pathlib import Path

import clove
from clove import cloved_api
from clove.cloved import Cloved
from clove.commands import OutputError


class Daemon:
    """Answers as cloved does. One run, web, lives."""

    def __init__(self):
        self.lines = []
        self.open = 0

    async def __aenter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "clove.sock")
        self.server = await asyncio.start_unix_server(self.serve, self.path)
        return Cloved(self.path)

    async def __aexit__(self, *problem):
        self.server.close()
        self.folder.cleanup()

    async def serve(self, reader, writer):
        self.open += 1
        try:
            async for line in reader:
                message = json.loads(line)
                self.lines.append((message["method"], message["params"]))
                for answer in self.answers(message.get("id", 1), **message["params"], _=message["method"]):
                    writer.write(json.dumps({"jsonrpc": "2.0", **answer}).encode() + b"\n")
                await writer.drain()
        except ConnectionError:
            pass
        self.open -= 1
        writer.close()

    def answers(self, number, _, **params):
        def output(stream, data):
            return {"method": "session.output", "params": {"stream": stream, "data": base64.b64encode(data).decode()}}

        def note(method, **about):
            return {"method": method, "params": {"id": number, **about}}

        def answer(**result):
            return {"id": number, "result": result}

        def refuse(code, word, message, **data):
            return {"id": number, "error": {"code": code, "message": message, "data": {"word": word, **data}}}

        if _ == "run.start":
            return [answer(run={"spec": params["spec"], "state": "running"})]
        if _ == "run.list":
            return [answer(runs=[{"spec": {"name": "b"}}])] if "after" in params else [answer(runs=[{"spec": {"name": "a"}}], next="x")]
        if _ == "run.wait":
            return [] if params["run"] == "web" else [refuse(-32001, "not-found", "there is no such run")]
        if _ == "run.prune":
            return [answer(removed=None)]
        if _ == "run.exec":
            if params["exec"]["command"] == ["cat"]:
                return []  # it ends with its input
            return [output("stdout", b"out"), output("stderr", b"err"), note("session.taken"), answer(exit_code=3)]
        if _ == "session.input":
            return [{"method": "session.output", "params": {"stream": "stdout", **params}}]
        if _ == "session.close_input":
            return [answer(exit_code=0)]
        if _ == "run.copy_out":
            return [output("tar", archive()), answer()]
        if _ == "run.logs":
            return [note("run.log", lines=[{"text": "one"}, {"bytes": "/w==", "time": "2026-11-23T04:52:37Z"}]), answer()]
        if _ == "event.follow":
            return [note("event.happened", event={"sequence": 7, "what": "started"})] + ([] if "follow" in params else [answer(last=7)])
        return []


def archive():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as made:
        member = tarfile.TarInfo("x")
        member.size = 2
        made.addfile(member, io.BytesIO(b"hi"))
    return file.getvalue()


class Cloveds(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.daemon = Daemon()
        self.cloved = await self.daemon.__aenter__()

    async def asyncTearDown(self):
        await self.daemon.__aexit__()

    async def gone(self):
        while self.daemon.open:
            await asyncio.sleep(0.005)

    async def test_a_start_has_the_standard_level_below_what_is_named(self):
        run = (await self.cloved.start(["/bin/sleep", "1"], labels={"a": "b"})).run
        self.assertRegex(run.spec.name, "^sleep-[0-9a-f]{8}$")
        self.assertEqual((run.spec.command, run.spec.labels, run.state), (["/bin/sleep", "1"], {"a": "b"}, "running"))
        self.assertEqual(run.spec.limits, cloved_api.standard().limits)
        self.assertIsInstance(run.spec.limits.rlimits[0], cloved_api.Rlimit)

    async def test_all_parts_of_a_list(self):
        self.assertEqual([run.spec.name async for run in self.cloved.run.list_all(all=True)], ["a", "b"])
        self.assertEqual((await self.cloved.run.prune()).removed, [])

    async def test_an_error_has_the_class_of_its_word(self):
        with self.assertRaises(clove.NotFoundError):
            await self.cloved.run.wait("none")

    async def test_a_command(self):
        done = await self.cloved.exec("web", ["false"], env={"A": "b"}, user=cloved_api.User("root"))
        self.assertEqual((done.returncode, done.stdout, done.stderr, done.failure), (3, b"out", b"err", ""))
        self.assertEqual(self.daemon.lines[0][1]["exec"], {"command": ["false"], "env": ["A=b"], "user": {"name": "root"}})
        with self.assertRaises(OutputError):
            await self.cloved.exec("web", ["false"], limit=2)

    async def test_a_command_reads_a_long_input_in_pieces(self):
        data = b"x" * 100_000
        self.assertEqual((await self.cloved.exec("web", ["cat"], input=data)).stdout, data)
        self.assertEqual([method for method, _ in self.daemon.lines].count("session.input"), 4)

    async def test_a_session_in_both_directions(self):
        async with self.cloved.run.exec("web", {"command": ["cat"]}, stdin=True) as session:
            await session.send(b"hi")
            piece = await session.__anext__()
            self.assertEqual((piece.stream, piece.data), ("stdout", b"hi"))
            await session.close_input()
            self.assertEqual((await session.end()).exit_code, 0)

    async def test_copies(self):
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder, "copied")
            self.assertEqual(await self.cloved.copy_out("web", "/x", target), [])
            self.assertEqual(target.read_bytes(), b"hi")

    async def test_logs_and_events(self):
        lines = [line async for line in self.cloved.logs("web", tail=2)]
        self.assertEqual([(line.text, line.bytes) for line in lines], [("one", b""), ("", b"\xff")])
        events = self.cloved.event.follow(after=0)
        self.assertEqual([note.event.sequence async for note in events], [7])
        self.assertEqual(events.result.last, 7)
        async with self.cloved.event.follow(follow=True) as following:
            self.assertEqual((await following.__anext__()).event.what, "started")
        await self.gone()

    async def test_a_waiting_call_ends_with_its_coroutine_and_with_its_connection(self):
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(self.cloved.run.wait("web"), 0.05)
        await self.gone()

    async def test_every_value_goes_there_and_back(self):
        spec = cloved_api.Spec(command=["a"], files=cloved_api.Files(read_=["/etc"]), seccomp=cloved_api.Seccomp("p", b"\x00"), shadow=cloved_api.Shadow())
        self.assertEqual((await self.cloved.start(["a"], name="n", spec=spec)).run.spec.files.read_, ["/etc"])
        sent = self.daemon.lines[0][1]["spec"]
        self.assertEqual(sent, {"name": "n", "command": ["a"], "files": {"read": ["/etc"]}, "seccomp": {"profile": "p", "document": "AA=="}, "shadow": {}})
