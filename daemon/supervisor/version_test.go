package supervisor

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// speak plays a supervisor of another version: it sends the recorded answer to one request.
func speak(t *testing.T, answer string) (runDir string, id agent.ID) {
	t.Helper()
	runDir, id = t.TempDir(), agent.NewID()
	must(t, os.Mkdir(filepath.Join(runDir, string(id)), 0o700))
	listener, err := net.Listen("unix", filepath.Join(runDir, string(id), SocketName))
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := rpc.New(conn).Receive(); err == nil {
			_, _ = conn.Write([]byte(answer + "\n"))
		}
	}()
	return runDir, id
}

// cloved and the supervisors that it finds may have different versions: new fields are
// ignored, and a missing method is reported as such.
func TestOtherVersions(t *testing.T) {
	t.Parallel()
	runDir, id := speak(t, `{"jsonrpc":"2.0","id":1,"result":{"stats":{"paused":true,"novel":{"a":[1]}},"later":7}}`)
	var result api.StatsResult
	if err := Call(context.Background(), runDir, id, methods.RunStats.Name, api.RunParams{}, &result); err != nil || !result.Stats.Paused {
		t.Errorf("a newer one: %+v, %v", result, err)
	}
	// The text of (*server).call for a method that it does not know.
	text, err := json.Marshal(api.ErrorOf(func() error {
		_, err := (&server{}).call(rpc.Message{Method: "run.tomorrow"})
		return err
	}()))
	must(t, err)
	runDir, id = speak(t, `{"jsonrpc":"2.0","id":1,"error":`+string(text)+`}`)
	err = Call(context.Background(), runDir, id, "run.tomorrow", api.RunParams{}, nil)
	failure := agent.FailureOf(err)
	if agent.KindOf(err) != agent.KindNotFound || failure.Hint == "" {
		t.Errorf("an older one: %v, %q", err, failure.Hint)
	}
}

// An order of a newer cloved may have fields that this supervisor does not know.
func TestOrderOfAnotherVersion(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	must(t, err)
	_, err = write.WriteString(`{"spec":{"id":"00000000000000aa","name":"x","tomorrow":1},"log_dir":"/l","novel":true}`)
	must(t, err)
	write.Close()
	if order, err := ReadOrder(read); err != nil || order.Spec.Name != "x" || order.LogDir != "/l" {
		t.Errorf("%+v, %v", order, err)
	}
}
