package people

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"clove.run/clove/agent"
)

// idleTime is how long a sandbox of a handle may be unused, and maxSandboxes how many there are at once.
const (
	idleTime     = 30 * time.Minute
	maxSandboxes = 16
)

// place is the part of arguments that says in which sandbox.
type place struct {
	Sandbox string `json:"sandbox"`
}

func (p place) handle() string { return p.Sandbox }

// newSandbox says whether a tool makes a sandbox where it gets no handle.
type newSandbox bool

const (
	fresh newSandbox = true
	known newSandbox = false
)

// inSandbox makes a tool's function of one that works in a sandbox.
func inSandbox[A interface{ handle() string }](do func(*sandbox, context.Context, A) (answer, error), made newSandbox) function {
	f := typed(func(s *Server, ctx context.Context, a A) (answer, error) {
		handle := a.handle()
		b, err := s.enter(&handle, made)
		if err != nil {
			return answer{}, err
		}
		defer s.leave(handle, b)
		done, err := do(b, ctx, a)
		if handle != a.handle() {
			done.text += "\n[sandbox: " + handle + "]\n"
		}
		return done, err
	})
	f.inside = true
	return f
}

// enter finds the sandbox of a handle, or makes one and its handle. leave must be called.
func (s *Server) enter(handle *string, made newSandbox) (*sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.sandboxes == nil:
		return nil, errEnding
	case !s.Handles && *handle != "":
		return nil, wrong("omit it", "there is one sandbox, which has no handle")
	case s.Handles && *handle == "" && made == known:
		return nil, wrong("give the handle that run_code returned", "no sandbox is named")
	}
	b := s.sandboxes[*handle]
	switch {
	case b == nil && *handle != "":
		return nil, wrong("without a handle, run_code makes a new one", "there is no sandbox %.64q: it has ended, or never was", *handle)
	case b == nil && len(s.sandboxes) == maxSandboxes:
		return nil, &agent.Error{Kind: agent.KindBusy, Message: fmt.Sprintf("there are %d sandboxes", maxSandboxes), Hint: "use one of them by its handle; those that are unused end after 30 minutes"}
	case b == nil:
		b = &sandbox{server: s}
		if s.Handles {
			*handle = rand.Text()
		}
		s.sandboxes[*handle] = b
	}
	if b.calls++; b.idle != nil {
		b.idle.Stop()
	}
	return b, nil
}

// errEnding is the answer to a call that comes too late.
var errEnding = &agent.Error{Kind: agent.KindConflict, Message: "clove mcp is ending"}

// leave ends a use. Of a sandbox with a handle, the time in which it is unused begins with the end of the last.
func (s *Server) leave(handle string, b *sandbox) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.calls--; b.calls > 0 || !s.Handles {
		return
	}
	b.idle = time.AfterFunc(idleTime, func() { s.endUnused(handle, b) })
}

// endUnused ends a sandbox, if it is still unused.
func (s *Server) endUnused(handle string, b *sandbox) {
	s.mu.Lock()
	unused := b.calls == 0 && s.sandboxes[handle] == b
	if unused {
		delete(s.sandboxes, handle)
	}
	s.mu.Unlock()
	if !unused {
		return
	}
	if err := b.close(context.Background()); err != nil {
		s.Report("the end of a sandbox: " + reason(err))
	}
}
