//go:build root

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
)

// finds waits until the terminal shows a pattern, after what was found before, and returns its first group.
func (p *pty) finds(pattern string) string {
	p.h.t.Helper()
	find, buffer := regexp.MustCompile(pattern), make([]byte, 4096)
	p.master.SetReadDeadline(time.Now().Add(patience()))
	for {
		if at := find.FindSubmatchIndex(p.seen.Bytes()); at != nil {
			found := string(p.seen.Bytes()[at[len(at)-2]:at[len(at)-1]])
			p.seen = *bytes.NewBuffer(bytes.Clone(p.seen.Bytes()[at[1]:]))
			return found
		}
		n, err := p.master.Read(buffer)
		p.seen.Write(buffer[:n])
		if err != nil {
			p.h.t.Fatalf("the terminal never shows %s, but %q: %v", pattern, &p.seen, err)
		}
	}
}

// code waits for a question, until its answer counts, and returns the code of a yes.
func (p *pty) code() string {
	p.h.t.Helper()
	code := p.finds(`y ([a-z0-9]{4}): allow`)
	time.Sleep(500 * time.Millisecond) // what comes at once does not count
	return code
}

// visits is how often a server was visited.
func (n *internet) count(server string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, v := range n.visits {
		if v == server {
			count++
		}
	}
	return count
}

const (
	getAPI  = "curl -sS -m 60 http://api.example.com/; echo ends $?"
	apiSite = "tcp " + siteAddress + ":80"
)

// asksIn is a host in the test's internet, with cloved or without.
func asksIn(t *testing.T, group string, alone bool) (*host, *cloved, *internet) {
	t.Helper()
	if alone {
		h := newHost(t)
		return h, nil, newInternet(t, h)
	}
	d := newClovedFor(t, group)
	d.stop(unix.SIGTERM)
	n := newInternet(t, d.host)
	d.serve()
	return d.host, d, n
}

// A run in the foreground asks at its terminal, with cloved and without, for root and for a member of the group, with a
// terminal of the agent's own and without. A yes without the code is none; with it the connection is made without a retry.
func TestARunAsksAtItsTerminal(t *testing.T) {
	for _, who := range []string{"root without cloved", "root with cloved", "a member"} {
		t.Run(who, func(t *testing.T) {
			h, _, n := asksIn(t, groupName, who == "root without cloved")
			caller := *h
			if who == "a member" {
				caller.user = &syscall.Credential{Uid: memberUID, Gid: memberUID, Groups: []uint32{groupID}}
			}
			for _, flags := range [][]string{nil, {"-t"}} {
				visits := n.count(apiSite)
				p := newPty(h)
				p.h = &caller
				before := p.mode()
				p.run(append(flags, "--network", "ask", "--", "sh", "-c", "echo begins; "+getAPI)...)
				p.shows("asks to connect to api.example.com:80")
				p.code()
				p.types("y\r")
				p.shows("not the code")
				if n.count(apiSite) != visits {
					t.Error("it was allowed without the code")
				}
				p.types("y " + p.code() + "\r")
				p.shows("ends 0\r\n")
				if status := p.ends(); status != 0 || n.count(apiSite) != visits+1 {
					t.Errorf("%v: exit status %d: %q", flags, status, &p.seen)
				}
				if after := p.mode(); after != before {
					t.Errorf("%v: the terminal stays changed:\n%+v, before\n%+v", flags, after, before)
				}
				p = newPty(h)
				p.h = &caller
				p.run(append(flags, "--network", "ask", "--", "sh", "-c", getAPI)...)
				p.code()
				p.types("never\r")
				p.shows("is denied")
				if p.ends(); n.count(apiSite) != visits+1 {
					t.Errorf("%v: a no became a yes", flags)
				}
			}
		})
	}
}

// An answer elsewhere takes the question off the terminal, and an answer at the terminal takes it off the list.
func TestAnAnswerElsewhereTakesTheQuestionOff(t *testing.T) {
	h, d, n := asksIn(t, groupName, false)
	for _, flags := range [][]string{nil, {"-t"}} {
		p := newPty(h)
		p.run(append(flags, "--network", "ask", "--", "sh", "-c", getAPI+"; sleep 5")...) // the answer comes before the end
		p.code()
		d.ok("approvals", "allow", d.question(t).ID)
		p.shows("allowed by user 0")
		p.shows("ends 0")
		p.ends()
	}
	p := newPty(h)
	p.run("--name", "here", "--network", "ask", "--", "sh", "-c", getAPI+"; read line")
	code := p.code()
	d.question(t)
	p.types("y " + code + "\r")
	p.shows("ends 0")
	var all []api.Approval
	if err := json.Unmarshal([]byte(d.ok("approvals", "list", "--run", "here", "--json")), &all); err != nil || len(all) != 1 || all[0].State != api.ApprovalAllowed || len(all[0].Answers) != 1 {
		t.Errorf("%v %+v", err, all)
	}
	p.types("\r")
	if p.ends(); n.count(apiSite) != 3 {
		t.Errorf("%d visits", n.count(apiSite))
	}
}

// What was typed before the question is no answer, and neither is what an agent has the terminal say. The control of the second:
// where clove cannot know that the agent's output is shown at the terminal, because it goes to a file, a yes has no code,
// and the agent answers itself.
func TestATerminalDoesNotAnswerForThePerson(t *testing.T) {
	h, _, n := asksIn(t, "", true)
	// The terminal says what follows ESC ] 777 ; when it has shown the question: it is slow.
	const says = `printf '\033]777;y\r\007'; `
	forged := regexp.MustCompile("\x1b]777;([^\a]*)\a")
	for _, flags := range [][]string{nil, {"-t"}} {
		p := newPty(h)
		p.run(append(flags, "--network", "ask", "--", "sh", "-c", "echo begins; "+says+"sleep 1; "+getAPI)...)
		p.shows("begins")
		p.types("y\ry\r")
		said := p.finds(forged.String())
		p.code()
		p.types("\x1b[?62;c\x1b[3;4R\x1b[200~y\r\x1b[201~" + said)
		p.shows("not the code")
		p.code()
		if n.count(apiSite) != 0 {
			t.Fatalf("%v: the agent has answered itself", flags)
		}
		p.types("n\r")
		p.shows("is denied")
		p.ends()
	}
	p := newPty(h)
	shown, err := os.Create(filepath.Join(t.TempDir(), "shown"))
	if err != nil {
		t.Fatal(err)
	}
	defer shown.Close()
	p.prepare("run", "--rm", "--network", "ask", "--", "sh", "-c", says+getAPI)
	p.cmd.Stdout, p.cmd.Stderr = shown, shown
	p.start()
	p.shows("y: allow")
	text, err := os.ReadFile(shown.Name())
	if said := forged.FindSubmatch(text); err != nil || said == nil {
		t.Fatalf("%v %q", err, text)
	} else {
		time.Sleep(500 * time.Millisecond)
		p.types(string(said[1]))
	}
	if status := p.ends(); status != 0 || n.count(apiSite) != 1 {
		t.Errorf("the control: exit status %d, %d visits", status, n.count(apiSite))
	}
}

// An editor that has the whole screen gets it back, and draws it again, also after it was told to do something.
func TestAQuestionLeavesTheEditorsPicture(t *testing.T) {
	h, _, n := asksIn(t, "", true)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, "text"), []byte("the first line\nthe last line\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		p := newPty(h)
		p.run("-t", "--env", "TERM=xterm", "--workspace", dir, "--network", "ask", "--", "sh", "-c",
			"(until test -e go; do sleep 0.1; done; curl -sS -m 60 http://api.example.com/ >got 2>&1; echo $? >done) & exec vi -u NONE text; cat done")
		p.shows("\x1b[?1049h")
		p.shows("the last line")
		p.types(":w go\r")
		code := p.code()
		p.types([]string{"y " + code, "n", "never"}[i] + "\r")
		p.shows("\x1b[?1049h")
		p.shows("the first line")
		p.shows("the last line")
		p.types(":%s/first/second/\r")
		p.shows("second")
		p.types(":w changed\r")
		p.shows("changed")
		p.types(":q!\r")
		p.shows("\x1b[?1049l")
		if status := p.ends(); status != 0 {
			t.Errorf("exit status %d: %q", status, &p.seen)
		}
	}
	if n.count(apiSite) != 1 {
		t.Errorf("%d visits", n.count(apiSite))
	}
}

// A question ends with its run, and does not hold its end up. Where there is neither a terminal nor cloved, nothing starts.
func TestAQuestionEndsWithItsRun(t *testing.T) {
	h, _, _ := asksIn(t, "", true)
	for _, flags := range [][]string{nil, {"-t"}} {
		p := newPty(h)
		before := p.mode()
		p.run(append(flags, "--network", "ask", "--", "sh", "-c", "("+getAPI+") & sleep 2; echo last")...)
		p.code()
		p.shows("last")
		if status := p.ends(); status != 0 {
			t.Errorf("%v: exit status %d", flags, status)
		}
		if after := p.mode(); after != before {
			t.Errorf("%v: the terminal stays changed", flags)
		}
	}
	for _, args := range [][]string{{"run", "--network", "ask"}, {"run", "--network", "allowlist", "--ask", "net"}} {
		if r := h.clove(append(args, "--", "true")...); r.code != 125 || !strings.Contains(r.stderr, "neither a terminal to ask at nor cloved") || !strings.Contains(r.stderr, "hint:") {
			t.Errorf("%v: %+v", args, r)
		}
		if r := h.clove(append(append(args, "-d"), "--", "true")...); r.code == 0 || !strings.Contains(r.stderr, "cloved does not run") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if left, err := os.ReadDir(h.run); err != nil || len(left) > 1 {
		t.Error(err, fmt.Sprint(left))
	}
}
