//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/internal/doctest"
)

// giving makes a blob of a file and sends it, and then tries paths that are no files of the agent's own. Each line
// that it prints is a refusal.
const giving = `
import hashlib, os, threading, time
from clove.agent import Agent
from clove.errors import CloveError
a = Agent()
secret = os.environ["SECRET"]
content = os.urandom(3 << 20)
open("/workspace/big", "wb").write(content)
blob = a.blob.take("/workspace/big")
assert blob.sha256 == hashlib.sha256(content).hexdigest() and blob.bytes == 3 << 20, blob
a.mail.send("keeper", {"name": "big"}, blob=blob.sha256)
os.symlink(secret, "/data/link")
os.symlink(os.path.dirname(secret), "/data/up")
os.symlink("/", "/workspace/root")
os.mkfifo("/data/pipe")
os.mkdir("/workspace/folder")
open("/workspace/empty", "w")
open("/workspace/hidden", "w").write("x")
os.chmod("/workspace/hidden", 0)
with open("/workspace/holes", "wb") as f: f.truncate((64 << 20) + 1)
def refused(do):
    try: print("taken", do(), flush=True)
    except CloveError as e: print(e.word, "|", e, flush=True)
for path in ["/data/link", "/data/up/secret", secret, "/workspace/root" + secret, "/etc/shadow", "/data/pipe", "/dev/zero", "/proc/self/mem", "/workspace/folder",
             "/workspace/empty", "/workspace/hidden", "/workspace/holes", "../../../etc/shadow", "/workspace/none", ""]:
    refused(lambda: a.blob.take(path))
end = threading.Event()
def grow():
    with open("/workspace/grows", "ab", buffering=0) as f:
        while not end.is_set(): f.write(b"x" * 4096); time.sleep(0.001)
open("/workspace/grows", "wb").write(b"x")
writer = threading.Thread(target=grow); writer.start()
for n in range(100):
    try: a.blob.take("/workspace/grows")
    except CloveError as e: print(e.word, "|", e, flush=True); break
end.set(); writer.join()
for path in ["/workspace/big", "/data/link", "/etc/new", "/dev/shm/new", "relative"]:
    refused(lambda: a.blob.save(blob.sha256, path))
print("end", flush=True)
`

// keeping writes what comes to a file, and prints what it is.
const keeping = `
import hashlib, os, time
from clove.agent import Agent
a = Agent()
m = a.mail.receive().messages[0]
content = a.download(m.blob.sha256)
assert a.download(a.upload(content[:100_000]).sha256) == content[:100_000]
a.blob.save(m.blob.sha256, "/workspace/in/" + m.body["name"])
saved = open("/workspace/in/big", "rb").read()
print(len(content), hashlib.sha256(content).hexdigest() == m.blob.sha256, saved == content, os.stat("/workspace/in/big").st_uid == os.getuid(), flush=True)
print(m.blob.sha256, flush=True)
while not os.path.exists("/data/tried"): time.sleep(0.05)
a.mail.ack([m.id])
`

// nosy tries a digest that another has, and one that nobody has.
const nosy = `
import os
from clove.agent import Agent
from clove.errors import CloveError
a = Agent()
for do in [lambda d: a.blob.read(d), lambda d: a.blob.save(d, "/workspace/stolen"), lambda d: a.state.set("mine", None, blob=d), lambda d: a.mail.send("keeper", None, blob=d),
           lambda d: a.blob.read(d, at={"scope": "run", "path": "mine"})]:
    said = []
    for digest in [os.environ["DIGEST"], "0" * 64]:
        try: do(digest); said.append("given")
        except CloveError as e: said.append(e.word + " | " + str(e).replace(digest, "DIGEST"))
    print(said[0] == said[1], said[0], flush=True)
`

// A file goes from one agent's mount to another's as a blob. Links, pipes, devices, what the agent may not read, what is
// too large and what changes while it is read are refused; a digest alone gives nothing. The control reads the
// host's secret through the same link, as a program of root's would that follows an agent's path.
func TestABlobFromOneMountToAnother(t *testing.T) {
	d := newCloved(t)
	root, dir, data := doctest.Root(t), userDir(t, nil), filepath.Join(t.TempDir(), "data")
	secret := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{os.Mkdir(data, 0o777), os.Chmod(data, 0o777), os.WriteFile(secret, []byte("of the host"), 0o600),
		os.WriteFile(filepath.Join(dir, "give.py"), []byte(giving), 0o644), os.WriteFile(filepath.Join(dir, "keep.py"), []byte(keeping), 0o644),
		os.WriteFile(filepath.Join(dir, "nosy.py"), []byte(nosy), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	shell := func(command string) string {
		t.Helper()
		out, err := d.shellIn(dir, `SDK="-v `+root+`/sdk/python:/opt/sdk:ro -e PYTHONPATH=/opt/sdk -v `+data+`:/data"; `+command)
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", command, err, out, d.log())
		}
		return out
	}
	shell("clove run -d --name keeper --agent-socket $SDK keep.py")
	shell("clove run -d --name giver --grant send:keeper -e SECRET=" + secret + " $SDK give.py")
	if out := shell("clove wait giver; clove logs giver"); true {
		got := strings.Split(strings.TrimSpace(out), "\n")
		got = got[1:] // the exit status
		want := []string{"invalid | cannot copy /data/link: it is a symbolic link", "not-found", "not-found", "not-found", "", "it is a pipe", "it is a device", "", "it is a folder",
			"too-large", "denied", "too-large", "", "not-found", "it is a folder", "conflict | the file changed while it was read", "conflict", "conflict", "denied", "in memory", "not a clean absolute path", "end"}
		if len(got) != len(want) {
			t.Fatalf("%d lines:\n%s", len(got), out)
		}
		for i, line := range got {
			if !strings.Contains(line, want[i]) || strings.HasPrefix(line, "taken") {
				t.Errorf("line %d is %q, not %q", i, line, want[i])
			}
		}
	}
	if read, err := os.ReadFile(filepath.Join(data, "link")); err != nil || string(read) != "of the host" {
		t.Errorf("control: %q, %v", read, err)
	}
	logs := d.follow("logs", "-f", "keeper")
	if line := logs.line(); line != "3145728 True True True" {
		t.Errorf("%q\n%s", line, d.log())
	}
	digest := logs.line()
	out := shell("clove run -d --name nosy --grant send:keeper -e DIGEST=" + digest + " $SDK nosy.py >/dev/null; clove wait nosy >/dev/null; clove logs nosy")
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.HasPrefix(line, "True not-found | ") {
			t.Errorf("%q", line)
		}
	}
	if lines := strings.Count(out, "\n"); lines != 5 {
		t.Errorf("%d attempts:\n%s", lines, out)
	}
	if files, err := os.ReadDir(filepath.Join(d.state, "blobs")); err != nil || len(files) == 0 {
		t.Errorf("control: %v, %v", files, err)
	}
	touch(t, data, "tried")
	shell("clove wait keeper; clove rm keeper giver nosy")
	until(t, "the blobs are removed", func() bool { files, _ := os.ReadDir(filepath.Join(d.state, "blobs")); return len(files) == 0 })
	// A user's file, by message and by key.
	shell("clove name reserve inbox; head -c 300000 /dev/urandom >random; clove mail send --file random inbox")
	shell("clove mail blob $(clove mail read --json inbox | grep -o '[0-9a-f]\\{64\\}') | cmp - random")
	shell("clove state set --file random files/random; clove state get files/random | cmp - random; clove state ls")
	shell("printf '{\"n\": 1}' >small; clove state set --file small files/small; test \"$(clove state get files/small)\" = '{\"n\":1}'")
	if out, err := d.shellIn(dir, "clove state set --file /dev/zero a"); err == nil || !strings.Contains(out, "regular file") {
		t.Errorf("%q, %v", out, err)
	}
	shell("clove state rm files/random; clove state rm files/small")
}
