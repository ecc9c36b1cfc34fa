package scripted

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// provider serves a script on loopback.
func provider(t *testing.T, script string) *httptest.Server {
	t.Helper()
	s, err := ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(New(s))
	t.Cleanup(server.Close)
	return server
}

// post returns the answer to one request. Its body is closed at the end of the test.
func post(t *testing.T, server *httptest.Server, path, body string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// decoded is an answer.
type decoded map[string]any

// whole posts, and decodes an answer that is no stream.
func whole(t *testing.T, server *httptest.Server, path, body string, status int) decoded {
	t.Helper()
	response := post(t, server, path, body)
	if response.StatusCode != status || response.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %s, %s", path, response.Status, response.Header.Get("Content-Type"))
	}
	var d decoded
	if err := json.NewDecoder(response.Body).Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d
}

// at returns the JSON of a part of an answer: choices.0.message.
func (d decoded) at(path string) string {
	var value any = map[string]any(d)
	for key := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			if value = nil; len(v) > int(key[0]-'0') {
				value = v[key[0]-'0']
			}
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// event is one server-sent event.
type event struct {
	name string
	data string
}

// stream posts, and reads the events of an answer to its end.
func stream(t *testing.T, server *httptest.Server, path, body string) []event {
	t.Helper()
	response := post(t, server, path, body)
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%s: %s, %s", path, response.Status, response.Header.Get("Content-Type"))
	}
	var events []event
	for reader := bufio.NewReader(response.Body); ; {
		e, err := readEvent(reader)
		if err == io.EOF {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// readEvent reads up to the empty line that ends an event.
func readEvent(reader *bufio.Reader) (e event, err error) {
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return e, err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "":
			return e, nil
		case strings.HasPrefix(line, "event: "):
			e.name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			e.data += line[len("data: "):]
		}
	}
}

// picked is an event as one line: its name, and the parts of its data that are there.
func (e event) picked(t *testing.T, paths ...string) string {
	t.Helper()
	if e.data == "[DONE]" {
		return e.data
	}
	var d decoded
	if err := json.Unmarshal([]byte(e.data), &d); err != nil {
		t.Fatalf("%q: %v", e.data, err)
	}
	words := []string{}
	if e.name != "" {
		words = append(words, e.name)
	}
	for _, path := range paths {
		if part := d.at(path); part != "null" {
			words = append(words, part)
		}
	}
	return strings.Join(words, " ")
}

// compare reports the first event that differs.
func compare(t *testing.T, events []event, want []string, paths ...string) {
	t.Helper()
	if len(events) != len(want) {
		t.Errorf("%d events, want %d", len(events), len(want))
	}
	for i, e := range events {
		if got := e.picked(t, paths...); i >= len(want) || got != want[i] {
			t.Errorf("event %d: %s", i, got)
		}
	}
}
