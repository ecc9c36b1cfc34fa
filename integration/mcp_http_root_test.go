//go:build root

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// httpProgram is a program that uses clove mcp serve.
type httpProgram struct {
	t          *testing.T
	url, token string
}

// call makes a call of a tool, as the revision without sessions has it.
func (p httpProgram) call(tool string, arguments map[string]any) (status int, body string) {
	p.t.Helper()
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": arguments,
		"_meta": map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": map[string]any{"name": "test", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": map[string]any{}}}})
	mustDo(p.t, err)
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url, strings.NewReader(string(text)))
	mustDo(p.t, err)
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool} {
		r.Header.Set(name, value)
	}
	if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	answer, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(r)
	mustDo(p.t, err)
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	mustDo(p.t, err)
	return answer.StatusCode, string(got)
}

// Programs use the tools over HTTP with the user's token, each in the sandbox of its handle; without the token
// nothing is done. A signal ends all of it.
func TestProgramsUseToolsOverHTTP(t *testing.T) {
	for name, uid := range map[string]uint32{"root": 0, "a member": memberUID} {
		t.Run(name, func(t *testing.T) {
			d := newClovedFor(t, groupName)
			home := ownedFolder(t, uid)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			start := func(args ...string) (*bufio.Reader, func() error, func()) {
				cmd := d.command(ctx, append([]string{"mcp"}, args...)...)
				cmd.Dir, cmd.Env = home, append(cmd.Env, "HOME="+home)
				if uid != 0 {
					cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, Groups: []uint32{groupID}}}
				}
				out, err := cmd.StdoutPipe()
				mustDo(t, err)
				if args[0] == "serve" {
					out, err = cmd.StderrPipe()
				}
				mustDo(t, err)
				mustDo(t, cmd.Start())
				return bufio.NewReader(out), cmd.Wait, func() { mustDo(t, cmd.Process.Signal(unix.SIGTERM)) }
			}
			said, wait, _ := start("token")
			token, err := said.ReadString('\n')
			mustDo(t, err)
			mustDo(t, wait())
			said, wait, end := start("serve", "--port", "0")
			line, err := said.ReadString('\n')
			mustDo(t, err)
			url := regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/mcp`).FindString(line)
			if url == "" || strings.Contains(line, strings.TrimSpace(token)) {
				t.Fatalf("%q", line)
			}
			go func() { _, _ = io.Copy(io.Discard, said) }()
			code := func(text string) map[string]any { return map[string]any{"language": "python", "code": text} }
			for _, wrong := range []string{"", "x", strings.Repeat("A", 52)} {
				if status, body := (httpProgram{t, url, wrong}).call("run_code", code("print(1)")); status != http.StatusUnauthorized {
					t.Errorf("token %q: %d, %s", wrong, status, body)
				}
			}
			if live := d.ok("ps", "-a", "-q"); live != "" {
				t.Errorf("a sandbox was started without the token: %s", live)
			}
			p := httpProgram{t, url, strings.TrimSpace(token)}
			handleOf := regexp.MustCompile(`\[sandbox: ([A-Z2-7]{26})\]`)
			status, body := p.call("run_code", code("open('x', 'w').write('mine'); print(6 * 7)"))
			handle := handleOf.FindStringSubmatch(body)
			if status != http.StatusOK || handle == nil || !strings.Contains(body, `42\n`) {
				t.Fatalf("%d, %s", status, body)
			}
			if _, body := p.call("read_file", map[string]any{"path": "x", "sandbox": handle[1]}); !strings.Contains(body, "mine") {
				t.Errorf("%s", body)
			}
			if _, body := p.call("run_code", code("print(open('x').read())")); !strings.Contains(body, "FileNotFoundError") {
				t.Errorf("another sandbox has the file: %s", body)
			}
			if live := strings.Count(d.ok("ps", "-q"), "\n"); live != 2 {
				t.Errorf("control: %d live", live)
			}
			end()
			if err := wait(); err != nil {
				t.Error(fmt.Errorf("clove mcp serve: %w", err))
			}
			if left := d.ok("ps", "-a", "-q"); left != "" {
				t.Errorf("%s are left", left)
			}
		})
	}
}
