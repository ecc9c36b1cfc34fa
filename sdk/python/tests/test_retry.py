import time
import unittest

import clove
from tests.gate import Gate


class Retry(unittest.TestCase):
    def agent(self, gate, **options):
        agent = clove.connect(gate.path, **options)
        self.addCleanup(agent.close)
        return agent

    def test_nothing_is_counted_twice(self):
        for plans in (["busy", "busy"], ["lose"], ["lose-after"], ["full"], ["lose-after", "busy", "lose"]):
            with self.subTest(plans=plans), Gate() as gate:
                agent = self.agent(gate, patience=60)
                gate.plans = list(plans)
                agent.budget.charge({"tokens": 5})
                self.assertEqual(gate.used, 5)
                self.assertEqual(len(gate.calls), len(plans) + 1)

    def test_without_a_key_the_repetition_would_count(self):
        """The control: the server of these tests does count twice."""
        with Gate() as gate:
            for _ in range(2):
                gate._once("budget.charge", {"amounts": {"tokens": 5}})
            self.assertEqual(gate.used, 10)

    def test_an_idle_connection_that_was_closed(self):
        with Gate() as gate:
            agent = self.agent(gate)
            agent.get()
            gate.drop()
            self.assertEqual(agent.get().name, "worker")

    def test_the_time_is_bounded(self):
        for plan, kind in (("busy", clove.BusyError), ("lose", clove.UnreachableError)):
            with self.subTest(plan=plan), Gate() as gate:
                agent = self.agent(gate, patience=1)
                gate.plans = [plan] * 10000
                begin = time.monotonic()
                with self.assertRaises(kind):
                    agent.budget.charge({"tokens": 5})
                took = time.monotonic() - begin
                self.assertLess(took, 60)
                # On a machine that is busy, the first call alone may take all of the time.
                self.assertTrue(len(gate.calls) > 1 or took > 1)

    def test_a_listener_that_is_gone(self):
        with Gate() as gate:
            agent = self.agent(gate, patience=0.1)
            gate.stop()
            with self.assertRaises(clove.UnreachableError):
                agent.get()

    def test_what_is_not_known_to_be_safe_is_not_repeated(self):
        with Gate() as gate:
            agent = self.agent(gate)
            gate.plans = ["lose", "lose"]
            with self.assertRaises(clove.UnreachableError):
                agent.call("none.such", to="b")
            self.assertEqual(len(gate.calls), 1)

    def test_an_answer_that_does_not_come(self):
        with Gate() as gate:
            agent = self.agent(gate, timeout=0.1)
            gate.plans = ["silent"]
            with self.assertRaises(clove.UnansweredError) as caught:
                agent.budget.charge({"tokens": 5})
            self.agent(gate).budget.charge({"tokens": 5}, key=caught.exception.key)
            self.assertEqual(gate.used, 5)
