package supervisor

import (
	"bufio"
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// MethodPack writes a path of the agent's to a spool, and MethodUnpack makes a folder of the agent's of
// one: what agents give each other (runtime.Live). The parameters are PackParams. The end of the caller's
// connection ends both.
const (
	MethodPack   = "supervisor.pack"
	MethodUnpack = "supervisor.unpack"
)

// PackParams name a path inside and a spool.
type PackParams struct {
	Path agent.RawString `json:"path"`
	// Beneath, of MethodPack, is a folder with Path in it: no link is followed on the way from there.
	Beneath agent.RawString `json:"beneath,omitempty"`
	As      agent.RawString `json:"as,omitempty"` // of MethodPack: where it will be, inside of another sandbox
	Spool   string          `json:"spool"`        // of root's; MethodPack makes it
	Most    int64           `json:"most,omitempty"`
}

func (v *server) pack(c *rpc.Conn, request rpc.Message) {
	v.spooled(c, request, func(ctx context.Context, p PackParams) error {
		spool, err := NewSpool(ctx, p.Spool, p.Most)
		if err != nil {
			return err
		}
		return spool.Finish(v.live.Pack(ctx, string(p.Path), string(p.Beneath), string(p.As), spool))
	})
}

func (v *server) unpack(c *rpc.Conn, request rpc.Message) {
	v.spooled(c, request, func(ctx context.Context, p PackParams) error {
		spool, err := os.Open(p.Spool)
		if err != nil {
			return err
		}
		defer spool.Close()
		return v.live.Unpack(ctx, string(p.Path), spool)
	})
}

// spooled answers a request that lasts for as long as its caller stays.
func (v *server) spooled(c *rpc.Conn, request rpc.Message, do func(context.Context, PackParams) error) {
	var p PackParams
	if !decode(c, request, &p) {
		return
	}
	ctx, leave := context.WithCancel(v.context)
	defer leave()
	defer c.WhenGone(leave)()
	_ = conclude(c, request, api.Nothing{}, do(ctx, p))
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
