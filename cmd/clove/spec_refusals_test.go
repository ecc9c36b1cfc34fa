package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

var update = flag.Bool("update", false, "write the golden files anew")

// refusals are common mistakes, one a line. The golden file shows the messages.
var refusals = []string{
	"",
	"missing.py",
	"missing",
	"folder",
	"fifo",
	"loop.py",
	"arm64",
	"i386",
	"noexec",
	"text",
	"ok.py --bogus",
	"ok.py second",
	"ok.py second --memory 1G -- third",
	"ok.py --memory 12X",
	"ok.py --memory 1K",
	"ok.py --memory -5M",
	"ok.py --memory 1e9",
	"ok.py --memory 99999999999P",
	"ok.py --memory",
	"ok.py --memory-swap 64M",
	"ok.py --cpus -1",
	"ok.py --cpus 0",
	"ok.py --cpus 64",
	"ok.py --cpus NaN",
	"ok.py --cpus many",
	"ok.py --cpuset-cpus 9",
	"ok.py --cpuset-cpus 3-1",
	"ok.py --cpuset-cpus 0-99999999999",
	"ok.py --pids-limit 0",
	"ok.py --pids-limit 2",
	"ok.py --pids-limit x",
	"ok.py --pids-limit 99999999",
	"ok.py --ulimit nofile",
	"ok.py --ulimit files=3",
	"ok.py --ulimit nofile=9:3",
	"ok.py --ulimit nofile=1:2:3",
	"ok.py --ulimit nofile=-2",
	"ok.py --timeout soon",
	"ok.py --timeout -3s",
	"ok.py --timeout 0",
	"ok.py --timeout 1e300",
	"ok.py --start-timeout 0",
	"--start-timeout 1ms -- true",
	"--start-timeout 2h -- true",
	"ok.py --cpu-time NaN",
	"ok.py --output-limit 0",
	"ok.py --disk 1K",
	"ok.py --shm-size x",
	"ok.py --name a/b",
	"ok.py --name a\x07b",
	"ok.py --label =x",
	"ok.py --hostname -x-",
	"ok.py --user bob",
	"ok.py --user 65533",
	"ok.py --user 1:bob",
	"ok.py --network none --allow example.com",
	"ok.py --network host --allow example.com",
	"ok.py --allow https://example.com/",
	"ok.py --allow 0x7f.1",
	"ok.py --allow localhost:8080",
	"ok.py --deny *.com",
	"ok.py --host-port 080",
	"ok.py -p 80",
	"ok.py --network public --dns dns.example.com",
	"ok.py --network public --net-bytes 12X",
	"ok.py --network maybe",
	"ok.py --policy strict",
	"ok.py --seccomp missing.json",
	"ok.py --seccomp text",
	"ok.py --seccomp fifo",
	"ok.py -v nowhere",
	"ok.py -v ./missing:/data",
	"ok.py -v data:/data",
	"ok.py -v ./folder:data",
	"ok.py -v ./folder:/a/../../etc",
	"ok.py -v ./folder:/proc/sys",
	"ok.py -v ./folder:/sys",
	"ok.py -v ./folder:/dev",
	"ok.py -v ./folder:/",
	"ok.py -v ./folder:/workspace",
	"ok.py -v /:/host",
	"ok.py --mount source=data,target=/data",
	"ok.py --mount type=volume,source=data,target=/data",
	"ok.py --mount type=cluster,target=/data",
	"ok.py --mount type=bind,target=/data",
	"ok.py --mount type=bind,source=folder",
	"ok.py --mount type=bind,source=missing,target=/data",
	"ok.py --mount type=bind,source=/proc/sys,target=/data",
	"ok.py --mount type=bind,source=folder,target=/data,bind-propagation=shared",
	"ok.py --mount type=bind,source=folder,target=/data,tmpfs-size=1M",
	"ok.py --mount type=bind,source=folder,target=/data,readonly=maybe",
	"ok.py --mount type=tmpfs,source=folder,target=/data",
	"ok.py --mount type=tmpfs,target=/data,tmpfs-size=x",
	"ok.py --mount type=tmpfs,target=/data,readonly",
	"ok.py --mount type=bind,source=folder,target=/data -v ./folder:/data",
	"ok.py --entrypoint sh",
	"--entrypoint= -- true",
	"ok.py --add-host db.example",
	"ok.py --add-host db.example:host-gateway",
	"ok.py --add-host db.example:db",
	"ok.py --add-host -x:10.0.0.5",
	"ok.py --add-host db.example:fe80::1%eth0",
	"ok.py --cap-drop CHOWM",
	"ok.py --security-opt no-new-privileges:false",
	"ok.py --security-opt seccomp=unconfined",
	"ok.py --security-opt apparmor=unconfined",
	"ok.py --stop-signal KILL",
	"ok.py --stop-signal STOP",
	"ok.py --stop-signal SOON",
	"ok.py --init=false",
	"--cidfile folder -- true",
	"--cidfile missing/id -- true",
	"ok.py --cap-add SYS_ADMIN",
	"ok.py --device /dev/fuse",
	"ok.py --privileged",
	"ok.py -v ./folder:/data --tmpfs /data",
	"ok.py --tmpfs run",
	"ok.py --tmpfs /run:exec",
	"ok.py --tmpfs /run:mode=9",
	"ok.py --tmpfs /run:size=x",
	"ok.py --workspace missing",
	"ok.py --workspace ok.py",
	"ok.py --workspace folder",
	"ok.py --workspace /tmp",
	"ok.py --rootfs missing",
	"ok.py --rootfs /",
	"ok.py --python missing",
	"ok.js",
	"ok.js --python python3",
	"ok.py",
	"line",
	"--python python3 -- ls",
	"-e =x -- true",
	"-e CLOVE_ID=me -- true",
	"--env-file missing -- true",
	"--env-file bad.env -- true",
	"ok.py --workdir here",
	"ok.py --workdir /a/../..",
	"ok.py --result missing/record.json",
	"--result folder -- true",
	"--root= -- true",
	"--grant fetch -- true",
	"--grant tools:fetch -- true",
	"--grant tool:fetch:rw -- true",
	"--grant state:notes -- true",
	"--grant net:* -- true",
	"--grant tool:fetch --network host -- true",
	"--budget reviews -- true",
	"--budget reviews=many -- true",
	"--budget Reviews=10 -- true",
	"--budget reviews=10/week -- true",
	"--budget reviews=10,warn=11 -- true",
	"--budget cost=0.0000001usd -- true",
	"--at-end stop -- true",
	"--on-warn ftp://a.example/ -- true",
	"--on-end https://user:secret@a.example/ -- true",
	"--on-denial kill -- true",
	"--on-denial end-after:0 -- true",
	"--namespace acme//research -- true",
	"--model-log -- true",
}

// elfHeader is the beginning of a program.
func elfHeader(class byte, machine uint16) string {
	header := make([]byte, 64)
	copy(header, "\x7fELF")
	header[4], header[5] = class, 1
	binary.LittleEndian.PutUint16(header[18:], machine)
	return string(header)
}

func refusalBench(t *testing.T) *bench {
	b := newBench(t)
	b.file("ok.py", "print(1)\n", 0o644)
	b.file("ok.js", "1\n", 0o644)
	b.file("folder/file", "", 0o644)
	b.file("text", "hello\n", 0o755)
	b.file("line", "#!/nowhere/interpreter\n", 0o755)
	b.file("arm64", elfHeader(2, 183), 0o755)
	b.file("i386", elfHeader(1, 3), 0o755)
	b.file("noexec", elfHeader(2, 62), 0o644)
	b.file("bad.env", "A=1\nB C=2\n", 0o644)
	b.link("loop.py", "loop.py")
	if err := unix.Mkfifo(b.host.Dir+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRefusals(t *testing.T) {
	var shown strings.Builder
	for _, line := range refusals {
		b := refusalBench(t)
		stderr := b.refuse(strings.Fields(line)...)
		// "clove: …" and, where there is something to do, "hint: …".
		if lines := strings.Split(strings.TrimSpace(stderr), "\n"); len(lines) > 2 || !strings.HasPrefix(lines[0], "clove: ") {
			t.Errorf("%q: not one line and a hint:\n%s", line, stderr)
		}
		shown.WriteString("$ clove run " + printable(line) + "\n" + strings.ReplaceAll(stderr, b.host.Dir, "$PWD") + "\n")
	}
	golden(t, "testdata/refusals.golden", shown.String())
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; look at the change and run go test with -update. Now:\n%s", path, got)
	}
}

// Control: the same host accepts a valid command line.
func TestAGoodLineIsTaken(t *testing.T) {
	b := refusalBench(t)
	b.host.Base = []string{b.host.Dir + "/base"}
	b.file("base/bin/python3", "", 0o755)
	b.setenv("PATH=" + b.host.Dir + "/base/bin")
	if spec := b.spec("ok.py"); spec.ID == "" || b.paths != 1 {
		t.Errorf("%+v, opened %d times", spec, b.paths)
	}
}

func TestPrivilegeIsAskedForLast(t *testing.T) {
	b := refusalBench(t)
	b.host.UID = 1000
	if got := b.refuse("missing.py"); !strings.Contains(got, "missing.py does not exist") {
		t.Errorf("a mistake is hidden: %s", got)
	}
	if got := b.refuse("--", "ls"); !strings.Contains(got, "needs root") || !strings.Contains(got, "sudo") {
		t.Errorf("not root: %s", got)
	}
}

func TestTooLargeAnEnvironment(t *testing.T) {
	for _, c := range []struct {
		name  string
		size  int
		count int
		args  []string
		want  string
	}{
		{"one string", 131072, 1, nil, "variable V00 has 131076 bytes, and the kernel takes at most 131071 in one string"},
		{"10 MB together", 104857, 100, nil, "the kernel takes at most 6291456"}, // what the run inherits is known at its start
		{"a larger stack allows more", 104857, 30, []string{"--ulimit", "stack=16777216"}, ""},
		{"a smaller one less", 104857, 3, []string{"--ulimit", "stack=1048576"}, "the kernel takes at most 262144"},
		{"unlimited has a ceiling", 104857, 100, []string{"--ulimit", "stack=-1"}, "the kernel takes at most 6291456"},
		{"just below", 131000, 1, nil, ""},
	} {
		b := newBench(t)
		args := c.args
		for i := range c.count {
			args = append(args, "-e", fmt.Sprintf("V%02d=%s", i, strings.Repeat("x", c.size)))
		}
		args = append(args, "--", "true")
		if c.want == "" {
			b.spec(args...)
			continue
		}
		if got := b.refuse(args...); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestARefusedRunStillLeavesItsRecord(t *testing.T) {
	b := refusalBench(t)
	path := b.file("record.json", "an earlier run's", 0o600)
	b.refuse("ok.py", "--memory", "1K", "--result", "record.json", "--name", "x")
	var record agent.Record
	unmarshal(t, b.read(path), &record)
	if record.Status != agent.StatusStartFailed || record.ExitCode != agent.ExitStartFailed || record.Error == nil ||
		record.Error.Step != "--memory" || record.Error.Hint == "" || record.Name != "x" || record.Version != agent.RecordVersion {
		t.Errorf("%+v, error %+v", record, record.Error)
	}
}
