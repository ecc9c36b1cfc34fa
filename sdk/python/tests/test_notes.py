import asyncio
import itertools
import threading
import unittest

import clove
from tests.gate import Gate


class Notes(unittest.TestCase):
    def setUp(self):
        self.gate = Gate()
        self.gate.__enter__()
        self.addCleanup(self.gate.__exit__)
        self.agent = clove.connect(self.gate.path, patience=60)
        self.addCleanup(self.agent.close)

    def warn(self):
        self.gate.notify("budget.warning", {"budget": self.gate.budget()})

    def test_those_that_waited_come_first(self):
        self.warn()
        self.gate.notify("of.a.newer.clove", {"x": 1})
        notes = list(itertools.islice(self.agent.listen(), 2))
        self.assertEqual([n.method for n in notes], ["budget.warning", "of.a.newer.clove"])
        self.assertEqual(notes[0].params.budget.dimension, "tokens")
        self.assertEqual(notes[1].params, {"x": 1})

    def test_a_lost_connection_is_replaced(self):
        self.warn()
        notes = iter(self.agent.listen())
        next(notes)
        self.gate.drop()
        threading.Timer(0.1, self.warn).start()
        self.assertEqual(next(notes).method, "budget.warning")

    def test_closing_ends_an_iteration_in_another_thread(self):
        for close in ("agent", "notifications"):
            with self.subTest(close=close):
                self.warn()
                notifications = self.agent.listen()
                first, seen = threading.Event(), []

                def listen():
                    for note in notifications:
                        seen.append(note)
                        first.set()

                thread = threading.Thread(target=listen)
                thread.start()
                self.assertTrue(first.wait(60))
                (notifications if close == "notifications" else self.agent).close()
                thread.join(60)
                self.assertFalse(thread.is_alive())
                self.assertEqual(len(seen), 1)

    def test_a_timeout_ends_an_iteration(self):
        self.assertEqual(list(self.agent.listen(timeout=0.1)), [])

    def test_async(self):
        async def listen():
            seen = []
            async for note in self.agent.listen():
                seen.append(note.method)
                if len(seen) == 1:
                    self.gate.drop()
                    asyncio.get_running_loop().call_later(0.1, self.warn)
                if len(seen) == 2:
                    return seen

        self.warn()
        self.assertEqual(asyncio.run(listen()), ["budget.warning"] * 2)

    def test_async_with_a_timeout(self):
        async def listen():
            return [note async for note in self.agent.listen(timeout=0.1)]

        self.assertEqual(asyncio.run(listen()), [])

    def test_async_other_coroutines_go_on(self):
        async def listen():
            notifications = self.agent.listen()
            task = asyncio.ensure_future(self.first(notifications))
            await asyncio.sleep(0)
            answer = await asyncio.to_thread(self.agent.grant.check, "tool:fetch")
            self.assertTrue(answer.allowed)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(listen())

    @staticmethod
    async def first(notifications):
        async for note in notifications:
            return note
