import datetime
import os
import threading
import unittest

import clove
from clove import api
from tests.gate import Gate


class Calls(unittest.TestCase):
    def setUp(self):
        self.gate = self.enterContext(Gate())
        self.agent = self.enterContext(clove.connect(self.gate.path, patience=60))

    def enterContext(self, context):  # unittest has it since 3.11
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def test_answers_are_typed(self):
        self.assertTrue(self.agent.grant.check("tool:fetch").allowed)
        no = self.agent.grant.check("tool:write")
        self.assertEqual((no.allowed, no.grant, no.reason), (False, "", "no grant of this kind"))
        me = self.agent.get()
        self.assertEqual((me.name, me.grants[0].id, me.budgets[0].granted), ("worker", "g1", 1000))
        since = datetime.datetime(2026, 11, 23, 4, 52, 37, 123456, datetime.timezone.utc)
        self.assertEqual(me.budgets[0].since, since)
        self.assertIsNone(me.grants[0].expires)

    def test_a_reservation_is_settled(self):
        reservation = self.agent.budget.reserve({"tokens": 300}).reservation
        (budget,) = self.agent.budget.settle(reservation, {"tokens": 120}).budgets
        self.assertEqual((budget.used, budget.reserved), (120, 0))

    def test_a_request_sends_waits_and_acknowledges(self):
        answer = self.agent.request("critic", {"n": 21}, within=1.5, priority=3)
        self.assertEqual((answer.sender, answer.body), ("critic", {"n": 42}))
        sent = {"to": "critic", "body": {"n": 21}, "priority": 3, "expires_ms": 1500, "asks": True}
        waited = {"id": "m1", "within_ms": 1500}
        self.assertEqual(self.gate.calls, [("mail.send", sent), ("mail.answer", waited), ("mail.ack", {"ids": ["a1"]})])

    def test_all_parts_of_a_list(self):
        self.assertEqual([g.id for g in self.agent.grants()], ["g1", "g2", "g3", "g4", "g5", "g6"])

    def test_an_error_has_the_class_of_its_word(self):
        with self.assertRaises(clove.DeniedError) as caught:
            self.agent.grant.derive("g1", "tool:write", uses=3)
        e = caught.exception
        self.assertEqual((e.code, e.word, e.step, e.rule, e.hint), (-32004, "denied", "derive", "g1", "ask for less"))
        self.assertEqual((e.method, len(e.key)), ("grant.derive", 32))
        self.assertEqual(str(e), "it would allow more (ask for less)")
        with self.assertRaises(clove.BudgetError):
            self.agent.budget.reserve({"tokens": 1001})
        self.assertEqual(len(self.gate.calls), 2, "a refusal is no reason to try again")

    def test_every_error_word_has_a_class(self):
        self.assertEqual(len(set(api.ERRORS.values())), len(api.ERRORS))
        for kind in api.ERRORS.values():
            self.assertTrue(issubclass(kind, clove.CloveError))

    def test_parameters_as_they_are_sent(self):
        expires = datetime.datetime(2027, 1, 1, tzinfo=datetime.timezone.utc)
        with self.assertRaises(clove.DeniedError):
            self.agent.grant.derive("g1", "tool:fetch", expires=expires, key="k")
        want = {"from": "g1", "grant": "tool:fetch", "expires": "2027-01-01T00:00:00+00:00"}
        self.assertEqual(self.gate.calls, [("grant.derive", want)])
        with self.assertRaises(ValueError):
            self.agent.grant.derive("g1", "tool:fetch", expires=datetime.datetime(2027, 1, 1))

    def test_a_method_that_is_not_known_here(self):
        with self.assertRaises(clove.MethodError):
            self.agent.call("none.such", to="b")

    def test_a_long_call_is_not_sent(self):
        with self.assertRaises(clove.TooLargeError):
            self.agent.grant.check("tool:" + "x" * 70000)
        self.assertEqual(self.gate.calls, [])

    def test_threads_share_an_agent(self):
        def charge():
            for _ in range(20):
                self.agent.budget.charge({"tokens": 1})

        threads = [threading.Thread(target=charge) for _ in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(self.gate.used, 320)
        self.assertLessEqual(self.gate.accepted, 8)

    def test_a_child_does_not_read_its_parents_answers(self):
        self.agent.budget.get()
        child = os.fork()
        if child == 0:
            ok = self.agent.budget.charge({"tokens": 7}).budgets[0].used == 7
            os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        self.assertEqual(status, 0)
        self.assertEqual(self.agent.budget.get().budgets[0].used, 7)
        self.assertEqual(self.gate.accepted, 2)

    def test_a_closed_agent(self):
        self.agent.close()
        with self.assertRaises(ValueError):
            self.agent.get()


class NoSocket(unittest.TestCase):
    def test_the_error_says_what_to_do(self):
        with self.assertRaises(clove.UnreachableError) as caught:
            clove.connect("/nonexistent/agent.sock")
        self.assertIn("--agent-socket", caught.exception.hint)
        self.assertIsInstance(caught.exception, ConnectionError)
