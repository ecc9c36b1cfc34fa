//go:build root

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A member's -v: what the agent writes there belongs to the member, without a set-id bit; what
// the member could not read or write, the agent cannot. The control is root's agent.
func TestDaemonVolumeOfAUser(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	dir := userDir(t, map[string]string{"mine": "mine\n"})
	closed := userDir(t, nil)
	for path, mode := range map[string]os.FileMode{filepath.Join(dir, "secret"): 0o600, filepath.Join(closed, "shown"): 0o644} {
		if err := os.WriteFile(path, []byte("SECRET\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(closed, 0, 0); err != nil {
		t.Fatal(err)
	}
	const script = `cat /data/mine /data/secret; touch /closed/x; echo y >/closed/shown; touch /read/x
cp /bin/true /data/bit; chmod 4755 /data/bit; echo out >/data/out; echo done`
	for _, user := range []string{"agent", "root"} {
		name := "v-" + user
		r := d.as(memberUID, group, "run", "-d", "--name", name, "--user", user, "-v", dir+":/data", "-v", closed+":/closed:rw", "-v", dir+":/read:ro", "--", "sh", "-c", script)
		if r.code != 0 {
			t.Fatalf("%s", r.stderr)
		}
		d.clove("wait", members(name))
		text := d.clove("logs", members(name))
		all := text.stdout + text.stderr
		for _, want := range []string{"mine\n", "/data/secret: Permission denied", "'/closed/x': Permission denied", "/closed/shown: Permission denied", "'/read/x': Read-only", "done\n"} {
			if !strings.Contains(all, want) {
				t.Errorf("as %s: no %q in %q", user, want, all)
			}
		}
		for _, file := range []string{"bit", "out"} {
			path := filepath.Join(dir, file)
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if st := info.Sys().(*syscall.Stat_t); st.Uid != memberUID || st.Gid != memberUID || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
				t.Errorf("%s: %d:%d, %v", file, st.Uid, st.Gid, info.Mode())
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	d.clove("run", "--rm", "-v", closed+":/closed", "--", "touch", "/closed/x")
	if _, err := os.Lstat(filepath.Join(closed, "x")); err != nil {
		t.Errorf("the control, root's agent: %v", err)
	}
}

// A request that the command line would not have built is checked in the same way.
func TestDaemonVolumeThatAUserMayNotHave(t *testing.T) {
	d := newClovedFor(t, groupName)
	dir := userDir(t, map[string]string{"mine": ""})
	for link, to := range map[string]string{"root": "/root", "shadow": "/etc/shadow"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(source string) string {
		return d.raw(memberUID, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"run.start","params":{"spec":{"name":"raw","command":["/bin/true"],"dir":"/","user":{"name":"agent","uid":1000,"gid":1000,"home":"/"},"network":"none","egress":{"limits":{"connections":1,"per_second":1}},"limits":{"memory_bytes":67108864,"memory_swap_bytes":67108864,"pids":64,"stop_grace_ns":1,"disk_bytes":67108864,"shm_bytes":1048576,"rlimits":[{"name":"nofile","soft":64,"hard":64}]},"files":{"binds":[{"source":%q,"target":"/data"}]},"seccomp":{"profile":"standard"},"policy":{"name":"standard","sha256":""},"remove":true}}}`+"\n", source))
	}
	for source, word := range map[string]string{
		"/root": "denied", "/etc/shadow": "denied", filepath.Join(dir, "root"): "denied", filepath.Join(dir, "shadow"): "denied",
		d.state: "denied", d.socket: "denied", d.run: "denied", "/dev/null": "denied",
		dir + "/../../root": "invalid", dir + "/.": "invalid", "mine": "invalid",
	} {
		if answer := ask(source); !strings.Contains(answer, `"word":"`+word+`"`) {
			t.Errorf("%s: %s", source, answer)
		}
	}
	for _, source := range []string{"/proc", "/"} { // readable by all, so the start refuses them
		if answer := ask(source); !strings.Contains(answer, `"error"`) {
			t.Errorf("%s: %s", source, answer)
		}
	}
	if answer := ask(dir); !strings.Contains(answer, `"result"`) {
		t.Errorf("the control: %s", answer)
	}
}

// Each start opens the source again with the member's rights, so what the member puts there
// between two starts must be readable by the member.
func TestDaemonVolumeSwapped(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	top := userDir(t, nil)
	source := filepath.Join(top, "data")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	if r := d.as(memberUID, group, "run", "-d", "--name", "w", "-v", source+":/data", "--", "sh", "-c", "ls /data; echo done"); r.code != 0 {
		t.Fatalf("%s", r.stderr)
	}
	d.clove("wait", members("w"))
	if err := os.Rename(source, source+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/root", source); err != nil {
		t.Fatal(err)
	}
	if r := d.as(memberUID, group, "restart", "w"); r.code == 0 || !strings.Contains(r.stderr, "ermission denied") {
		t.Errorf("a link to /root: %d, %s", r.code, r.stderr)
	}
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(source+".away", source); err != nil {
		t.Fatal(err)
	}
	if r := d.as(memberUID, group, "restart", "w"); r.code != 0 {
		t.Errorf("the control, a link to a directory of the member's: %s", r.stderr)
	}
}
