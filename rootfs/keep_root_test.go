//go:build root

package rootfs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// keeping is homed with kept folders.
func keeping(b *bench, id, folder string, keep ...string) Config {
	cfg := homed(b, id, folder)
	cfg.Keep = keep
	return cfg
}

// The next life finds a kept folder at its path, in whichever range of ids, also below a read-only root,
// and one that it does not name is not there. The control is a run with the home alone.
func TestAKeptFolderIsTheSameInTheNextLife(t *testing.T) {
	b := newBench(t)
	project := b.mkdir("project", nil)
	first := b.mount(keeping(b, "first", project, "/memory", "/var/lib/notes"))
	b.must(first, sandboxAgent, "echo learnt >/memory/fact && echo noted >/var/lib/notes/n && echo login >/home/agent/token")
	for _, upper := range first.Uppers() {
		if strings.Contains(upper.Prefix, "memory") {
			t.Errorf("clove diff would list it: %+v", upper)
		}
	}
	b.do(first.Discard)
	for i, hostID := range []uint32{testHostID + 3*idsPerAgent, testHostID} {
		cfg := keeping(b, fmt.Sprint("life", i), project, "/memory")
		b.hostID, cfg.HostID, cfg.ReadOnly = hostID, hostID, i == 1
		tree := b.mount(cfg)
		if got := b.must(tree, sandboxAgent, "cat /memory/fact /home/agent/token && stat -c '%u:%g %a' /memory /memory/fact && touch /memory/life && ls /var/lib/notes 2>&1 || true"); got !=
			"learnt\nlogin\n1000:1000 755\n1000:1000 644\nls: cannot access '/var/lib/notes': No such file or directory\n" {
			t.Errorf("life %d: %q", i, got)
		}
		b.do(tree.Discard)
	}
	b.hostID = testHostID
	homes, err := Homes(b.dir + "/state")
	if err != nil || len(homes) != 1 || !slices.Equal(homes[0].Keep, []string{"/memory", "/var/lib/notes"}) {
		t.Errorf("the list: %+v, %v", homes, err)
	}
	control := b.mount(homed(b, "control", project))
	b.refused(control, sandboxAgent, "cat /memory/fact", "No such file")
	b.must(control, sandboxAgent, "cat /home/agent/token")
	b.do(control.Discard)
}

// While one life has the folder, another has a copy of it, and an empty one of a folder that the other
// does not have. The control is the folder afterwards.
func TestASecondLifeHasACopyOfTheFolder(t *testing.T) {
	b := newBench(t)
	project := b.mkdir("project", nil)
	secret := b.mkdir("secret", map[string]string{"key": "SECRET\n"})
	first := b.mount(keeping(b, "first", project, "/memory"))
	b.must(first, sandboxAgent, "cd /memory && echo learnt >fact && ln fact same && ln -s "+secret+" dir && mkfifo pipe")
	b.must(first, sandboxRoot, "cp /bin/true /memory/su && chmod 4755 /memory/su")
	cfg := keeping(b, "second", project, "/memory", "/other")
	cfg.HostID = testHostID + 2*idsPerAgent
	second := b.mount(cfg)
	if !second.HomeCopied {
		t.Error("it is no copy")
	}
	b.hostID = cfg.HostID
	if got := b.must(second, sandboxAgent, "cd /memory && cat fact && stat -c '%u:%g %h %F' fact pipe . /other && echo second >fact && touch /other/x"); got !=
		"learnt\n1000:1000 2 regular file\n1000:1000 1 fifo\n1000:1000 2 directory\n1000:1000 2 directory\n" {
		t.Errorf("the copy: %q", got)
	}
	b.refused(second, sandboxAgent, "cat /memory/dir/key", "No such file")
	b.do(second.Discard)
	b.hostID = testHostID
	b.do(first.Discard)
	tree := b.mount(keeping(b, "third", project, "/memory", "/other"))
	if got := b.must(tree, sandboxAgent, "cat /memory/fact && ls /other"); tree.HomeCopied || got != "learnt\n" {
		t.Errorf("control: %v, %q", tree.HomeCopied, got)
	}
	b.do(tree.Discard)
}

// The folders of one home are bounded, those of earlier lives included, and a home with as many files as
// it can have takes none: the start fails, and what there is stays. The controls are the folders that it has.
func TestKeptFoldersAreBounded(t *testing.T) {
	b := newBench(t)
	project := b.mkdir("project", nil)
	var all []string
	for i := range foldersPerHome {
		all = append(all, fmt.Sprint("/kept", i))
	}
	tree := b.mount(keeping(b, "first", project, all[1:]...))
	b.must(tree, sandboxAgent, "echo x >/kept1/x; mkdir /kept1/full; cd /kept1/full; seq 30000 | xargs touch 2>&1 | wc -c")
	b.do(tree.Discard)
	if _, err := b.tryMount(keeping(b, "full", project, all[0])); !errors.Is(err, ErrHomeFull) {
		t.Errorf("a full home: %v", err)
	}
	tree = b.mount(keeping(b, "control", project, all[1]))
	b.must(tree, sandboxAgent, "cat /kept1/x && rm -r /kept1/full")
	b.do(tree.Discard)
	tree = b.mount(keeping(b, "last", project, all...))
	b.do(tree.Discard)
	if _, err := b.tryMount(keeping(b, "more", project, "/one-more")); !errors.Is(err, ErrFolders) {
		t.Errorf("one more: %v", err)
	}
	if homes, err := Homes(b.dir + "/state"); err != nil || len(homes) != 1 || len(homes[0].Keep) != foldersPerHome {
		t.Errorf("%+v, %v", homes, err)
	}
}

// hostileFolder is what a life leaves to get rights in its next, or to reach the host.
const hostileFolder = `cd /memory && ln -s /etc etc && ln -s / root && ln -s %[1]s out && mkfifo pipe && cp /usr/bin/id id && ln id hard &&
i=0; while [ $i -lt 600 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done`

// What a hostile life leaves in its folder has no effect on the next: no set-user-ID file works, no device
// opens, no link leads out of the sandbox, a folder with a foreign owner is the agent's again, and a copy
// for a second life has no more. What the sandbox could not make is put into the image, as a fault of
// the kernel's would. The controls: the file in the same folder, and the image mounted as the host
// mounts its own disks.
func TestAHostileKeptFolder(t *testing.T) {
	b := newBench(t)
	project := b.mkdir("project", nil)
	outside := b.mkdir("outside", map[string]string{"key": "SECRET\n"})
	tree := b.mount(keeping(b, "hostile", project, "/memory"))
	b.must(tree, sandboxAgent, fmt.Sprintf(hostileFolder, outside))
	b.must(tree, sandboxRoot, "cp /usr/bin/id /memory/su && chmod 4755 /memory/su && chown 0:0 /memory && chmod 700 /memory")
	b.refused(tree, sandboxRoot, "mknod /memory/disk b 7 0", "Operation not permitted")
	b.do(tree.Discard)
	plantInHome(b, "mknod memory/null c 1 3 && chmod 666 memory/null && cp /usr/bin/id memory/rootsu && chown 0:0 memory/rootsu && chmod 4755 memory/rootsu")
	look := func(tree *Tree) {
		t.Helper()
		if got := b.must(tree, sandboxAgent, "cd /memory && ./su -u && ./rootsu -u && ./hard -u && readlink out && stat -c %u . && touch new"); got != "1000\n1000\n1000\n"+outside+"\n1000\n" {
			t.Errorf("%q", got)
		}
		b.refused(tree, sandboxAgent, "cat /memory/null", "Permission denied")
		b.refused(tree, sandboxAgent, "cat /memory/out/key", "No such file")
		b.refused(tree, sandboxAgent, "touch /memory/etc/hostile", "Permission denied")
		b.refused(tree, sandboxAgent, "cat /memory/root"+outside+"/key", "No such file")
	}
	first := b.mount(keeping(b, "first", project, "/memory"))
	look(first)
	second, err := b.tryMount(keeping(b, "second", project, "/memory"))
	if err != nil {
		t.Fatalf("the copy: %v", err)
	}
	look(second)
	b.do(second.Discard)
	b.do(first.Discard)
	if left, err := os.ReadDir(outside); err != nil || len(left) != 1 {
		t.Errorf("the host's folder has %v, %v", left, err)
	}
	if got := plantInHome(b, "setpriv --reuid 1000 --clear-groups memory/rootsu -u && head -c 0 memory/null && cat memory/out/key"); got != "0\nSECRET\n" {
		t.Errorf("control: %q", got)
	}
}

// A link in the place of a folder's parents, which an earlier start of the same run has left, shows the
// folder nowhere else: the start fails, and nothing is made through the link. The control is the start
// without the link.
func TestALinkOnTheWayToAKeptFolder(t *testing.T) {
	b := newBench(t)
	project := b.mkdir("project", nil)
	cfg := keeping(b, "linked", project, "/srv/memory")
	tree, err := b.tryMount(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.must(tree, sandboxRoot, "mkdir /usr/local/there")
	b.do(tree.Close)
	if tree, err = b.again(cfg, nil); err != nil {
		t.Fatalf("control: %v", err)
	}
	b.do(tree.Close)
	without := cfg
	without.Keep = nil
	if tree, err = b.again(without, nil); err != nil {
		t.Fatal(err)
	}
	b.must(tree, sandboxRoot, "rm -rf /srv && ln -s /usr/local/there /srv")
	b.do(tree.Close)
	if tree, err = b.again(cfg, nil); err == nil {
		b.do(tree.Discard)
		t.Fatal("it is shown elsewhere")
	}
	if !strings.Contains(err.Error(), "cannot use /srv of the root: a symbolic link is in its place") {
		t.Errorf("the error: %v", err)
	}
	if tree, err = b.again(without, nil); err != nil {
		t.Fatal(err)
	}
	if got := b.must(tree, sandboxAgent, "ls /usr/local/there"); got != "" {
		t.Errorf("made through the link: %q", got)
	}
	b.do(tree.Discard)
}

// plantInHome runs a script as the host's root in the image of the only kept home, where memory stands for
// the folder /memory, and returns what it prints.
func plantInHome(b *bench, script string) (out string) {
	b.t.Helper()
	homes, err := Homes(b.dir + "/state")
	if err != nil || len(homes) != 1 {
		b.t.Fatalf("%+v, %v", homes, err)
	}
	at := b.mkdir("planted", nil)
	b.do(func() error {
		image, free, err := homes[0].open(b.dir + "/state")
		if err != nil || !free {
			return fmt.Errorf("the image is free: %v: %w", free, err)
		}
		defer image.Close()
		device, err := attachLoop(image, false, b.dir)
		if err != nil {
			return err
		}
		defer device.Close()
		if err := unix.Mount(fdPath(device), at, "ext4", 0, ""); err != nil {
			return err
		}
		defer unix.Unmount(at, 0)
		cmd := exec.Command("/bin/sh", "-c", "set -e; "+strings.ReplaceAll(script, "memory", folderInImage("/memory")))
		cmd.Dir = at
		text, err := cmd.CombinedOutput()
		if out = string(text); err != nil {
			return fmt.Errorf("%s: %w: %s", script, err, text)
		}
		return nil
	})
	return out
}
