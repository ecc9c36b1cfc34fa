//go:build root

package engines

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"clove.run/clove/internal/testhost"
)

// The channels of Kubernetes' remote command protocol over a WebSocket: each message begins
// with one of these bytes.
const (
	stdinChannel  = 0
	stdoutChannel = 1
	errorChannel  = 3 // one JSON status, the last message
)

// stream is the server's end of `kubectl exec` and `kubectl attach`.
type stream struct {
	t          *testing.T
	connection *websocket.Conn
}

// dialStream connects to the address in the answers of the CRI's Exec and Attach.
func dialStream(t *testing.T, url string) *stream {
	t.Helper()
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(url, "http"), "http://127.0.0.1/")
	if err != nil {
		t.Fatal(err)
	}
	config.Protocol = []string{"v4.channel.k8s.io"}
	connection, err := config.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(testhost.Patience(20 * time.Second))); err != nil {
		t.Fatal(err)
	}
	connection.PayloadType = websocket.BinaryFrame
	return &stream{t, connection}
}

func (s *stream) write(text string) {
	s.t.Helper()
	if err := websocket.Message.Send(s.connection, append([]byte{stdinChannel}, text...)); err != nil {
		s.t.Fatal(err)
	}
}

// until reads one channel until a text has come, and returns everything read.
func (s *stream) until(channel byte, text string) string {
	s.t.Helper()
	var all strings.Builder
	for !strings.Contains(all.String(), text) {
		var message []byte
		if err := websocket.Message.Receive(s.connection, &message); err != nil {
			s.t.Fatalf("no %q on channel %d after %q: %v", text, channel, all.String(), err)
		}
		if len(message) > 0 && message[0] == channel {
			all.Write(message[1:])
		}
	}
	return all.String()
}
