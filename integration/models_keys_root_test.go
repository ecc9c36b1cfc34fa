//go:build root

package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// leaks are ways in which a provider hands out the key that it got, by the word that asks
// for it.
var leaks = map[string]func(w http.ResponseWriter, key string){
	"refusal": func(w http.ResponseWriter, key string) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s","code":"%s"}}`, key, key)
	},
	"headers": func(w http.ResponseWriter, key string) {
		for _, name := range []string{"X-Request-Id", "Request-Id", "Retry-After", "Content-Type", "Set-Cookie", "X-Key"} {
			w.Header().Set(name, key)
		}
		io.WriteString(w, answerOfProvider)
	},
	"words": func(w http.ResponseWriter, key string) {
		io.WriteString(w, strings.NewReplacer("small-1", key, "stop", key, `"usage"`, `"service_tier":"`+key+`","usage"`).Replace(answerOfProvider))
	},
	"pieces": func(w http.ResponseWriter, key string) {
		for _, b := range []byte(strings.Replace(answerOfProvider, "from the provider", key, 1)) {
			w.Write([]byte{b})
			http.NewResponseController(w).Flush()
		}
	},
	"stream": func(w http.ResponseWriter, key string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: %[1]s\ndata: {\"choices\":[{\"delta\":{\"content\":\"%[1]s\"}}]}\n\ndata: {\"error\":{\"message\":\"%[1]s\"}}\n\n", key)
	},
	"redirection": func(w http.ResponseWriter, key string) {
		w.Header().Set("Location", "/"+key)
		w.WriteHeader(http.StatusFound)
		io.WriteString(w, key)
	},
	"status line": func(w http.ResponseWriter, key string) { speak(w, "HTTP/1.1 200 "+key+"\r\nContent-Length: 0\r\n\r\n") },
	"no status":   func(w http.ResponseWriter, key string) { speak(w, "HTTP/1.1 "+key+"\r\n\r\n") },
	"no header":   func(w http.ResponseWriter, key string) { speak(w, "HTTP/1.1 200 OK\r\n"+key+"\r\n\r\n") },
	"bad length": func(w http.ResponseWriter, key string) {
		speak(w, "HTTP/1.1 200 OK\r\nContent-Length: "+key+"\r\n\r\n")
	},
	"half": func(w http.ResponseWriter, key string) {
		speak(w, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"a\":\""+key)
	},
	"chunks": func(w http.ResponseWriter, key string) {
		speak(w, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;"+key+"\r\n{\r\n"+key+"\r\n")
	},
}

// speak answers with bytes that need not be HTTP, and ends the connection.
func speak(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		io.WriteString(conn, text)
		conn.Close()
	}
}

// leak answers as the request's text asks.
func leak(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	for word, do := range leaks {
		if strings.Contains(string(text), `"`+word+`"`) {
			do(w, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			return
		}
	}
	io.WriteString(w, answerOfProvider)
}

// thief prints all that it gets for each word, and all that it can read of processes. Then
// it waits, and asks until it has an answer.
const thief = `
import glob, http.client, json, os, sys
host, port = os.environ["OPENAI_BASE_URL"].split("/")[2].split(":")
def ask(method, path, body=None, headers={}):
    try:
        c = http.client.HTTPConnection(host, int(port), timeout=20)
        c.request(method, path, body, headers)
        a = c.getresponse()
        print(a.status, a.reason, a.getheaders(), flush=True)
        text = a.read()
        print(text, flush=True)
        return text
    except Exception as e:
        print(repr(e), flush=True)
    return b""
def call(word, **more):
    return ask("POST", "/v1/chat/completions", json.dumps(dict({"model": "small", "messages": [{"role": "user", "content": word}]}, **more)), {"Authorization": "Bearer mine"})
for word in WORDS:
    call(word)
    call(word, stream=True)
for method, path in [("GET", "/v1/models"), ("GET", "/v1/models/small"), ("GET", "/"), ("TRACE", "/v1/chat/completions"), ("OPTIONS", "*"), ("GET", "/debug/pprof/heap"), ("POST", "/v1/files"), ("PUT", "/v1/models")]:
    ask(method, path, None, {"X": "y" * 1000})
ask("POST", "/v1/chat/completions", "{")
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline") + glob.glob("/proc/*/task/*/comm"):
    try: print(path, open(path, "rb").read(), flush=True)
    except OSError as e: print(path, e, flush=True)
print("ready", flush=True)
sys.stdin.read()
while b"from the provider" not in call("hello"): pass
`

// inMemory reports whether a text is in the memory that a process has written.
func inMemory(t *testing.T, pid int, text string) bool {
	t.Helper()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") {
			continue
		}
		part := make([]byte, min(to-from, 1<<30))
		n, _ := memory.ReadAt(part, from) // some parts cannot be read
		if strings.Contains(string(part[:n]), text) {
			return true
		}
	}
	return false
}

// shownWith names the environments and command lines of all processes that have a text.
func shownWith(t *testing.T, text string) (found []string) {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if shown, err := os.ReadFile(path); err == nil && strings.Contains(string(shown), text) {
				found = append(found, path)
			}
		}
	}
	return found
}

// A provider that hands its key out by every way there is does not reach the agent with it,
// nor any record, event, log, audit, metric, state, environment or command line. The key is
// in its file and in clove-upstream alone. The control: an agent that asked the provider
// itself would get the key each time.
func TestAKeyIsNowhere(t *testing.T) {
	p := newProvider(t)
	p.answers(leak)
	file, secrets := p.configure(t)
	var words []string
	for word := range leaks {
		words = append(words, word)
		if got := askDirectly(t, p.URL, word); !strings.Contains(got, secretKey) {
			t.Errorf("control: %s: %q", word, got)
		}
	}
	list, err := json.Marshal(words)
	if err != nil {
		t.Fatal(err)
	}
	d := newCloved(t)
	d.stop(unix.SIGTERM)
	metrics := filepath.Join(d.run, "metrics.sock")
	d.settings = "models: " + file + "\nsecrets: " + secrets + "\nlog_level: debug\nmetrics_socket: " + metrics + "\n"
	d.serve()
	p.calls.Store(0)
	r := d.start([]string{"--network=none", "--model=small", "--name=thief"}, "python3", "-c", strings.Replace(thief, "WORDS", string(list), 1))
	var said strings.Builder
	for line := ""; line != "ready"; line = r.line() {
		said.WriteString(line + "\n")
	}
	if n := int(p.calls.Load()); n < 2*len(leaks) || p.key.Load() != "Bearer "+secretKey {
		t.Errorf("control: %d calls, with %v", n, p.key.Load())
	}
	if found := shownWith(t, secretKey); len(found) > 0 {
		t.Errorf("the key is in %v", found)
	}
	for program, has := range map[string]bool{"clove-models": false, "clove-upstream": true} {
		pids := childrenNamed(t, d.cmd.Process.Pid, program)
		if len(pids) != 1 {
			t.Fatalf("%s: %v", program, pids)
		}
		if inMemory(t, pids[0], secretKey) != has {
			t.Errorf("the key is in the memory of %s: %t", program, !has)
		}
		// A traceback of the program's goes into the log, as far as it is kept.
		if err := unix.Kill(pids[0], unix.SIGABRT); err != nil {
			t.Fatal(err)
		}
	}
	end := r.wait()
	texts := map[string]string{"agent": said.String() + end.stdout + end.stderr, "log": d.log(), "metrics": scrape(t, "unix", metrics, "?agents=1")}
	if !strings.Contains(end.stdout, "from the provider") || !strings.Contains(texts["metrics"], "clove_") || texts["log"] == "" {
		t.Errorf("control: %s%s; %d bytes of log, %d of metrics", end.stdout, end.stderr, len(texts["log"]), len(texts["metrics"]))
	}
	record, err := json.Marshal(end.record)
	if err != nil {
		t.Fatal(err)
	}
	texts["record"] = string(record)
	texts["events"] = d.clove("events", "--once", "--json", "--since", "1h").stdout
	texts["audit"] = d.clove("audit", "tail").stdout
	for name, text := range texts {
		if strings.Contains(text, secretKey) {
			t.Errorf("the key is in the %s:\n%s", name, around(text, secretKey))
		}
		if text == "" {
			t.Errorf("control: no %s", name)
		}
	}
	for _, dir := range []string{d.state, d.run} {
		if found := filesWith(t, dir, secretKey); len(found) > 0 {
			t.Errorf("the key is in %v", found)
		}
	}
	if found := filesWith(t, secrets, secretKey); len(found) != 1 {
		t.Errorf("control: the key is in %v", found)
	}
}

// around is what stands about a text.
func around(all, text string) string {
	at := strings.Index(all, text)
	return all[max(0, at-200):min(len(all), at+200)]
}

// askDirectly returns all that a provider answers, status line and header included.
func askDirectly(t *testing.T, url, word string) string {
	t.Helper()
	body := `{"messages":[{"role":"user","content":"` + word + `"}]}`
	text := sendDirectly(t, url, fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", secretKey, len(body), body))
	return strings.ReplaceAll(text, "\r\n1\r\n", "") // pieces, as chunks
}
