// Package callout runs the command, or posts to the URL, that a user names for an event of a run.
// Both get the event as JSON.
//
// The caller is a process of root's. A command has the user's ids and limits, cgroups that the
// caller made for it, and none of the caller's environment and groups, so it can do what the
// user could do at a login. The caller's program is started again for it (Main), because only
// a process can take limits and cgroups for itself. A URL is called by the caller itself, over sockets that belong to the user. Do keeps nothing of the answer but
// its status, and Ask the beginning of it.
package callout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"clove.run/clove/agent"
)

// Patience bounds one callout, with all attempts to reach a URL.
const Patience = 30 * time.Second

// Callout is what to do at one event.
type Callout struct {
	Target string // a command for sh, or a URL (agent.IsURL)
	Owner  agent.Owner
	Event  any      // for the command's standard input, or the body of a POST
	Env    []string // KEY=VALUE, for a command
	Within Within   // for a command

	said *answer // nil: it is not kept
}

// Do runs the command or posts to the URL, and returns why that failed. A command that takes
// longer than Patience is killed, with the processes of its session. Other processes that it
// started are in its cgroups, which the caller empties.
func (c Callout) Do(ctx context.Context) error {
	event, err := json.Marshal(c.Event)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if agent.IsURL(c.Target) {
		return c.post(ctx, event)
	}
	return c.execute(ctx, event)
}

// answerMost bounds what is read of an answer, in bytes.
const answerMost = 4096

// errAnswerMost refuses an answer instead of a part of it.
var errAnswerMost = fmt.Errorf("its answer has more than %d bytes", answerMost)

// Ask is Do, and returns what the command has written to its standard output, or the body of the answer.
func (c Callout) Ask(ctx context.Context) ([]byte, error) {
	c.said = &answer{}
	err := c.Do(ctx)
	if err == nil && len(c.said.text) > answerMost {
		err = errAnswerMost
	}
	return c.said.text, err
}

// answer keeps one byte more than an answer may have.
type answer struct{ text []byte }

func (a *answer) Write(part []byte) (int, error) {
	a.text = append(a.text, part[:min(len(part), answerMost+1-len(a.text))]...)
	return len(part), nil
}

// path is where a command finds programs.
const path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func (c Callout) execute(ctx context.Context, event []byte) error {
	order, err := json.Marshal(becoming{Within: c.Within, Owner: c.Owner, Shell: c.Target})
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "/proc/self/exe", Argument, string(order))
	complaint := &head{}
	command.Dir, command.Env, command.Stdin, command.Stderr = "/", append([]string{path}, c.Env...), bytes.NewReader(event), complaint
	if c.said != nil {
		command.Stdout = c.said
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second // what it left behind may hold the pipes
	switch err := command.Run(); {
	case ctx.Err() != nil:
		return fmt.Errorf("it did not end within %s", Patience)
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	case complaint.text != "":
		return fmt.Errorf("%w: %s", err, complaint.line())
	default:
		return err
	}
}

// head keeps the beginning of what a command writes.
type head struct{ text string }

// headMost bounds it, in bytes.
const headMost = 256

func (h *head) Write(part []byte) (int, error) {
	h.text += string(part[:min(len(part), headMost-len(h.text))])
	return len(part), nil
}

func (h *head) line() string {
	line, _, _ := strings.Cut(h.text, "\n")
	return line
}

// waits come before the attempts to reach a URL.
var waits = [...]time.Duration{0, time.Second, 4 * time.Second}

// post tries again where the other side may be back soon.
func (c Callout) post(ctx context.Context, event []byte) error {
	d, err := newDialer(c.Owner)
	if err != nil {
		return err
	}
	defer d.close()
	caller := &http.Client{
		// No proxy of the caller's environment, and no redirect, which could lead to somewhere
		// that the user did not name.
		Transport:     &http.Transport{DialContext: d.toName, DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for _, wait := range waits {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
		var again bool
		if again, err = postOnce(ctx, caller, c.Target, event, c.said); !again {
			return err
		}
	}
	return err
}

// postOnce also reports whether another attempt may succeed.
func postOnce(ctx context.Context, caller *http.Client, to string, event []byte, said *answer) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(event))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "clove")
	response, err := caller.Do(request)
	var failed *url.Error
	switch {
	case errors.As(err, &failed): // its text has the URL, which may hold a secret
		return true, failed.Err
	case err != nil:
		return true, err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return response.StatusCode/100 == 5, fmt.Errorf("it answered with status %d", response.StatusCode)
	}
	if said != nil {
		_, err = io.Copy(said, io.LimitReader(response.Body, answerMost+1))
	}
	return false, err
}
