//go:build root

package report

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// browser is a Chromium with one page. It speaks the DevTools protocol over two pipes, a JSON
// object with a zero byte behind it for each message.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *os.File
	read    *bufio.Reader
	last    int    // id of the last call
	session string // of the page
	said    []string
}

// message is an answer (ID) or an event (Method).
type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func startBrowser(t *testing.T, path string) *browser {
	t.Helper()
	commands, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// Its own sandbox needs a user other than root; the pages are the test's own.
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "TMPDIR="+t.TempDir())
	cmd.ExtraFiles = []*os.File{commands, answers} // descriptors 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	commands.Close()
	answers.Close()
	b := &browser{t: t, to: to, from: from, read: bufio.NewReader(from)}
	t.Cleanup(func() {
		_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		_ = cmd.Wait() // it was killed
		to.Close()
		from.Close()
	})
	b.attach()
	return b
}

// attach makes a page, and has the browser report what happens in it.
func (b *browser) attach() {
	b.t.Helper()
	var target struct {
		ID string `json:"targetId"`
	}
	var session struct {
		ID string `json:"sessionId"`
	}
	b.decode(b.call("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	b.decode(b.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}), &session)
	b.session = session.ID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil)
	}
}

func (b *browser) decode(text []byte, into any) {
	b.t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		b.t.Fatal(err)
	}
}

// call returns the result of a method.
func (b *browser) call(method string, params any) json.RawMessage {
	b.t.Helper()
	b.last++
	call := map[string]any{"id": b.last, "method": method}
	if params != nil {
		call["params"] = params
	}
	if b.session != "" {
		call["sessionId"] = b.session
	}
	text, err := json.Marshal(call)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	id := b.last
	m := b.until(func(m message) bool { return m.ID == id })
	if m.Error != nil {
		b.t.Fatalf("%s: %s", method, m.Error)
	}
	return m.Result
}

// show loads a page and waits until it is there.
func (b *browser) show(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url})
	b.until(func(m message) bool { return m.Method == "Page.loadEventFired" })
}

// until reads messages up to one, and keeps what the page complains of, asks or loads.
func (b *browser) until(wanted func(message) bool) message {
	b.t.Helper()
	if err := b.from.SetReadDeadline(time.Now().Add(testhost.Patience(time.Minute))); err != nil {
		b.t.Fatal(err)
	}
	for {
		text, err := b.read.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("the browser does not answer: %v", err)
		}
		var m message
		b.decode(text[:len(text)-1], &m)
		switch m.Method {
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening":
			b.said = append(b.said, m.Method+" "+string(m.Params))
		case "Network.requestWillBeSent":
			b.request(m)
		}
		if wanted(m) {
			return m
		}
	}
}

// request keeps what is loaded beside the page itself.
func (b *browser) request(m message) {
	b.t.Helper()
	var r struct {
		Type    string `json:"type"`
		Request struct {
			URL string `json:"url"`
		} `json:"request"`
	}
	b.decode(m.Params, &r)
	if r.Type != "Document" {
		b.said = append(b.said, "it loads "+r.Request.URL)
	}
}
