//go:build root

package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// showing mounts a root that shows another one's.
func (b *bench) showing(cfg Config, image string) (tree *Tree, err error) {
	err = b.thread.Do(func() error {
		plan, err := NewPlan(cfg)
		if err == nil {
			tree, err = plan.Showing(image, "/attempt/root").Mount()
		}
		return err
	})
	return tree, err
}

// copyOf keeps the layer of a run that has ended.
func (b *bench) copyOf(cfg Config) (path string) {
	b.t.Helper()
	image, err := os.Open(cfg.image())
	if err != nil {
		b.t.Fatal(err)
	}
	defer image.Close()
	path = filepath.Join(b.dir, cfg.ID+"-copy.img")
	if err := errors.Join(CopyLayer(image, path), RemoveLayer(cfg.image())); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// A run sees the whole root that another one left, with the same owners inside, and can change
// neither it nor the kept image. Its own root has nothing of the other's changes, which took
// away the shell and the loader. The control is what both have.
func TestARootShowsAnotherOne(t *testing.T) {
	b := newBench(t)
	cfg := testConfig(b.dir)
	tree := b.mount(cfg)
	b.must(tree, sandboxRoot, `set -e; mkdir -p /srv/mine; echo one >/srv/mine/a; chown 5:6 /srv/mine/a; chmod 4755 /srv/mine/a; ln -s /tmp/answer /srv/mine/link
		echo changed >/etc/hostname; rm /usr/bin/head; mkdir -p /usr/local/new && echo tool >/usr/local/new/tool; ln -s /tmp/answer /usr/local/new/link
		rm /usr/lib64/* /usr/bin/dash /usr/bin/bash`)
	b.do(tree.Close)
	image := b.copyOf(cfg)
	before, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	next := cfg
	next.ID, next.HostID, next.AgentUID = "grader", testHostID+4*idsPerAgent, 0
	b.hostID = next.HostID
	tree, err = b.showing(next, image)
	if err != nil {
		t.Fatal(err)
	}
	got := b.must(tree, sandboxRoot, `set -e; cd /attempt/root; cat srv/mine/a etc/hostname usr/local/new/tool; stat -c '%u:%g %a' srv/mine/a
		test ! -e usr/bin/head; test ! -e usr/bin/dash; test -e usr/bin/env;
		test -e /usr/bin/head; test ! -e /srv; test ! -e /usr/local/new`)
	if got != "one\nchanged\ntool\n5:6 4755\n" {
		t.Errorf("it sees %q", got)
	}
	b.refused(tree, sandboxRoot, "echo x >/attempt/root/srv/mine/a", "Read-only file system")
	b.refused(tree, sandboxRoot, "rm /attempt/root/usr/local/new/tool", "Read-only file system")
	b.refused(tree, sandboxRoot, "mount -o remount,rw /attempt/root", "")
	// A link of the other's would lead into this root. The control is the same link in it.
	b.must(tree, sandboxRoot, "set -e; echo answer >/tmp/answer; ln -s /tmp/answer /tmp/link; test \"$(cat /tmp/link)\" = answer; test \"$(readlink /attempt/root/srv/mine/link)\" = /tmp/answer")
	b.refused(tree, sandboxRoot, "cat /attempt/root/srv/mine/link", "Too many levels of symbolic links")
	b.refused(tree, sandboxRoot, "cat /attempt/root/usr/local/new/link", "Too many levels of symbolic links")
	b.must(tree, sandboxRoot, "echo own >/usr/local/own && test ! -e /attempt/root/usr/local/own")
	b.do(tree.Discard)
	if after, err := os.ReadFile(image); err != nil || string(after) != string(before) {
		t.Errorf("the kept image has changed: %v", err)
	}
	// A run that left nothing is shown as it began, and without a layer to lock any number at once.
	tree, err = b.showing(next, "")
	if err != nil {
		t.Fatal(err)
	}
	b.must(tree, sandboxRoot, "set -e; test -e /attempt/root/usr/bin/head; test -e /attempt/root/etc/hosts; test ! -e /attempt/root/srv/mine")
	b.refused(tree, sandboxRoot, "touch /attempt/root/usr/x", "Read-only file system")
	b.refused(tree, sandboxRoot, "cat /attempt/root/bin/sh", "Too many levels of symbolic links")
	b.do(tree.Discard)
	if err := os.Chmod(image, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := b.showing(next, image); err == nil || !strings.Contains(err.Error(), "not root's alone") {
		t.Errorf("a group-writable image: %v", err)
	}
}

// With a directory in the base's place it is the same.
func TestARootOfItsOwnIsShown(t *testing.T) {
	b := newBench(t)
	cfg := b.smallRoot(map[string]string{"etc/os-release": "own\n", "srv/data": "1\n"})
	tree := b.mount(cfg)
	b.must(tree, sandboxRoot, "echo 2 >/srv/data && rm /etc/os-release")
	b.do(tree.Close)
	image := b.copyOf(cfg)
	next := cfg
	next.ID = "grader"
	tree, err := b.showing(next, image)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.must(tree, sandboxRoot, "set -e; cat /attempt/root/srv/data /srv/data /etc/os-release; test ! -e /attempt/root/etc/os-release"); got != "2\n1\nown\n" {
		t.Errorf("it sees %q", got)
	}
	b.do(tree.Discard)
}
