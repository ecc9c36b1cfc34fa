"""A small agent that shows its sandbox and then does its job.

    sudo clove run examples/agent.py --memory 256M

It needs nothing but Python's standard library, and runs without clove too:
then it shows how much a program sees without a sandbox.
"""

import collections
import json
import os
import pathlib
import re
import socket

MIB = 1 << 20


def read(path):
    """The text of a file, or why there is none."""
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError as problem:
        return f"({problem.strerror})"


def status(key):
    """One line of /proc/self/status, see proc_pid_status(5)."""
    for line in read("/proc/self/status").splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return value.strip()
    return "(not shown)"


def memory_limit():
    """What clove told us, beside what the kernel's own file says."""
    told = os.environ.get("CLOVE_MEMORY_BYTES")
    if told is None:
        return "none is set"
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        if os.path.exists(path):
            return f"{int(told) // MIB} MiB (the kernel says {read(path)} bytes)"
    return f"{int(told) // MIB} MiB"


def network():
    """Try to reach a documentation address (RFC 5737), which no host has.

    Outside a sandbox nothing is sent.
    """
    if "CLOVE_ID" not in os.environ:
        return "not tried outside a sandbox"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connection:
        connection.settimeout(1)
        try:
            connection.connect(("192.0.2.1", 80))
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = connection.recv(200).decode(errors="replace")
        except OSError as problem:
            return f"refused: {problem.strerror or problem}"
    if " 403 " in answer.partition("\n")[0]:
        return "a gate, which refuses what no rule allows"
    return "open"


def host_files():
    """Which of the places where secrets live can be read from here."""
    places = ("/etc/shadow", "/etc/ssh", "/root/.ssh", "/root/.bashrc", "/var/lib/clove", "/var/run/docker.sock")
    seen = []
    for place in places:
        try:
            if os.path.isdir(place):
                os.listdir(place)
            else:
                open(place, "rb").close()
            seen.append(place)
        except OSError:
            pass
    return ", ".join(seen) or "none of " + ", ".join(places)


def seccomp():
    return {"0": "off", "1": "strict", "2": "filter"}.get(status("Seccomp"), status("Seccomp"))


def sandbox():
    return {
        "run": os.environ.get("CLOVE_NAME", "not under clove"),
        "user": f"uid {os.getuid()}, gid {os.getgid()}",
        "process": f"pid {os.getpid()}, {sum(name.isdigit() for name in os.listdir('/proc'))} in all to be seen",
        "capabilities": status("CapEff"),
        "no new privileges": {"1": "on", "0": "off"}.get(status("NoNewPrivs"), "?"),
        "seccomp": seccomp(),
        "memory limit": memory_limit(),
        "CPUs": os.environ.get("CLOVE_CPUS", str(os.cpu_count())),
        "network": network(),
        "host's secrets": host_files(),
    }


def count_words(path):
    """The real work: the most frequent words of a file."""
    words = re.findall(r"[a-z_]{3,}", path.read_text().lower())
    return collections.Counter(words)


def main():
    facts = sandbox()
    width = max(map(len, facts))
    print("What I see of my sandbox:")
    for name, value in facts.items():
        print(f"  {name:<{width}}  {value}")

    source = pathlib.Path(__file__).resolve()
    words = count_words(source)
    total = sum(words.values())
    report = pathlib.Path(os.environ.get("CLOVE_WORKSPACE", os.curdir)) / "report.json"
    top = words.most_common(5)
    print(f"\nMy job: I counted {total} words in {source.name};", end=" ")
    print("most frequent are " + ", ".join(f"{word} ({count})" for word, count in top) + ".")
    try:
        report.write_text(json.dumps({"file": source.name, "words": total, "top": top}, indent=2) + "\n")
    except OSError as problem:
        print(f"I could not write {report}: {problem.strerror}.")
        return
    print(f"Written to {report}. Under clove that is a copy: `clove diff` shows it, `clove apply` keeps it.")


if __name__ == "__main__":
    main()
