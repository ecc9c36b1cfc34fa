"""Sends messages in a SQLite file, each durably, as Python's own module does it."""

import json
import sqlite3
import sys
import threading
import time

folder, body, entry = sys.argv[1:]
db = sqlite3.connect(folder + "/mail.db", isolation_level=None, check_same_thread=False)
assert db.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE accounts (key TEXT PRIMARY KEY, granted INTEGER, used INTEGER) WITHOUT ROWID")
db.execute("CREATE TABLE boxes (name TEXT PRIMARY KEY, messages INTEGER, last INTEGER) WITHOUT ROWID")
db.execute("CREATE TABLE messages (box TEXT, number INTEGER, body TEXT, PRIMARY KEY (box, number)) WITHOUT ROWID")
db.execute("CREATE TABLE audit (number INTEGER PRIMARY KEY, entry TEXT)")
turn = threading.Lock()  # fairer than SQLite's own wait for a writer, which sleeps


def put(box):
    db.execute("BEGIN IMMEDIATE")
    (free,) = db.execute("SELECT granted - used FROM accounts WHERE key = ?", (box,)).fetchone()
    assert free >= 1
    (messages, last) = db.execute("SELECT messages, last FROM boxes WHERE name = ?", (box,)).fetchone()
    assert messages < 1024
    db.execute("UPDATE accounts SET used = used + 1 WHERE key = ?", (box,))
    db.execute("UPDATE boxes SET messages = messages + 1, last = last + 1 WHERE name = ?", (box,))
    db.execute("INSERT INTO messages VALUES (?, ?, ?)", (box, last + 1, body))
    db.execute("INSERT INTO audit (entry) VALUES (?)", (entry,))
    db.execute("COMMIT")


def send(caller, turns, took):
    box = "box-%d" % caller
    for _ in range(turns):
        began = time.perf_counter()
        with turn:
            put(box)
        took.append((time.perf_counter() - began) * 1000)


for caller in range(64):
    db.execute("INSERT INTO accounts VALUES (?, 1000000000, 0)", ("box-%d" % caller,))
    db.execute("INSERT INTO boxes VALUES (?, 0, 0)", ("box-%d" % caller,))
for line in sys.stdin:
    callers, turns = json.loads(line)
    took = []
    if turns == 0:
        db.execute("DELETE FROM messages")
        db.execute("UPDATE boxes SET messages = 0")
    elif callers == 1:
        send(0, turns, took)
    else:
        threads = [threading.Thread(target=send, args=(i, turns, took)) for i in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(took) == callers * turns
    print(json.dumps(took), flush=True)
