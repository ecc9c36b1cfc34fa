//go:build root

package engines

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// podRulesHold: the rules of a pod's annotations for its network and time apply in
// what containerd and CNI made. With runc, which ignores the rules, the same pods reach
// everything and have no deadline.
func podRulesHold(t *testing.T, n node) {
	startDaemon(t, "cloved")
	serveBridge(t, startPod(t, n, "runc", nil))
	for _, handler := range runtimes {
		t.Run("network/"+handler, func(t *testing.T) { podNetworked(t, n, handler) })
		t.Run("deadline/"+handler, func(t *testing.T) { podTimed(t, n, handler) })
	}
}

// The bridge's own address, and one more that the rules do not allow.
const (
	allowedAddress = "198.18.0.1"
	otherAddress   = "198.18.0.254"
	bridgePort     = "8081"
)

// serveBridge serves on the bridge of the pods, which exists because there is a pod.
func serveBridge(t *testing.T, _ *kubelet) {
	t.Helper()
	if out, err := exec.Command("ip", "address", "add", otherAddress+"/24", "dev", "pods0").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	listener, err := net.Listen("tcp", ":"+bridgePort)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "served") })}
	t.Cleanup(func() { server.Close() })
	go server.Serve(listener)
}

func podNetworked(t *testing.T, n node, handler string) {
	k := startPod(t, n, handler, map[string]string{"run.clove.network.mode": "allowlist", "run.clove.network.allow": allowedAddress + ":" + bridgePort})
	id := k.begin(container("main", "obey"))
	for address, held := range map[string]bool{allowedAddress: false, otherAddress: handler == "clove"} {
		// No time limit of its own: the gate refuses at once, and an allowed fetch may take as
		// long as a busy host needs.
		stdout, stderr, code := k.exec(id, "sh", "-c", `echo asked; printf 'GET / HTTP/1.0\r\n\r\n' | nc `+address+" "+bridgePort+"; echo; echo done")
		if code != 0 || !strings.HasPrefix(stdout, "asked\n") || !strings.HasSuffix(stdout, "\ndone\n") || strings.HasSuffix(stdout, "served\ndone\n") == held {
			t.Errorf("%s: %q, %s", address, stdout, stderr)
		}
	}
	k.stop(id)
}

func podTimed(t *testing.T, n node, handler string) {
	k := startPod(t, n, handler, map[string]string{"run.clove.timeout": "2s", "run.clove.record": "/var/lib/clove/records/pod.json"})
	id := k.begin(container("main", "obey"))
	if handler == "runc" {
		// It lasts longer than the deadline and begins after the start, so clove's container
		// is ended before this ends.
		if _, stderr, code := k.exec(id, "sleep", "3"); code != 0 {
			t.Errorf("beyond the deadline: %d, %s", code, stderr)
		}
		if code := k.stop(id); code != 3 {
			t.Errorf("it ended with %d", code)
		}
		return
	}
	if status := k.end(id); status.ExitCode != 137 {
		t.Errorf("at its deadline it ended with %d, %s", status.ExitCode, status.Reason)
	}
	k.remove(id)
	text, err := os.ReadFile(os.Getenv("CLOVE_ROOT") + "/records/pod.json")
	if err != nil {
		t.Fatal(err)
	}
	var record agent.Record
	if err := json.Unmarshal(text, &record); err != nil || record.Status != agent.StatusTimeout || record.ExitCode != agent.ExitTimeout {
		t.Errorf("%v, %s", err, text)
	}
}
