package ocitest

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/testhost"
)

// applets are the names of busybox in a bundle.
var applets = strings.Fields("sh ash cat chmod chown cut dd echo env false grep head hostname id kill ln ls mkdir mknod mount " +
	"nc nslookup od ping ps readlink rm seq sha256sum sleep sort stat stty sync test touch tr true tty ulimit umount uname wc yes")

// Rootfs makes a root file system of busybox in directory.
func Rootfs(t testing.TB, directory string) {
	t.Helper()
	busybox := testhost.Tool(t, "busybox") // of busybox-static: nothing else is in there
	for _, name := range []string{"bin", "dev", "etc", "proc", "root", "run", "sys", "tmp"} {
		check(t, os.MkdirAll(filepath.Join(directory, name), 0o755))
	}
	check(t, os.Chmod(filepath.Join(directory, "tmp"), os.ModeSticky|0o777))
	check(t, copyFile(filepath.Join(directory, "bin/busybox"), busybox))
	for _, name := range applets {
		check(t, os.Symlink("busybox", filepath.Join(directory, "bin", name)))
	}
	check(t, os.WriteFile(filepath.Join(directory, "etc/passwd"), []byte("root:x:0:0:root:/root:/bin/sh\n"), 0o644))
}

// copyFile copies and does not link: a container may write to its root.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// Spec is the specification that `clove-oci spec` writes, for one command of the
// shell, without a terminal, in a cgroup of its own.
func (r *Runtime) Spec(script string) *specs.Spec {
	r.t.Helper()
	directory := r.t.TempDir()
	r.Must("spec", "--bundle", directory)
	text, err := os.ReadFile(filepath.Join(directory, "config.json"))
	check(r.t, err)
	var spec specs.Spec
	check(r.t, json.Unmarshal(text, &spec))
	spec.Process.Terminal = false
	spec.Process.Args = []string{"sh", "-c", script}
	r.specs++
	spec.Linux.CgroupsPath = "/" + cgroupParent + "/" + filepath.Base(r.directory) + "-" + strconv.Itoa(r.specs)
	return &spec
}

// Bundle makes a bundle of busybox that runs script, changed by edits.
func (r *Runtime) Bundle(script string, edits ...func(*specs.Spec)) string {
	r.t.Helper()
	spec := r.Spec(script)
	for _, edit := range edits {
		edit(spec)
	}
	bundle, err := os.MkdirTemp(r.directory, "bundle")
	check(r.t, err)
	check(r.t, os.Chmod(bundle, 0o755)) // a user namespace's root has no rights of its own here
	Rootfs(r.t, filepath.Join(bundle, "rootfs"))
	WriteSpec(r.t, bundle, spec)
	return bundle
}

// WriteSpec makes spec the bundle's config.json.
func WriteSpec(t testing.TB, bundle string, spec *specs.Spec) {
	t.Helper()
	text, err := json.Marshal(spec)
	check(t, err)
	check(t, os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o644))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
