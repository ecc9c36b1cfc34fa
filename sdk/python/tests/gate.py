"""A socket server that answers as clove-gate and what is behind it do.

It has one dimension, tokens, of 1000, and one grant, tool:fetch. A test says what goes
wrong: plans are taken one for each call, in order.
"""

import json
import os
import shutil
import socket
import tempfile
import threading

GRANTED = 1000


def failure(code, word, message, **data):
    return {"code": code, "message": message, "data": {"word": word, **data}}


BUSY = failure(-32005, "busy", "cloved is away", hint="try again in a moment")


class Refusal(Exception):
    """A method's error."""


class Gate:
    def __init__(self):
        self._folder = tempfile.mkdtemp()
        self.path = os.path.join(self._folder, "agent.sock")
        self.plans = []  # "busy", "lose" (the call is not done), "lose-after" (it is), "silent"
        self.calls = []  # method and parameters, as they came
        self.used = 0
        self.reservations = {}
        self._answers = {}  # by key
        self._lock = threading.Lock()  # guards everything above and below
        self._waiting = []
        self._connections = set()
        self._listening = set()
        self._stopped = False
        self.accepted = 0

    def __enter__(self):
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen(64)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def __exit__(self, *_):
        if not self._stopped:
            self.stop()
        shutil.rmtree(self._folder)

    def stop(self):
        """Ends the listener and every connection; the path remains."""
        with self._lock:
            self._stopped = True
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept, as close does not
        self._listener.close()
        self.drop()

    def drop(self):
        """Ends every connection."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                if self._stopped:
                    connection.close()
                    return
                self.accepted += 1
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            for line in connection.makefile("rb"):
                self._line(connection, json.loads(line))
        except (OSError, ValueError):
            pass
        with self._lock:
            self._connections.discard(connection)
            self._listening.discard(connection)
        connection.close()

    def _line(self, connection, request):
        with self._lock:
            self.calls.append((request["method"], request["params"]))
            plan = self.plans.pop(0) if self.plans else ""
            answer = {"jsonrpc": "2.0", "id": request["id"]}
            if plan == "lose":
                raise OSError
            if plan == "silent":
                return
            if plan == "busy":
                answer["error"] = BUSY
            elif plan == "full":
                answer.update(id=None, error=BUSY)
            else:
                try:
                    answer["result"] = self._once(request["method"], request["params"])
                except Refusal as refusal:
                    answer["error"] = refusal.args[0]
            if plan == "lose-after":
                raise OSError
            self._send(connection, answer)
            if plan == "full":
                raise OSError
            if request["method"] == "agent.listen":
                self._listening.add(connection)
                for note in self._waiting:
                    self._send(connection, note)
                self._waiting = []

    @staticmethod
    def _send(connection, message):
        connection.sendall(json.dumps(message).encode() + b"\n")

    def _once(self, method, params):
        key = params.pop("key", None)
        if key in self._answers:
            return self._answers[key]
        serve = getattr(self, "_" + method.replace(".", "_"), None)
        if serve is None:
            raise Refusal(failure(-32601, "method", f"there is no method {method!r} for agents", hint="agent.get is one"))
        result = serve(params)
        if key:
            self._answers[key] = result
        return result

    def notify(self, method, params):
        """Sends a notification to the listener, or keeps it."""
        note = {"jsonrpc": "2.0", "method": method, "params": params}
        with self._lock:
            for connection in list(self._listening):
                try:
                    self._send(connection, note)
                except OSError:
                    self._listening.discard(connection)  # its thread has not seen the end yet
            if not self._listening:
                self._waiting.append(note)

    def budget(self):
        return {
            "account": "0/run:r1", "dimension": "tokens", "granted": GRANTED, "warn_at": 800, "at_end": "end",
            "reserved": sum(self.reservations.values()), "used": self.used, "peak": self.used,
            "since": "2026-11-23T04:52:37.123456789Z", "spent": self.used >= GRANTED, "of_a_newer_clove": 1,
        }

    @staticmethod
    def grant(number):
        return {"id": f"g{number}", "grant": "tool:fetch", "holder": "r1", "giver": "uid:0", "created": "2026-11-23T04:52:37Z"}

    def _agent_listen(self, params):
        return {}

    def _agent_get(self, params):
        return {"id": "r1", "name": "worker", "owner": 0, "namespace": "", "state": "running",
                "grants": [self.grant(1)], "budgets": [self.budget()], "refused": 0}

    def _grant_check(self, params):
        if params["what"] == "tool:fetch":
            return {"allowed": True, "grant": "g1", "reason": "grant g1 allows it"}
        return {"allowed": False, "reason": "no grant of this kind"}

    def _grant_list(self, params):
        begin = int(params.get("after", "g0")[1:])
        result = {"grants": [self.grant(n) for n in range(begin + 1, begin + 3)]}
        return {**result, "next": f"g{begin + 2}"} if begin < 4 else result

    def _grant_derive(self, params):
        raise Refusal(failure(-32004, "denied", "it would allow more", step="derive", rule=params["from"], hint="ask for less"))

    def _mail_send(self, params):
        return {"id": "m1", "trace": "t"}

    def _mail_answer(self, params):
        return {"message": {"id": "a1", "sender": "critic", "answers": params["id"], "body": {"n": 42}}}

    def _mail_ack(self, params):
        return {}

    def _budget_get(self, params):
        return {"budgets": [self.budget()]}

    def _budget_charge(self, params):
        self.used += params["amounts"]["tokens"]
        return {"budgets": [self.budget()]}

    def _budget_reserve(self, params):
        amount = params["amounts"]["tokens"]
        if self.used + sum(self.reservations.values()) + amount > GRANTED:
            raise Refusal(failure(-32011, "budget", "200 tokens are left", hint="clove budget raise gives more"))
        name = f"s{len(self.reservations) + 1}"
        self.reservations[name] = amount
        return {"reservation": name}

    def _budget_settle(self, params):
        del self.reservations[params["reservation"]]
        self.used += params["amounts"]["tokens"]
        return {"budgets": [self.budget()]}

    def _budget_release(self, params):
        del self.reservations[params["reservation"]]
        return {"budgets": [self.budget()]}
