"""Gives each of three children a folder of the repository, and a fourth one what they found."""
import json, os, socket, sys

agent = socket.socket(socket.AF_UNIX)
agent.connect(os.environ["CLOVE_AGENT_SOCKET"])
lines = agent.makefile("rw")


def call(method, **params):
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=lines, flush=True)
    answer = json.loads(lines.readline())
    if "error" in answer:
        sys.exit(method + ": " + answer["error"]["message"])
    return answer["result"]


def ended(name):
    end = call("agent.wait", child=name)
    record = end["record"]
    print(f"{name}: {record['status']} {record['exit_code']}", flush=True)
    if record["exit_code"] != 0:
        sys.exit(end["output"])
    return end


parts = sorted(entry.path for entry in os.scandir(sys.argv[1]) if entry.is_dir())
names = [f"part{number}" for number in range(len(parts))]
for name, folder in zip(names, parts):
    call("agent.spawn", manifest="part", name=name, args=[folder])
found = [ended(name)["result"] for name in names]

call("agent.spawn", manifest="report", name="report", args=[json.dumps(found)])
print(ended("report")["result"], end="")
