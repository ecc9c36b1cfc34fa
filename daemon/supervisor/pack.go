package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// MethodPack writes a path of the agent's to a spool, and MethodUnpack makes a folder of the agent's of
// one: what agents give each other (runtime.Live). The parameters are PackParams. The end of the caller's
// connection ends both. MethodSize, MethodRead and MethodWrite do the same for one file: it says its size, is
// copied to a spool if it has Most bytes, or is made of one.
const (
	MethodPack   = "supervisor.pack"
	MethodUnpack = "supervisor.unpack"
	MethodSize   = "supervisor.size"
	MethodRead   = "supervisor.read"
	MethodWrite  = "supervisor.write"
)

// SizeResult is the size of a file.
type SizeResult struct {
	Bytes int64 `json:"bytes"`
}

// PackParams name a path inside and a spool.
type PackParams struct {
	Path agent.RawString `json:"path"`
	// Beneath, of MethodPack, is a folder with Path in it: no link is followed on the way from there.
	Beneath agent.RawString `json:"beneath,omitempty"`
	As      agent.RawString `json:"as,omitempty"` // of MethodPack: where it will be, inside of another sandbox
	Spool   string          `json:"spool"`        // of root's; MethodPack makes it
	Most    int64           `json:"most,omitempty"`
}

func (v *server) size(c *rpc.Conn, request rpc.Message) {
	v.spooled(c, request, func(ctx context.Context, p PackParams) (any, error) {
		bytes, err := v.live.FileSize(ctx, string(p.Path))
		return SizeResult{bytes}, err
	})
}

func (v *server) read(c *rpc.Conn, request rpc.Message) {
	v.spooled(c, request, nothing(func(ctx context.Context, p PackParams) error {
		spool, err := NewSpool(ctx, p.Spool, p.Most+1) // with one more it is refused as changed
		if err != nil {
			return err
		}
		return spool.Finish(v.live.ReadFile(ctx, string(p.Path), p.Most, spool))
	}))
}

func (v *server) write(c *rpc.Conn, request rpc.Message) { v.takes(c, request, v.live.WriteFile) }

func (v *server) pack(c *rpc.Conn, request rpc.Message) {
	v.spooled(c, request, nothing(func(ctx context.Context, p PackParams) error {
		spool, err := NewSpool(ctx, p.Spool, p.Most)
		if err != nil {
			return err
		}
		return spool.Finish(v.live.Pack(ctx, string(p.Path), string(p.Beneath), string(p.As), spool))
	}))
}

func (v *server) unpack(c *rpc.Conn, request rpc.Message) { v.takes(c, request, v.live.Unpack) }

// takes gives the agent what a spool has.
func (v *server) takes(c *rpc.Conn, request rpc.Message, take func(context.Context, string, io.Reader) error) {
	v.spooled(c, request, nothing(func(ctx context.Context, p PackParams) error {
		spool, err := os.Open(p.Spool)
		if err != nil {
			return err
		}
		defer spool.Close()
		return take(ctx, string(p.Path), spool)
	}))
}

// nothing is an answer without content.
func nothing(do func(context.Context, PackParams) error) func(context.Context, PackParams) (any, error) {
	return func(ctx context.Context, p PackParams) (any, error) { return api.Nothing{}, do(ctx, p) }
}

// spooled answers a request that lasts for as long as its caller stays.
func (v *server) spooled(c *rpc.Conn, request rpc.Message, do func(context.Context, PackParams) (any, error)) {
	var p PackParams
	if !decode(c, request, &p) {
		return
	}
	ctx, leave := context.WithCancel(v.context)
	defer leave()
	defer c.WhenGone(leave)()
	result, err := do(ctx, p)
	_ = conclude(c, request, result, err)
}

// Spool is a file of root's that is written within a bound, while a context lasts.
type Spool struct {
	ctx    context.Context
	file   *os.File
	buffer *bufio.Writer
	left   int64
	most   int64
}

// NewSpool makes the file, with at most so many bytes. Finish must be called.
func NewSpool(ctx context.Context, name string, most int64) (*Spool, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &Spool{ctx: ctx, file: file, buffer: bufio.NewWriterSize(file, 256<<10), left: most, most: most}, nil
}

// Write implements io.Writer.
func (s *Spool) Write(data []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	if s.left -= int64(len(data)); s.left < 0 {
		return 0, &agent.Error{Kind: agent.KindConflict, Step: "copy", Message: fmt.Sprintf("the files are larger than %d MiB, the disk that they are for", s.most>>20),
			Hint: "copy a part of them, or ask for a larger --disk"}
	}
	return s.buffer.Write(data)
}

// Finish closes the file, and removes it if it is not whole: with an error of its writer, which it
// returns.
func (s *Spool) Finish(err error) error {
	if err == nil {
		err = s.buffer.Flush()
	}
	if cerr := s.file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(s.file.Name())
	}
	return err
}
