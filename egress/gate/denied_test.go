package gate

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"clove.run/clove/egress/wire"
)

// ask sends a request to address and returns the answer.
func ask(t *testing.T, address, request string) (*http.Response, string) {
	t.Helper()
	near := dial(t, address)
	_, err := io.WriteString(near, request)
	check(t, err)
	response, err := http.ReadResponse(bufio.NewReader(near), nil)
	check(t, err)
	body, err := io.ReadAll(response.Body)
	check(t, err)
	return response, string(body)
}

func TestADeniedRequestIsToldWhy(t *testing.T) {
	t.Parallel()
	denied := wire.Answer{Result: wire.ResultDenied, Rule: "--deny a.example\x1b[31m", Hint: "ask for --allow a.example"}
	for _, c := range []struct {
		name   string
		first  wire.Answer
		status int
		want   []string
	}{
		{"at once", denied, 403, []string{"a.example is denied", "--deny a.example?[31m", "\nask for --allow a.example\n"}},
		{"by its name", wire.Answer{Result: wire.ResultVerify}, 403, []string{"a.example is denied", "--deny a.example?[31m"}},
		{"unreachable", wire.Answer{Result: wire.ResultUnreachable}, 502, []string{"192.0.2.1:80 is allowed, but cannot be reached"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := begin(t, wire.Limits{}, func(r wire.Request) wire.Answer {
				if r.Open.Shown == "" {
					return c.first
				}
				return denied
			})
			request := strings.Replace(fmt.Sprintf(requestHead, "a.example"), "GET", "POST", 1) + "a body that no server reads"
			response, body := ask(t, to(t, s, "192.0.2.1:80"), request)
			if response.StatusCode != c.status || !response.Close || response.Header.Get("Content-Type") != "text/plain; charset=us-ascii" {
				t.Errorf("%+v", response)
			}
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("%q lacks %q", body, want)
				}
			}
		})
	}
}

// TestEverybodyElseIsReset: clients without HTTP, or not on port 80.
func TestEverybodyElseIsReset(t *testing.T) {
	t.Parallel()
	s, _ := begin(t, wire.Limits{}, func(wire.Request) wire.Answer { return wire.Answer{Result: wire.ResultDenied} })
	s.waits.denied = deniedTimeout / 20 // for clients that send nothing; those that send a request would be answered
	for _, c := range []struct{ target, data string }{
		{"192.0.2.1:443", fmt.Sprintf(requestHead, "a.example")},
		{"192.0.2.1:22", ""},
		{"192.0.2.1:80", "\x16\x03\x01"},
		{"192.0.2.1:80", "EHLO a.example\r\n"},
		{"192.0.2.1:80", ""},
	} {
		expectReset(t, to(t, s, c.target), c.data)
	}
}

func TestARequestWithoutANameIsTold(t *testing.T) {
	t.Parallel()
	s, b := begin(t, wire.Limits{}, func(wire.Request) wire.Answer { return wire.Answer{Result: wire.ResultVerify} })
	response, body := ask(t, to(t, s, "192.0.2.1:80"), "GET / HTTP/1.0\r\n\r\n")
	if response.StatusCode != 403 || !strings.Contains(body, "Host field") {
		t.Errorf("%d %q", response.StatusCode, body)
	}
	if got := get(t, b.refused); got.Reason != wire.ReasonNoName {
		t.Errorf("%+v", got)
	}
}
