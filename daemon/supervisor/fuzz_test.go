package supervisor

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// FuzzOrder: an order has an id, or is refused.
func FuzzOrder(f *testing.F) {
	for _, seed := range []string{``, `{}`, `null`, `{"spec":{"id":"0123456789abcdef"}}`, `{"spec":{"id":"../../etc"}}`, `{"log_cap_bytes":1e9}`, `{"owner":{"uid":-1}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		order, err := ReadOrder(pipeOf(t, text))
		if err == nil && !order.Spec.ID.Valid() {
			t.Errorf("%q is taken for an order", text)
		}
	})
}

// FuzzAnswer: any bytes of a broken supervisor become an answer or an error of the API's set.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{`{"started":true}`, `{"error":{"code":1,"data":7}}`, `{"error":{"code":-32002,"message":"x","data":{"word":"conflict"}}}`, `{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		var a Answer
		if json.Unmarshal(text, &a) == nil && a.Error != nil {
			_ = a.Error.Error()
		}
		_ = api.ParseError(text).Known()
	})
}

// FuzzSession: whatever a session's caller sends, it reaches only the process of that session,
// and the session ends with the caller.
func FuzzSession(f *testing.F) {
	for _, seed := range []string{`{"jsonrpc":"2.0","method":"session.input","params":{"data":"aGk="}}`, `{"method":"session.input","params":{"data":1}}`,
		`{"method":"session.resize","params":{"rows":-1}}`, `{"method":"session.close_input"}`, `[]`, "\x00", `{"method":"session.detach"}`} {
		f.Add([]byte(seed + "\n"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		here, there := net.Pipe()
		defer here.Close()
		_ = here.SetDeadline(time.Now().Add(time.Minute))
		go func() { _, _ = there.Write(text); there.Close() }()
		_ = receive(rpc.New(here), io.Discard)
	})
}

// pipeOf is a pipe with all of text in it.
func pipeOf(t *testing.T, text []byte) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = w.Write(text); w.Close() }()
	return r
}
