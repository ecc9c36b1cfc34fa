package main

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/client"
	"clove.run/clove/internal/sparse"
	"clove.run/clove/policies/host"
)

// copyOut unpacks the archive that the run sends. The agent wrote it, so it is unpacked
// beneath one directory (os.Root), which no name and no link in it leads out of. folder reports
// whether it made one.
func copyOut(ctx context.Context, s *screen, send sender, from, to string) (folder bool, err error) {
	if to == "-" {
		if isTerminal(s.out) {
			return false, invalid("", "write > FILE or | tar t behind it, or name a directory", "an archive is not written to a terminal")
		}
		return false, send(ctx, from, s.out)
	}
	// On a signal the partial file is removed, instead of being left under its
	// temporary name.
	ctx, stop := signal.NotifyContext(ctx, unix.SIGHUP, unix.SIGINT, unix.SIGTERM)
	defer stop()
	first := firstName(from)
	// As cp(1) does: into a directory that exists, under the old name; otherwise the
	// last part is the new name.
	dir, name := to, first
	if !host.IsDirectory(to) {
		dir, name = filepath.Dir(to), filepath.Base(to)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, &agent.Error{Kind: agent.KindNotFound, Message: "cannot copy to " + to, Hint: "name a directory that exists", Err: err}
	}
	defer root.Close()
	reader, writer := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := send(ctx, from, writer)
		writer.CloseWithError(err)
		sent <- err
	}()
	err = unpack(reader, root, first, name)
	if err == nil {
		// The sender reports its error only after the end of the archive.
		_, err = io.Copy(io.Discard, reader)
	}
	reader.Close()
	if serr := <-sent; err == nil {
		err = serr
	}
	if ctx.Err() != nil {
		return false, &agent.Error{Kind: agent.KindInternal, Message: "the copy was interrupted", Hint: "every file that has its final name is complete"}
	}
	info, lerr := root.Lstat(name)
	return lerr == nil && info.IsDir(), err
}

// firstName is the name that an archive has for a path: its last part, and "." for the
// whole root.
func firstName(inside string) string {
	if name := path.Base(path.Clean(inside)); name != "/" {
		return name
	}
	return "."
}

// unpack writes an archive beneath root and calls its first element name. An element
// that is no part of the first one is refused: it could be any file that exists there.
func unpack(from io.Reader, root *os.Root, first, name string) error {
	archive := tar.NewReader(from)
	var folders []madeFolder
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err = leaveFolders(root, folders, "")
			return err
		}
		if err != nil {
			return err
		}
		inside := path.Clean(header.Name)
		rest, part := strings.CutPrefix(inside, first)
		switch {
		// The whole root goes into a folder of its own. Its elements are cleaned as
		// absolute paths, so ".." cannot leave that.
		case first == ".":
			inside = path.Join(name, path.Join("/", inside))
		case !part || rest != "" && rest[0] != '/':
			return fmt.Errorf("the archive holds %q, which was not asked for", header.Name)
		default:
			inside = name + rest
		}
		// Before the next element is written: it may be in a directory whose time must
		// not be set yet.
		if folders, err = leaveFolders(root, folders, inside); err != nil {
			return err
		}
		made, err := unpackOne(archive, header, root, inside)
		if err != nil {
			return fmt.Errorf("cannot write %s: %w", inside, err)
		}
		// A directory that existed keeps its time.
		if made && header.Typeflag == tar.TypeDir {
			folders = append(folders, madeFolder{inside, header.ModTime, fs.FileMode(header.Mode) & fs.ModePerm})
		}
	}
}

// unpackOne replaces what has the name, and never writes through it: it may be a link
// that an earlier element of the archive made. A directory that exists is used as it
// is, and counts as not made.
func unpackOne(content io.Reader, header *tar.Header, root *os.Root, name string) (made bool, err error) {
	mode := fs.FileMode(header.Mode) & fs.ModePerm // no set-id bit of an agent's reaches the host
	var create func(temporary string) error
	switch header.Typeflag {
	case tar.TypeDir:
		// The owner's bits are needed to write what follows into it.
		err := root.Mkdir(name, mode|0o700)
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		return err == nil, err
	case tar.TypeSymlink:
		create = func(temporary string) error { return root.Symlink(header.Linkname, temporary) }
	case tar.TypeReg:
		create = func(temporary string) error { return writeNew(content, root, temporary, header, mode) }
	default:
		return false, fmt.Errorf("it is neither a file nor a directory nor a link")
	}
	err = replaceWhole(root, name, func(temporary string) error {
		if err := create(temporary); err != nil {
			return err
		}
		return setModified(root, temporary, header.ModTime)
	})
	return err == nil, err
}

// replaceWhole makes something under a random name and renames it: a copy that is cut
// short leaves the old file. An empty directory in the way is removed first, because
// rename(2) does not replace it by a file.
func replaceWhole(root *os.Root, name string, create func(temporary string) error) error {
	temporary := path.Join(path.Dir(name), ".clove-"+rand.Text())
	err := create(temporary)
	if err == nil {
		if err = root.Rename(temporary, name); errors.Is(err, unix.EISDIR) || errors.Is(err, fs.ErrExist) {
			err = errors.Join(root.Remove(name), root.Rename(temporary, name)) // an empty directory
		}
	}
	if err != nil {
		_ = root.Remove(temporary) // it may never have been made
	}
	return err
}

// writeNew creates a file that must not exist, so it cannot follow a link.
// The umask does not count: it would not be the file that it was.
func writeNew(content io.Reader, root *os.Root, name string, header *tar.Header, mode fs.FileMode) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	room := int64(math.MaxInt64) // the sender bounds holes
	err = sparse.Read(file, header, content, &room)
	if err == nil {
		err = file.Chmod(mode)
	}
	return errors.Join(err, file.Close())
}

// copyIn packs a path of the host and sends it. If the target is no directory inside,
// its last part is the new name.
func copyIn(ctx context.Context, s *screen, d *client.Client, from string, to place) error {
	if from == "-" {
		return d.CopyIn(ctx, to.run, to.path, s.in)
	}
	if _, err := os.Lstat(from); err != nil {
		return &agent.Error{Kind: agent.KindNotFound, Message: "cannot copy " + from, Hint: "check the path; it is one of the host's", Err: err}
	}
	send := func(dir, name string) error {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(pack(writer, from, name)) }()
		defer reader.Close()
		return d.CopyIn(ctx, to.run, dir, reader)
	}
	// Only the other side knows whether the target is a directory, so it is tried as
	// one first.
	err := send(to.path, filepath.Base(filepath.Clean(from)))
	if agent.KindOf(err) == agent.KindNotFound {
		return send(path.Dir(to.path), path.Base(to.path))
	}
	return err
}

// pack writes the tree at from as an archive whose names begin with name.
func pack(to io.Writer, from, name string) error {
	archive := tar.NewWriter(to)
	err := filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		return packOne(to, archive, file, path.Join(name, filepath.ToSlash(relative)), entry)
	})
	if err != nil {
		return err // without Close: an unfinished archive would add a second error
	}
	return archive.Close()
}

// packOne keeps modes and times. Owners are left out: inside, everything belongs to the
// agent.
func packOne(to io.Writer, archive *tar.Writer, file, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = os.Readlink(file); err != nil {
			return err
		}
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%s is neither a file nor a directory nor a link", file)
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	// Only PAX has fractions of a second; other formats round, half of the times into the future.
	header.Format, header.AccessTime, header.ChangeTime = tar.FormatPAX, time.Time{}, time.Time{}
	header.Name, header.Uname, header.Gname, header.Uid, header.Gid = name, "", "", 0, 0
	if !info.Mode().IsRegular() {
		return archive.WriteHeader(header)
	}
	content, err := os.Open(file)
	if err != nil {
		return err
	}
	defer content.Close()
	parts, err := sparse.Parts(content, header.Size)
	if err != nil {
		return err
	}
	short, err := sparse.Write(to, archive, header, content, parts)
	if err == nil && short {
		err = fmt.Errorf("%s became shorter while it was copied", file)
	}
	return err
}
