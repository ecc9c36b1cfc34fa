package runtime

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/callout"
	"clove.run/clove/internal/nsthread"
)

// ApprovalEvent is what --on-ask gets as JSON.
type ApprovalEvent struct {
	Event     string       `json:"event"` // eventApproval
	ID        agent.ID     `json:"id"`
	Name      string       `json:"name"`
	Owner     uint32       `json:"owner"`
	Namespace string       `json:"namespace,omitempty"`
	Approval  api.Approval `json:"approval"`
}

const eventApproval = "approval"

// ApprovalReply is the answer of --on-ask, as JSON. No output, or an empty body, leaves the question to people.
type ApprovalReply struct {
	Answer string `json:"answer"` // allow, deny, once, or for TIME, such as for 1h
	HMAC   string `json:"hmac"`   // of ApprovalText, in hexadecimal digits
}

// ApprovalText is what the HMAC-SHA256 of a reply is over. The answer is the reply's.
func ApprovalText(a api.Approval, answer string) string {
	return strings.Join([]string{"clove-approval-1", a.ID, a.Digest, a.Expires.UTC().Format(time.RFC3339Nano), answer, ""}, "\n")
}

// read returns what a reply says, if its proof is right.
func (r ApprovalReply) read(a api.Approval, key []byte) (p api.ApprovalRespondParams, err error) {
	p = api.ApprovalRespondParams{RunParams: api.RunParams{Run: string(a.Run)}, ID: a.ID, Digest: a.Digest, Command: true}
	given, err := hex.DecodeString(r.HMAC)
	if err != nil || r.HMAC == "" {
		return p, errors.New("it has no hmac in hexadecimal digits")
	}
	sum := hmac.New(sha256.New, key)
	_, _ = io.WriteString(sum, ApprovalText(a, r.Answer)) // never fails
	if !hmac.Equal(given, sum.Sum(nil)) {
		return p, errors.New("its hmac is not that of this question and this answer")
	}
	switch text, timed := strings.CutPrefix(r.Answer, "for "); {
	case r.Answer == "deny":
	case r.Answer == "allow", r.Answer == "once":
		p.Allow, p.Once = true, r.Answer == "once"
	case timed:
		holds, err := time.ParseDuration(text)
		if err != nil || holds < time.Millisecond {
			return p, fmt.Errorf("%.32q is no time", text)
		}
		p.Allow, p.ForMS = true, holds.Milliseconds()
	default:
		return p, fmt.Errorf("%.32q is no answer: it is allow, deny, once or for TIME", r.Answer)
	}
	return p, nil
}

// Bounds of a key, in bytes.
const (
	askKeyLeast = 16
	askKeyMost  = 4096
)

// readAskKey reads the key of a run's owner with the owner's rights, and refuses one that others may read. A line feed at
// its end is no part of it.
func readAskKey(owner agent.Owner, spec agent.Spec) (key []byte, err error) {
	path := spec.Kernel.OnAskKey
	defer func() {
		if err != nil {
			err = &agent.Error{Kind: agent.KindInvalid, Step: "--on-ask-key", Message: "cannot use the key", Err: err,
				Hint: "as the run's owner: (umask 077; openssl rand -hex 32 >FILE)"}
		}
	}()
	thread, err := nsthread.StartAs(nsthread.Identity{UID: owner.UID, GID: owner.GID})
	if err != nil {
		return nil, err
	}
	defer thread.Close()
	err = thread.Do(func() error {
		if key, err = readOwn(owner, path); err == nil {
			err = checkHidden(spec, path)
		}
		return err
	})
	return key, err
}

// checkHidden refuses a key that the agent is shown, wherever links lead.
func checkHidden(spec agent.Spec, path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	behind := func(dir string) string {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return real
		}
		return dir // the owner cannot go there, and the key is not there either
	}
	spec.Files.Workspace, spec.Files.Binds = behind(spec.Files.Workspace), slices.Clone(spec.Files.Binds)
	for i := range spec.Files.Binds {
		spec.Files.Binds[i].Source = behind(spec.Files.Binds[i].Source)
	}
	if dir := spec.ShownFrom(real); dir != "" {
		return fmt.Errorf("the agent could read it: %s is %s, which lies in %s", path, real, dir)
	}
	return nil
}

func readOwn(owner agent.Owner, path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	var stat unix.Stat_t
	switch err := unix.Fstat(fd, &stat); {
	case err != nil:
		return nil, err
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%s is no regular file", path)
	case stat.Uid != owner.UID:
		return nil, fmt.Errorf("%s belongs to user %d, and the run to user %d", path, stat.Uid, owner.UID)
	case stat.Mode&0o077 != 0:
		return nil, fmt.Errorf("others may use %s: its mode is %04o, and must be 0600", path, stat.Mode&0o7777)
	}
	text, err := io.ReadAll(io.LimitReader(file, askKeyMost+1))
	text = bytes.TrimSuffix(text, []byte("\n"))
	if err == nil && (len(text) < askKeyLeast || len(text) > askKeyMost) {
		err = fmt.Errorf("%s has %d bytes, and a key has %d to %d", path, len(text), askKeyLeast, askKeyMost)
	}
	return text, err
}

// asked has --on-ask answer a question, once. If it does not, people do.
func (c *callouts) asked(a api.Approval, respond func(context.Context, api.ApprovalRespondParams) error) {
	const flag = "--on-ask"
	target := c.spec.Kernel.OnAsk
	c.mu.Lock()
	defer c.mu.Unlock()
	if target == "" || c.over || c.questions[a.ID] {
		return
	}
	c.questions[a.ID] = true
	call := callout.Callout{Target: target, Owner: c.owner,
		Env: append(environmentOfRun(eventApproval, c.spec), "CLOVE_APPROVAL="+a.ID, "CLOVE_KIND="+string(a.Kind), "CLOVE_DIGEST="+a.Digest,
			"CLOVE_EXPIRES="+a.Expires.UTC().Format(time.RFC3339Nano)),
		Event: ApprovalEvent{Event: eventApproval, ID: c.spec.ID, Name: c.spec.Name, Owner: c.owner.UID, Namespace: c.spec.Kernel.Namespace, Approval: a}}
	c.enter(flag, func() error {
		return c.do(call, func(call callout.Callout) error {
			text, err := call.Ask(c.ctx)
			if err != nil || len(bytes.TrimSpace(text)) == 0 {
				return err
			}
			return c.answer(a, text, respond)
		})
	})
}

// answer brings a reply, or has its fault recorded.
func (c *callouts) answer(a api.Approval, text []byte, respond func(context.Context, api.ApprovalRespondParams) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, callout.Patience)
	defer cancel()
	key, err := readAskKey(c.owner, c.spec)
	var reply ApprovalReply
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		if decoder.Decode(&reply) != nil || decoder.More() {
			err = errors.New(`it is not {"answer": ..., "hmac": ...}`)
		}
	}
	var p api.ApprovalRespondParams
	if err == nil {
		p, err = reply.read(a, key)
	}
	if err != nil {
		p = api.ApprovalRespondParams{RunParams: api.RunParams{Run: string(a.Run)}, ID: a.ID, Digest: a.Digest, Command: true, Fault: err.Error()}
	}
	return respond(ctx, p)
}
