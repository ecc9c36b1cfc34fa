//go:build root

package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/client"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/netns"
	"clove.run/clove/oci"
)

// node is a host with an engine's network, and with a cloved after serve.
type node struct {
	*ocitest.Runtime
	t       *testing.T
	network *ocitest.Network
	cloved  *exec.Cmd
	log     bytes.Buffer
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, Runtime: newRuntime(t)}
	t.Setenv("CLOVE_SOCKET", n.path("clove.sock"))
	n.network = ocitest.NewNetwork(t)
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.Directory(), name) }

// serve starts a cloved, which is killed at the end of the test.
func (n *node) serve() {
	n.t.Helper()
	config := n.path("clove.yaml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		n.t.Fatal(err)
	}
	n.cloved = exec.Command(testhost.Binary(n.t, "cloved"), "--root", n.path("state"), "--run-dir", n.path("run"),
		"--socket", n.path("clove.sock"), "--config", config)
	n.cloved.Stderr = &n.log
	if err := n.cloved.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(n.killCloved)
	n.Await("cloved", func() bool {
		c, err := client.Dial(context.Background(), n.path("clove.sock"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// killCloved kills cloved with KILL.
func (n *node) killCloved() {
	if n.cloved == nil {
		return
	}
	n.cloved.Process.Kill()
	n.cloved.Wait()
	n.cloved = nil
	if n.t.Failed() {
		n.t.Log(n.log.String())
	}
}

// in puts a container into the engine's network, with annotations key, value, …
func (n *node) in(annotations ...string) func(*specs.Spec) {
	return func(s *specs.Spec) {
		s.Root.Readonly = false
		s.Annotations = map[string]string{}
		for i := 0; i < len(annotations); i += 2 {
			s.Annotations[annotations[i]] = annotations[i+1]
		}
		for i := range s.Linux.Namespaces {
			if s.Linux.Namespaces[i].Type == specs.NetworkNamespace {
				s.Linux.Namespaces[i].Path = n.network.Path()
			}
		}
	}
}

// bundle is Bundle with a mounted resolv.conf, as in a pod's sandbox.
func (n *node) bundle(nameserver, script string, edits ...func(*specs.Spec)) string {
	n.t.Helper()
	text := []byte("nameserver " + nameserver + "\n")
	path := n.path("resolv-" + nameserver)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		n.t.Fatal(err)
	}
	mounted := func(s *specs.Spec) {
		s.Mounts = append(s.Mounts, specs.Mount{Destination: "/etc/resolv.conf", Type: "bind", Source: path, Options: []string{"bind", "ro"}})
	}
	bundle := n.Bundle(script, append([]func(*specs.Spec){mounted}, edits...)...)
	// The image has one as well, which is used where none is mounted.
	if err := os.WriteFile(filepath.Join(bundle, "rootfs/etc/resolv.conf"), text, 0o644); err != nil {
		n.t.Fatal(err)
	}
	return bundle
}

// ruled reports whether clove's rules are in the engine's namespace.
func (n *node) ruled() bool {
	n.t.Helper()
	inside, err := netns.Open(n.network.Path())
	if err != nil {
		n.t.Fatal(err)
	}
	defer inside.Close()
	ruled, err := inside.Ruled()
	if err != nil {
		n.t.Fatal(err)
	}
	return ruled
}

// guard returns the guard of a container.
func (n *node) guard(id string) agent.GuardState {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Root, id, agent.GuardStateFile))
	var state agent.GuardState
	if err == nil {
		err = json.Unmarshal(text, &state)
	}
	if err != nil || state.PID == 0 {
		n.t.Fatalf("no guard: %s, %v", text, err)
	}
	return state
}

// allowing are the annotations of an allowlist.
func allowing(targets string, more ...string) []string {
	return append([]string{oci.AnnotationNetworkMode, agent.NetworkAllowlist, oci.AnnotationNetworkAllow, targets}, more...)
}

// tell is a script that prints NAME=and the output of COMMAND, or nothing after it.
func tell(name, command string) string {
	return "echo " + name + "=$( { " + command + "; } 2>/dev/null)\n"
}

// answers parses what tell printed.
func answers(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		name, said, _ := strings.Cut(strings.TrimSpace(line), "=")
		all[name] = strings.TrimSpace(said)
	}
	return all
}
