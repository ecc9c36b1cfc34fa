import os
import tempfile
import unittest
import unittest.mock

from clove.errors import CloveError, UnreachableError
from clove.options import read
from clove.sandbox import Output, OutputError, Result, Sandbox, _file_error
from clove.session import call, daemon_path
from tests import standins

standins.inspect_ai()
standins.harbor()


class Outputs(unittest.TestCase):
    def test_the_limit_counts_for_each_stream(self):
        output = Output(4, tail=False)
        output.add("stdout", b"1234")
        output.add("stderr", b"1234")
        with self.assertRaises(OutputError) as caught:
            output.add("stdout", b"5")
        self.assertEqual(caught.exception.data, b"1234")

    def test_the_tail_says_what_is_left_out(self):
        output = Output(4, tail=True)
        for piece in (b"12", b"34", b"56", b"789", b"0"):
            output.add("stdout", piece)
        self.assertEqual(output.of("stdout"), b"[clove: 6 bytes before this are left out]\n7890")
        self.assertEqual(output.of("stderr"), b"")


class Errors(unittest.TestCase):
    def test_words_of_a_program_become_pythons_classes(self):
        for said, kind in (
            (b"cat: x: No such file or directory\n", FileNotFoundError),
            (b"sh: 1: cannot create /x: Permission denied", PermissionError),
            (b"note\nsh: can't create x: Is a directory", IsADirectoryError),
            (b"cat: 'a: Permission denied': Not a directory", NotADirectoryError),
        ):
            self.assertIsInstance(_file_error("x", Result(1, b"", said)), kind)
        self.assertEqual(_file_error("x", Result(1, b"", b"odd")).strerror, "odd")


class Without(unittest.IsolatedAsyncioTestCase):
    async def test_without_cloved_there_is_one_clear_error(self):
        with tempfile.TemporaryDirectory() as folder:
            socket = os.path.join(folder, "none")
            with self.assertRaisesRegex(UnreachableError, f"cannot reach cloved at {socket}.*start cloved"):
                await call(socket, "daemon.info")

    async def test_without_the_program_there_is_one_clear_error(self):
        with tempfile.TemporaryDirectory() as folder:
            box = Sandbox(read({"command": folder + "/clove", "socket": folder + "/none"}))
            with self.assertRaisesRegex(CloveError, "cannot execute .*/clove: No such file"):
                await box.start()

    def test_the_socket_is_that_of_the_command(self):
        for variables, path in (({}, "/run/clove/clove.sock"), ({"CLOVE_RUN_DIR": "/r"}, "/r/clove.sock"), ({"CLOVE_RUN_DIR": "/r", "CLOVE_SOCKET": "/s"}, "/s")):
            with unittest.mock.patch.dict(os.environ, variables, clear=True):
                self.assertEqual(daemon_path(), path)


class Adapters(unittest.TestCase):
    def test_they_are_what_the_frameworks_look_for(self):
        import clove.harbor
        import clove.inspect_ai

        provider = standins.REGISTERED["clove"]
        self.assertIs(provider, clove.inspect_ai.CloveSandboxEnvironment)
        self.assertTrue(issubclass(provider, standins.SandboxEnvironment) and not provider.__abstractmethods__)
        self.assertEqual(provider.config_files(), ["clove.json"])
        environment = clove.harbor.CloveEnvironment
        self.assertTrue(issubclass(environment, standins.BaseEnvironment) and not environment.__abstractmethods__)
        self.assertEqual((environment.type(), environment.resource_capabilities().memory_limit), ("clove", True))
