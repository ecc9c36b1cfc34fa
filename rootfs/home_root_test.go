//go:build root

package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// homed is a configuration with the kept home mine of a folder, and a run directory of its own.
func homed(b *bench, id, folder string) Config {
	cfg := testConfig(b.dir)
	cfg.ID, cfg.RunDir = id, b.mkdir("run-"+id, nil)
	cfg.Home, cfg.HomeFolder = "mine", folder
	return cfg
}

// The next life finds the home in whichever range of ids, as whichever user, and with root's files
// too. On the disk nothing belongs to a range. The control is a run without a kept home.
func TestAKeptHomeIsTheSameInTheNextLife(t *testing.T) {
	b := newBench(t)
	folder := b.mkdir("project", nil)
	first := b.mount(homed(b, "first", folder))
	b.must(first, sandboxAgent, "umask 077 && mkdir /home/agent/.cache && echo login >/home/agent/.cache/token")
	b.must(first, sandboxRoot, "touch /home/agent/roots")
	b.do(first.Discard)
	for i, hostID := range []uint32{testHostID + 3*idsPerAgent, testHostID, testHostID + 9*idsPerAgent} {
		cfg := homed(b, fmt.Sprint("life", i), folder)
		b.hostID, cfg.HostID, cfg.ReadOnly = hostID, hostID, i == 1
		tree := b.mount(cfg)
		if tree.HomeCopied {
			t.Error("it is a copy")
		}
		if got := b.must(tree, sandboxAgent, "cat /home/agent/.cache/token && stat -c '%u:%g %a' /home/agent /home/agent/.cache /home/agent/roots && touch /home/agent/life"); got != "login\n1000:1000 755\n1000:1000 700\n0:0 644\n" {
			t.Errorf("range %d: %q", hostID, got)
		}
		b.do(tree.Discard)
	}
	b.hostID = testHostID
	other := homed(b, "other-user", folder)
	other.AgentUID, other.AgentGID = 1234, 1234
	tree := b.mount(other)
	if got := b.must(tree, 1234, "cat /home/agent/.cache/token && stat -c %u:%g /home/agent/.cache/token"); got != "login\n1234:1234\n" {
		t.Errorf("as another user of the sandbox: %q", got)
	}
	b.do(tree.Discard)
	control := homed(b, "control", folder)
	control.Home = ""
	b.refused(b.mount(control), sandboxAgent, "cat /home/agent/.cache/token", "No such file")
}

// Another name, folder or user has another home; so has a folder that is made in the place of a
// removed one. The controls are the same folder by another path, and after it was renamed.
func TestAKeptHomeIsNotShared(t *testing.T) {
	b := newBench(t)
	folder := b.mkdir("project", nil)
	if err := os.Chmod(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tree := b.mount(homed(b, "first", folder))
	b.must(tree, sandboxAgent, "echo login >/home/agent/token")
	b.do(tree.Discard)
	link := filepath.Join(b.dir, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	look := func(id, folder string, change func(*Config)) string {
		cfg := homed(b, id, folder)
		if change != nil {
			change(&cfg)
		}
		tree := b.mount(cfg)
		defer b.do(tree.Discard)
		return b.must(tree, sandboxAgent, "cat /home/agent/token 2>&1 || echo none")
	}
	const none = "cat: /home/agent/token: No such file or directory\nnone\n"
	if got := look("by-link", link, nil); got != "login\n" {
		t.Errorf("control: by a link it is %q", got)
	}
	for id, change := range map[string]func(*Config){
		"name": func(c *Config) { c.Home = "other" },
		"user": func(c *Config) { c.User = &nsthread.Identity{UID: bindUser, GID: bindUser} },
	} {
		if got := look(id, folder, change); got != none {
			t.Errorf("another %s: %q", id, got)
		}
	}
	if got := look("folder", b.mkdir("another", nil), nil); got != none {
		t.Errorf("another folder: %q", got)
	}
	moved := filepath.Join(b.dir, "moved")
	if err := os.Rename(folder, moved); err != nil {
		t.Fatal(err)
	}
	if got := look("moved", moved, nil); got != "login\n" {
		t.Errorf("control: renamed it is %q", got)
	}
	if err := os.Remove(moved); err != nil {
		t.Fatal(err)
	}
	if got := look("anew", b.mkdir("project", nil), nil); got != none {
		t.Errorf("a new folder in its place: %q", got)
	}
}

// The inode of a removed folder is another's later: its birth tells them apart. The control is the
// key without it.
func TestAReusedInodeIsAnotherHome(t *testing.T) {
	one := HomeKey{UID: 1, Name: "mine", Device: 2, Inode: 3, Born: 4}
	two := one
	two.Born = 5
	if one.ID() == two.ID() {
		t.Error("they have one home")
	}
	one.Born, two.Born = 0, 0
	if one.ID() != two.ID() {
		t.Error("control: equal keys have two homes")
	}
}

// While one life has the home, another gets a copy, follows no link of it, and what it changes is
// lost. The image is attached once. The control is the home afterwards.
func TestASecondLifeHasACopy(t *testing.T) {
	b := newBench(t)
	folder := b.mkdir("project", nil)
	secret := b.mkdir("secret", map[string]string{"key": "SECRET\n"})
	first := b.mount(homed(b, "first", folder))
	b.must(first, sandboxAgent, "cd /home/agent && echo login >token && ln -s "+secret+" dir && ln -s "+secret+"/key key && mkfifo pipe && mkdir d && chmod 700 d && echo x >d/x")
	b.must(first, sandboxRoot, "cp /bin/true /home/agent/su && chmod 4755 /home/agent/su")
	cfg := homed(b, "second", folder)
	cfg.HostID = testHostID + 2*idsPerAgent
	second := b.mount(cfg)
	if !second.HomeCopied || first.HomeCopied {
		t.Errorf("copied: %v, and the first: %v", second.HomeCopied, first.HomeCopied)
	}
	b.hostID = cfg.HostID
	if got := b.must(second, sandboxAgent, "cd /home/agent && cat token d/x && readlink key && stat -c '%u:%g %F' d key pipe && echo second >token"); got !=
		"login\nx\n"+secret+"/key\n1000:1000 directory\n1000:1000 symbolic link\n1000:1000 fifo\n" {
		t.Errorf("the copy: %q", got)
	}
	b.refused(second, sandboxAgent, "cat /home/agent/key", "No such file")
	b.hostID = testHostID
	b.must(first, sandboxAgent, "echo changed >/home/agent/token")
	if homes, err := Homes(b.dir + "/state"); err != nil || len(homes) != 1 || !homes[0].InUse {
		t.Errorf("the list: %+v, %v", homes, err)
	} else if err := RemoveHome(b.dir+"/state", homes[0].ID()); !errors.Is(err, ErrHomeBusy) {
		t.Errorf("removed while it is used: %v", err)
	}
	for _, upper := range second.Uppers() {
		if strings.Contains(upper.Prefix, agentHome) {
			t.Errorf("clove diff would list the copy: %+v", upper)
		}
	}
	b.do(second.Discard)
	b.do(first.Discard)
	tree := b.mount(homed(b, "third", folder))
	if got := b.must(tree, sandboxAgent, "cat /home/agent/token"); tree.HomeCopied || got != "changed\n" {
		t.Errorf("control: %v, %q", tree.HomeCopied, got)
	}
	b.do(tree.Discard)
	homes, err := Homes(b.dir + "/state")
	if err != nil || len(homes) != 1 || homes[0].InUse {
		t.Fatalf("the list: %+v, %v", homes, err)
	}
	if err := RemoveHome(b.dir+"/state", homes[0].ID()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(homesDir(b.dir + "/state")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A home is as large as the disk of the run that made it, and one user has so many. The controls:
// a file that fits, and another user's home.
func TestAKeptHomeIsBounded(t *testing.T) {
	b := newBench(t)
	folder := b.mkdir("project", nil)
	tree := b.mount(homed(b, "first", folder))
	b.must(tree, sandboxAgent, "head -c 300000 /usr/bin/bash >/home/agent/fits")
	b.refused(tree, sandboxAgent, "while cat /usr/bin/bash || exit 1; do :; done >/home/agent/large", "No space left")
	b.do(tree.Discard)
	made, err := Homes(b.dir + "/state")
	if err != nil || len(made) != 1 || made[0].Bytes != testConfig(b.dir).DiskBytes || made[0].Held > made[0].Bytes+1<<20 {
		t.Fatalf("%+v, %v", made, err)
	}
	for i := range homesPerUser - 1 {
		other := made[0]
		other.Name = fmt.Sprint("copy", i)
		image, err := other.make(b.dir + "/state")
		if err != nil {
			t.Fatal(err)
		}
		image.Close()
	}
	more := made[0]
	more.Name = "more"
	if _, _, err := more.open(b.dir + "/state"); !errors.Is(err, ErrHomes) {
		t.Errorf("one more: %v", err)
	}
	more.UID = bindUser
	image, free, err := more.open(b.dir + "/state")
	if err != nil || !free {
		t.Fatalf("control: another user's: %v, %v", free, err)
	}
	image.Close()
}

// What a hostile life leaves has no effect on the mounts of the next: set-user-ID files have none,
// there are no devices, and a link in the place of a folder that is shown leads nowhere outside. The
// control is the folder shown where the home has no link.
func TestAHostileKeptHome(t *testing.T) {
	b := newBench(t)
	project := b.mkdir("project", nil)
	outside := b.mkdir("outside", nil)
	tools := b.mkdir("tools", map[string]string{"tool": "tool\n"})
	shown := func(id string) Config {
		cfg := homed(b, id, project)
		cfg.Binds = []Bind{{Source: tools, Target: agentHome + "/.tools/bin", ReadOnly: true, CopyOnWrite: true}}
		return cfg
	}
	control := b.mount(shown("control"))
	b.must(control, sandboxAgent, "cat /home/agent/.tools/bin/tool")
	b.do(control.Discard)
	tree := b.mount(homed(b, "hostile", project))
	b.must(tree, sandboxRoot, "cp /usr/bin/id /home/agent/id && chmod 4755 /home/agent/id && rm -rf /home/agent/.tools")
	b.refused(tree, sandboxRoot, "mknod /home/agent/disk b 7 0", "Operation not permitted")
	if got := b.must(tree, sandboxAgent, "/home/agent/id -u"); got != "1000\n" {
		t.Errorf("a set-user-ID file runs as %q", got)
	}
	b.must(tree, sandboxAgent, "ln -s "+outside+" /home/agent/.tools && echo 'prefix=/' >/home/agent/.npmrc && echo 'touch "+outside+"/ran' >/home/agent/.profile")
	b.do(tree.Discard)
	next, err := b.tryMount(shown("next"))
	if err == nil {
		b.do(next.Discard)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("the host's folder has %v, %v", left, err)
	}
	again := b.mount(homed(b, "again", project))
	b.must(again, sandboxAgent, "test -L /home/agent/.tools")
	b.do(again.Discard)
}

// A directory that an agent replaces by a link while its home is copied leads to nothing of the host.
// The control is the same mount without that property.
func TestTheCopyOfAHomeFollowsNoLink(t *testing.T) {
	b := newBench(t)
	secret := b.mkdir("secret", map[string]string{"key": "SECRET\n"})
	live, seen := b.mkdir("live", nil), b.mkdir("seen", nil)
	if err := os.Symlink(secret, filepath.Join(live, "dir")); err != nil {
		t.Fatal(err)
	}
	control := liveFlags
	control.NoLinks = false
	for flags, follows := range map[cloneFlags]bool{liveFlags: false, control: true} {
		b.do(func() error {
			clone, err := (&builder{}).clone(live, idMap{}, flags)
			if err != nil {
				return err
			}
			defer clone.Close()
			if err := attach(clone, seen); err != nil {
				return err
			}
			defer unix.Unmount(seen, unix.MNT_DETACH)
			if err := copyLive(seen+"/dir", filepath.Join(b.dir, fmt.Sprint("copy-", follows))); (err == nil) != follows {
				t.Errorf("with %+v: %v", flags, err)
			}
			return nil
		})
	}
}
