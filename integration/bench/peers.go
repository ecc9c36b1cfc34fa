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

// peer is one way to run a program apart from the host.
type peer struct {
	name string
	does string // of the work: what a reader must know to compare
	// ready makes what every run needs, or tells why the peer cannot be measured.
	ready func(*bench) error
	// command is the argument vector that runs program; id is new for each run.
	command func(b *bench, id string, program ...string) []string
	// foreign peers do the work in a daemon: neither CPU time nor memory of
	// the command say anything.
	foreign bool
}

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

// reference is the peer whose median others are divided by.
const reference = "runc"

const peerOCI = "clove-oci"

// peerNamed is one of peers.
func peerNamed(name string) peer {
	return peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == name })]
}

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

// cloveCommand relies on CLOVE_ROOT and CLOVE_RUN_DIR, see environment.
func cloveCommand(b *bench, _ string, program ...string) []string {
	return append([]string{b.clove, "run", "--rm", "--"}, program...)
}

// runcVersion is that of the library which clove itself is built with.
const runcVersion = "v1.5.2"

// readyRunc has runc and writes the bundles.
func (b *bench) readyRunc() error {
	if err := b.buildRunc(); err != nil {
		return err
	}
	return b.writeBundles()
}

// buildRunc builds runc unless an earlier bench did.
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

// readyOCI comes behind readyRunc, whose bundle it takes.
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

// dockerImage is small and has the programs that are run.
const dockerImage = "debian:bookworm-slim"

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

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
