package main

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// writeHome writes the file that the orders have for the home. No link is followed: one that
// an image has could lead to a directory of the host's.
func writeHome(orders *initproto.Orders) error {
	h := orders.Home
	if h == nil {
		return nil
	}
	whole := path.Join(h.Home, h.Path)
	dir, err := unix.Open(h.Home, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	steps := strings.Split(path.Dir(h.Path), "/")
	if steps[0] == "." {
		steps = nil
	}
	for _, name := range steps {
		if err != nil {
			break
		}
		above := dir
		dir, err = below(above, name)
		unix.Close(above)
	}
	if err != nil {
		return at(whole, err)
	}
	defer unix.Close(dir)
	return at(whole, create(dir, path.Base(whole), h))
}

// below opens a directory, which it makes where it is missing.
func below(dir int, name string) (int, error) {
	if err := unix.Mkdirat(dir, name, 0o755); err != nil && err != unix.EEXIST {
		return -1, err
	}
	return unix.Openat(dir, name, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// create writes the file. A part of it is not left: the client would read it.
func create(dir int, name string, h *initproto.HomeFile) error {
	if h.Replace {
		if err := unix.Unlinkat(dir, name, 0); err != nil && err != unix.ENOENT {
			return err
		}
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err == unix.EEXIST && h.Keep {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for text := []byte(h.Text); len(text) > 0; {
		n, err := unix.Write(fd, text)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			_ = unix.Unlinkat(dir, name, 0) // the agent does not start
			return err
		}
		text = text[n:]
	}
	return nil
}
