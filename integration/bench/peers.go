package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// peer is one way to run a program isolated from the host.
type peer struct {
	name string
	does string // what it does of clove's work, for the reader of the table
	// ready prepares what every run needs, or returns why the peer cannot be measured.
	ready func(*bench) error
	// command is the argument vector that runs program; id is new for each run.
	command func(b *bench, id string, program ...string) []string
	// foreign peers do the work in a daemon: CPU time and memory of the command mean
	// nothing.
	foreign bool
}

// The peers do different amounts of work, so each says what it does; the table prints
// that.
var peers = []peer{
	{name: "clove", does: "everything", ready: (*bench).readyClove, command: cloveCommand},
	{name: "runc", does: "same namespaces, ids, limits, filter; host's / read-only, no writable layer, no record",
		ready: (*bench).readyRunc, command: runcCommand},
	{name: peerOCI, does: "exactly what runc does", ready: (*bench).readyOCI, command: ociCommand},
	{name: "bubblewrap", does: "namespaces; host's / read-only; no limits, no filter, no record",
		ready: inPath("bwrap"), command: bubblewrapCommand},
	{name: "docker", does: "its own image; same memory and pids limits, its own filter", ready: readyDocker, command: dockerCommand, foreign: true},
	{name: "bare exec", does: "nothing", ready: func(*bench) error { return nil },
		command: func(_ *bench, _ string, program ...string) []string { return program }},
}

// reference is the peer that the others' medians are divided by: it does most of the
// same work, with the same library.
const reference = "runc"

const peerOCI = "clove-oci"

// peerNamed is the peer of that name.
func peerNamed(name string) peer {
	return peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == name })]
}

// inPath is ready for a peer that is one program.
func inPath(program string) func(*bench) error {
	return func(*bench) error {
		_, err := exec.LookPath(program)
		return err
	}
}

func (b *bench) readyClove() error {
	_, err := os.Stat(b.clove)
	return err
}

// cloveCommand uses the state in scratch, by the variables of environment.
func cloveCommand(b *bench, _ string, program ...string) []string {
	return append([]string{b.clove, "run", "--rm", "--"}, program...)
}

// runcVersion is that of the library that clove itself is built with, so that the ratio
// compares programs and not versions.
const runcVersion = "v1.5.2"

// readyRunc builds runc and writes the bundles.
func (b *bench) readyRunc() error {
	if err := b.buildRunc(); err != nil {
		return err
	}
	return b.writeBundles()
}

// buildRunc builds runc, unless an earlier bench has. The tag seccomp makes it load
// filters, as clove does.
func (b *bench) buildRunc() error {
	dir := filepath.Join(b.cache, "runc-"+runcVersion)
	b.runc = filepath.Join(dir, "runc")
	if _, err := os.Stat(b.runc); err != nil {
		install := exec.Command("go", "install", "-tags", "seccomp", "github.com/opencontainers/runc@"+runcVersion)
		install.Env = append(os.Environ(), "GOBIN="+dir)
		if out, err := install.CombinedOutput(); err != nil {
			return fmt.Errorf("cannot build runc: %w: %s", err, lastLine(out))
		}
	}
	return nil
}

func runcCommand(b *bench, id string, program ...string) []string {
	return []string{b.runc, "--root", filepath.Join(b.scratch, "runc"), "run", "--bundle", b.bundle(program), id}
}

// readyOCI comes after readyRunc, whose bundles it uses.
func (b *bench) readyOCI() error {
	_, err := os.Stat(b.oci())
	_, bundle := os.Stat(b.bundle(programTrue))
	return errors.Join(err, bundle)
}

func (b *bench) oci() string { return filepath.Join(filepath.Dir(b.clove), "clove-oci") }

func ociCommand(b *bench, id string, program ...string) []string {
	return []string{b.oci(), "--root", filepath.Join(b.scratch, "oci"), "run", "--bundle", b.bundle(program), id}
}

func bubblewrapCommand(_ *bench, _ string, program ...string) []string {
	return append([]string{"bwrap", "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--die-with-parent",
		"--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--"}, program...)
}

// dockerImage is a small image that has the programs which are run.
const dockerImage = "debian:bookworm-slim"

// readyDocker downloads nothing: an image that is missing is reported.
func readyDocker(*bench) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return err
	}
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil {
		return errors.New("no engine answers: " + lastLine(out))
	}
	if exec.Command("docker", "image", "inspect", dockerImage).Run() != nil {
		return errors.New("the engine has no image " + dockerImage)
	}
	return nil
}

func dockerCommand(_ *bench, id string, program ...string) []string {
	return append([]string{"docker", "run", "--rm", "--name", id, "--network", "none", "--memory", "1g", "--pids-limit", "512",
		"--security-opt", "no-new-privileges", "--user", "1000:1000", dockerImage}, program...)
}

// lastLine is the last line of a program's output, which is mostly its error.
func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
