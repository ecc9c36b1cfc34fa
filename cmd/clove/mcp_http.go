package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/policies/host"
	"clove.run/clove/tools/link"
)

// mcpPort is where clove mcp serve listens.
const mcpPort = 8413

// listen answers programs over HTTP until a signal comes.
func (p mcpServer) listen(c *cli.Context) error {
	port, err := strconv.ParseUint(cmp.Or(c.String(flagPort), strconv.Itoa(mcpPort)), 10, 16)
	if err != nil {
		return invalid(flagPort, "write a number up to 65535; 0 is any that is free", "%q is no port", c.String(flagPort))
	}
	return p.serve(c, true, []string{flagScope, flagYes, flagNew}, func(ctx context.Context, handle channel.Handler) error {
		return p.overHTTP(ctx, uint16(port), handle)
	})
}

// overHTTP has clove-mcp serve a listener. The token is checked there, and no request without it makes a call.
func (p mcpServer) overHTTP(ctx context.Context, port uint16, handle channel.Handler) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	token, err := ownToken(h, false)
	if err != nil {
		return err
	}
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(port)})
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagPort, Message: fmt.Sprintf("cannot listen on port %d", port), Hint: "choose another one; 0 is any that is free", Err: err}
	}
	defer listener.Close()
	file, err := listener.File()
	if err != nil {
		return err
	}
	d, err := openDoor()
	if err != nil {
		file.Close()
		return err
	}
	defer d.close()
	if err := d.serve(link.ToDoor{Serve: &link.Serve{Name: "http", Title: "clove", Token: token}}, file); err != nil {
		return err
	}
	p.say("clove", cyan, "serves http://"+listener.Addr().String()+"/mcp for programs that send Authorization: Bearer, and what clove mcp token prints")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- d.calls.Serve(ctx, handle) }()
	ended := make(chan error, 1)
	go func() { ended <- d.awaitEnd() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	cancel()
	<-served
	return err
}

// token prints the token, which it makes where there is none.
func (p mcpServer) token(c *cli.Context) error {
	if c.NArg() > 1 {
		return invalid("", "clove mcp token", "it takes no arguments, but there is %q", c.Args().Get(1))
	}
	for _, flag := range c.LocalFlagNames() {
		if flag != flagNew {
			return invalid(flag, "clove mcp --help says whose it is", "it is of another verb")
		}
	}
	h, err := p.host()
	if err != nil {
		return err
	}
	token, err := ownToken(h, c.Bool(flagNew))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.out, token)
	return err
}

// ownToken is the user's. A file that others can read is refused: they had it, and may have kept it.
func ownToken(h host.Host, another bool) (string, error) {
	home, _ := h.Lookup("HOME")
	dir, found := h.Lookup("XDG_CONFIG_HOME")
	if !found || !filepath.IsAbs(dir) {
		dir = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(dir) {
		return "", invalid("", "set it; the token is kept below it", "HOME is not set")
	}
	path := filepath.Join(dir, "clove", "mcp-token")
	info, err := os.Lstat(path)
	switch {
	case another || errors.Is(err, fs.ErrNotExist):
		token := rand.Text() + rand.Text()
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = atomicfile.Write(path, 0o600, []byte(token+"\n"))
		}
		if err == nil {
			return token, nil
		}
	case err == nil && (!info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0):
		return "", &agent.Error{Kind: agent.KindInvalid, Message: path + " is not a file that only you can read", Hint: "clove mcp token --new makes another one"}
	case err == nil:
		var text []byte
		if text, err = host.ReadBounded(path, 4<<10); err == nil {
			if token := strings.TrimSpace(string(text)); len(token) >= 2*26 {
				return token, nil
			}
			return "", &agent.Error{Kind: agent.KindInvalid, Message: path + " has no token", Hint: "clove mcp token --new makes another one"}
		}
	}
	return "", &agent.Error{Kind: agent.KindInvalid, Message: "cannot keep a token in " + path, Hint: "look at the permissions of its folder", Err: err}
}
