"""Reserves and releases in a SQLite file, each durably, as Python's own module does it."""

import json
import sqlite3
import sys
import threading
import time

folder, entry = sys.argv[1:]
db = sqlite3.connect(folder + "/ledger.db", isolation_level=None, check_same_thread=False)
assert db.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE accounts (key TEXT PRIMARY KEY, granted INTEGER, used INTEGER, reserved INTEGER) WITHOUT ROWID")
db.execute("CREATE TABLE reservations (id TEXT PRIMARY KEY, amount INTEGER) WITHOUT ROWID")
db.execute("CREATE TABLE audit (number INTEGER PRIMARY KEY, entry TEXT)")
db.execute("INSERT INTO accounts VALUES ('run', 1000000000000000, 0, 0)")
turn = threading.Lock()  # fairer than SQLite's own wait for a writer, which sleeps


def reserve(number):
    db.execute("BEGIN IMMEDIATE")
    (free,) = db.execute("SELECT granted - used - reserved FROM accounts WHERE key = 'run'").fetchone()
    assert free >= 1
    db.execute("UPDATE accounts SET reserved = reserved + 1 WHERE key = 'run'")
    db.execute("INSERT INTO reservations VALUES (?, 1)", (number,))
    db.execute("INSERT INTO audit (entry) VALUES (?)", (entry,))
    db.execute("COMMIT")


def release(number):
    db.execute("BEGIN IMMEDIATE")
    (amount,) = db.execute("SELECT amount FROM reservations WHERE id = ?", (number,)).fetchone()
    db.execute("UPDATE accounts SET reserved = reserved - ? WHERE key = 'run'", (amount,))
    db.execute("DELETE FROM reservations WHERE id = ?", (number,))
    db.execute("INSERT INTO audit (entry) VALUES (?)", (entry,))
    db.execute("COMMIT")


def spend(caller, turns, took):
    for n in range(turns):
        began = time.perf_counter()
        with turn:
            (release if n % 2 else reserve)("%d-%d" % (caller, n // 2))
        if n % 2 == 0:
            took.append((time.perf_counter() - began) * 1000)


for line in sys.stdin:
    callers, turns = json.loads(line)
    took = []
    if callers == 1:
        spend(0, turns, took)
    else:
        threads = [threading.Thread(target=spend, args=(i, turns, took)) for i in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(took) == callers * turns // 2
    print(json.dumps(took), flush=True)
