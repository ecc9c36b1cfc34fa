import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import unittest

from clove import api, cli
from tests.gate import Gate


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.gate = Gate()
        self.gate.__enter__()
        self.addCleanup(self.gate.__exit__)
        os.environ["CLOVE_AGENT_SOCKET"] = self.gate.path
        self.addCleanup(os.environ.pop, "CLOVE_AGENT_SOCKET")

    def clove(self, line, status=0):
        """What a command line prints on stdout and stderr."""
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            self.assertEqual(cli.main(line.split()), status, errors.getvalue())
        return out.getvalue(), errors.getvalue()

    def test_check(self):
        for line in ("grant check tool:fetch", "grant.check tool:fetch", "grant check what=tool:fetch"):
            self.assertEqual(self.clove(line)[0], "allowed: yes\ngrant: g1\nreason: grant g1 allows it\n")
        self.assertIn("allowed: no", self.clove("grant check tool:write", status=1)[0])

    def test_charge(self):
        out, _ = self.clove("budget charge tokens=5 --json")
        self.assertEqual(json.loads(out)["budgets"][0]["used"], 5)
        self.clove('budget charge amounts={"tokens":6} key=a')
        self.assertEqual(self.gate.calls[-1], ("budget.charge", {"amounts": {"tokens": 6}}))
        out, _ = self.clove("budget get")
        self.assertRegex(out, r"(?m)^  account +dimension +granted .*\n  0/run:r1 +tokens +1000 ")

    def test_settle(self):
        out, _ = self.clove("budget reserve tokens=10 --json")
        self.clove(f"budget settle {json.loads(out)['reservation']} tokens=4")
        self.assertEqual(self.gate.used, 4)

    def test_refusals(self):
        out, errors = self.clove("grant derive g1 tool:write uses=2 --json", status=1)
        self.assertEqual(errors, "clove: it would allow more\n  ask for less\n")
        self.assertEqual(json.loads(out)["error"]["word"], "denied")
        self.assertIn("--agent-socket", self.clove("--socket /nonexistent agent get", status=1)[1])

    def test_wrong_usage(self):
        for line, problem in {
            "grant": "there is no method 'grant'",
            "grant chek tool:fetch": "there is no method 'grant chek'",
            "grant check": "grant.check needs what",
            "grant check a b": "has no place for 'b'",
            "grant check tool:fetch --jsn": "there is no option --jsn",
            "budget charge": "budget.charge needs amounts",
            "budget charge tokens=many": "tokens: 'many' is no whole number",
            "budget charge amounts={": "is no JSON",
            "agent get --socket": "--socket needs a value",
        }.items():
            with self.subTest(line=line):
                self.assertIn(problem, self.clove(line, status=2)[1])
        self.assertEqual(self.gate.calls, [])
        self.clove("", status=2)

    def test_help_has_every_method(self):
        out, _ = self.clove("--help")
        for name, method in api.METHODS.items():
            self.assertIn(name.replace(".", " "), out)
            self.assertIn(method.doc, self.clove(f"{name} --help")[0])
        self.assertIn("usage: python3 -m clove budget settle RESERVATION NAME=NUMBER... [key=...]", self.clove("budget settle --help")[0])

    def test_listen(self):
        self.gate.notify("budget.warning", {"budget": self.gate.budget()})
        command = [sys.executable, "-m", "clove", "agent", "listen"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as listener:
            note = json.loads(listener.stdout.readline())
            listener.send_signal(signal.SIGINT)
            self.assertEqual(listener.communicate(), ("", ""))
        self.assertEqual((note["method"], note["params"]["budget"]["granted"]), ("budget.warning", 1000))
        self.assertEqual(listener.returncode, 130)
        self.assertEqual(self.clove("agent listen timeout=0")[0], "")

    def test_text_of_others_cannot_drive_a_terminal(self):
        self.gate._grant_check = lambda params: {"allowed": True, "reason": "\x1b[2Jx\nallowed: no"}
        self.assertEqual(self.clove("grant check tool:fetch")[0], "allowed: yes\nreason: ?[2Jx?allowed: no\n")

    def test_as_a_program(self):
        done = subprocess.run([sys.executable, "-m", "clove", "agent", "get"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("name: worker", done.stdout)
        reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
        reader.wait()
        done = subprocess.run([sys.executable, "-m", "clove", "agent", "get"], stdout=reader.stdin, stderr=subprocess.PIPE, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        reader.stdin.close()
