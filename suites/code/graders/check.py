"""Grades one task: check.py TASK. Nothing here is seen by an agent.

The grader is root of its own sandbox. It executes what an agent left as another user, in a
process that gets inputs and returns outputs. Expected outputs never leave the grader, and the
process can neither signal it nor write to its descriptor 3.
"""
import ast
import json
import os
import subprocess
import sys

AGENT = 1000
CALL = """
import json, sys
sys.path.insert(0, "/attempt")
order = json.load(sys.stdin)
module = __import__(order["module"])
results = []
for args in order["cases"]:
    try:
        results.append({"value": getattr(module, order["function"])(*args)})
    except Exception as error:
        results.append({"error": type(error).__name__})
print("\\n" + json.dumps(results))
"""


def execute(words, text=None, cwd="/tmp"):
    """Runs a program of the agent's as the agent; its last line, or None."""
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=10, user=AGENT, group=AGENT,
                              extra_groups=[], cwd=cwd, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"})
    except (subprocess.TimeoutExpired, OSError, UnicodeDecodeError):
        return None
    sys.stderr.write(done.stderr[-1000:])
    return done.stdout


def call(module, function, cases):
    """The outputs of a function for all cases; what cannot be read is no output."""
    out = execute([sys.executable, "-I", "-c", CALL], json.dumps({"module": module, "function": function, "cases": cases}))
    try:
        return json.loads((out or "").strip().splitlines()[-1])
    except (ValueError, IndexError):
        return []


def functions(module, name, *cases):
    """A check that compares the outputs of a function: each case is (arguments, value)."""
    def check():
        got = call(module, name, [list(arguments) for arguments, _ in cases])
        got += [None] * (len(cases) - len(got))
        return [g == {"value": value} for g, (_, value) in zip(got, cases)]
    return check


def programs(name, *cases):
    """A check that compares what a program prints: each case is (input, output)."""
    return lambda: [(execute([sys.executable, "-I", "/attempt/" + name], text) or "").strip() == out for text, out in cases]


def refactored():
    """The behaviour is the same, and no function has more than ten lines."""
    same = functions("invoice", "invoice", ([[["tea", 2, 250], ["cup", 1, 1000]], "de"], "tea 2 x 2.50 = 5.00\ncup 1 x 10.00 = 10.00\nnet 15.00\nvat 2.85\nsum 17.85"),
                     ([[["tea", 1, 199]], "at"], "tea 1 x 1.99 = 1.99\nnet 1.99\nvat 0.40\nsum 2.39"), ([[], "ch"], "net 0.00\nvat 0.00\nsum 0.00"))()
    try:
        with open("/attempt/invoice.py", encoding="utf-8") as file:
            tree = ast.parse(file.read(100_000))
    except (OSError, SyntaxError, ValueError):
        return [False]
    sizes = [n.end_lineno - n.lineno + 1 for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    return same + [bool(sizes) and max(sizes) <= 10]


def renamed():
    """A shell script that renames files in the directory in which it is started."""
    results = []
    for before, after in ((["a.txt", "b c.txt", "d.md"], ["a.md", "b c.md", "d.md"]), (["x.TXT"], ["x.TXT"]), ([], [])):
        place = "/tmp/renamed"
        subprocess.run(["rm", "-rf", place], check=True)
        os.mkdir(place)
        for name in before:
            open(os.path.join(place, name), "w").close()
        os.chown(place, AGENT, AGENT)
        execute(["sh", "/attempt/rename.sh"], cwd=place)
        results.append(os.path.isfile("/attempt/rename.sh") and sorted(os.listdir(place)) == after)
    return results


CHECKS = {
    "fizzbuzz": functions("solution", "fizzbuzz", ([1], "1"), ([9], "Fizz"), ([10], "Buzz"), ([45], "FizzBuzz")),
    "binary-search": functions("solution", "search", ([[1, 3, 5, 7], 5], 2), ([[1, 3, 5, 7], 4], -1), ([[], 1], -1), ([list(range(100000)), 99999], 99999), ([[2], 2], 0)),
    "parse-json": functions("solution", "flatten", (['{"a": {"b": 1, "c": [true, null]}}'], {"a.b": 1, "a.c.0": True, "a.c.1": None}), (['{}'], {}), (['[{"x": "y"}]'], {"0.x": "y"})),
    "debug-test": functions("numbers_", "median", ([[3, 1, 2]], 2), ([[4, 1, 2, 3]], 2.5), ([[5]], 5), ([[-1, -5]], -3)),
    "refactor": refactored,
    "word-count": programs("count.py", ("a b a\nb a\n", "a 3\nb 2"), ("", ""), ("z Z z\n", "Z 1\nz 2")),
    "csv-sum": functions("solution", "total", (["name,amount\na,1\nb,2.5\n", "amount"], 3.5), (['name,amount\n"x, y",4\n', "amount"], 4), (["amount\n", "amount"], 0)),
    "roman": functions("solution", "roman", ([1], "I"), ([4], "IV"), ([1994], "MCMXCIV"), ([3999], "MMMCMXCIX")),
    "brackets": functions("solution", "balanced", (["([]{})"], True), (["([)]"], False), ([""], True), (["(("], False), (["a)"], False)),
    "lru": functions("solution", "trace", ([2, [["put", "a", 1], ["put", "b", 2], ["get", "a"], ["put", "c", 3], ["get", "b"], ["get", "a"]]], [1, None, 1]),
                     ([1, [["get", "x"], ["put", "x", 1], ["put", "x", 2], ["get", "x"]]], [None, 2])),
    "intervals": functions("solution", "merge", ([[[1, 3], [2, 6], [8, 10]]], [[1, 6], [8, 10]]), ([[]], []), ([[[4, 5], [1, 4]]], [[1, 5]]), ([[[1, 9], [2, 3]]], [[1, 9]])),
    "toposort": functions("solution", "order", ([{"app": ["lib"], "lib": ["core"], "core": []}], ["core", "lib", "app"]), ([{"a": ["b"], "b": ["a"]}], None), ([{"b": [], "a": []}], ["a", "b"])),
    "run-length": functions("solution", "encode", (["aaab"], "3a1b"), ([""], ""), (["zzzzzzzzzzzz"], "12z")),
    "spiral": functions("solution", "spiral", ([[[1, 2, 3], [4, 5, 6], [7, 8, 9]]], [1, 2, 3, 6, 9, 8, 7, 4, 5]), ([[[1], [2]]], [1, 2]), ([[[1, 2, 3]]], [1, 2, 3]), ([[]], [])),
    "days": functions("solution", "days", (["2024-02-28", "2024-03-01"], 2), (["2023-01-01", "2023-01-01"], 0), (["2024-01-01", "2023-01-01"], -365)),
    "ini": functions("solution", "parse", (["[a]\nx = 1\n; no\ny=2 = 3\n[b]\n"], {"a": {"x": "1", "y": "2 = 3"}, "b": {}}), ([""], {}), (["[a]\n# c\n[a]\nz=\n"], {"a": {"z": ""}})),
    "log-top": programs("top.py", ("10.0.0.1 GET /\n10.0.0.2 GET /\n10.0.0.1 GET /x\n", "10.0.0.1 2\n10.0.0.2 1"), ("a x\nb x\nc x\nd x\nd x\n", "d 2\na 1\nb 1")),
    "calculator": functions("solution", "evaluate", (["1 + 2 * 3"], 7), (["(1 + 2) * 3"], 9), (["10 / 4 - 1"], 1.5), (["-(2 + 3) * 2"], -10), (["2 - 3 - 4"], -5)),
    "anagrams": functions("solution", "groups", ([["tea", "eat", "tan", "ate", "nat", "bat"]], [["ate", "eat", "tea"], ["bat"], ["nat", "tan"]]), ([[]], [])),
    "rename": renamed,
}

results = CHECKS[sys.argv[1]]()
os.write(3, f"{sum(results) / len(results):.4f}\n".encode())
