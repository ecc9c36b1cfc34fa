package node

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
)

// backupSuffix names the copy of a configuration as it was before clove.
const backupSuffix = ".before-clove"

// Containerd describes where a node's containerd has its configuration, and how to make
// it read that again.
type Containerd struct {
	Config string // path of config.toml; it need not exist
	// Restart makes containerd read the configuration; nil: it is not restarted now. It
	// is not called when nothing changed.
	Restart func(context.Context) error
}

// Result reports what Install or Uninstall did.
type Result struct {
	Config    string `json:"config"`    // the file itself, links followed
	Changed   bool   `json:"changed"`   // its text has changed
	Restarted bool   `json:"restarted"` // containerd has read it
	// Cloved is nil if cloved was left out (--cloved no).
	Cloved *ClovedResult `json:"cloved,omitempty"`
}

// Install registers h, keeps a copy of the file as it was before the first time, and
// makes containerd read it. A second call changes nothing. If containerd does not start
// again, the old file is restored, and the error says so.
func Install(ctx context.Context, c Containerd, h Handler) (Result, error) {
	if err := checkBinary(h.Binary); err != nil {
		return Result{}, err
	}
	return c.edit(ctx, func(f *file) (err error) {
		if h.systemdCgroup, err = importedCgroups(f); err != nil {
			return err
		}
		made, err := Register(f.text, h)
		// Only the first time: a later copy would contain clove's block.
		if before, _, _ := split(f.text); err == nil && f.exists && len(before) == len(f.text) {
			f.copied = f.path + backupSuffix
			err = f.write(f.copied, f.text)
		}
		f.text = made
		return err
	})
}

// importedCgroups is what the last import says about cgroups. It overrides the file
// itself, as in containerd 2.
func importedCgroups(f *file) (systemd *bool, err error) {
	before, after, err := split(f.text)
	if err != nil {
		return nil, err
	}
	own, err := parse(append(bytes.Clone(before), after...))
	if err != nil {
		return nil, err
	}
	imports, err := own.readImports(filepath.Dir(f.path))
	for _, imported := range imports {
		if said := imported.systemdCgroup(); said != nil {
			systemd = said
		}
	}
	return systemd, err
}

// Uninstall removes what Install wrote, whatever the handler was called. It removes the
// copy if the file is the same again, and the file if Install made it. A second call
// changes nothing. It does not look for containers of the handler.
func Uninstall(ctx context.Context, c Containerd) (Result, error) {
	return c.edit(ctx, func(f *file) error {
		made, err := Unregister(f.text)
		if err != nil {
			return err
		}
		backup, err := os.ReadFile(f.path + backupSuffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.exists = f.exists && len(made) > 0 // without a copy, Install made the file
		case err != nil:
			return err
		case bytes.Equal(backup, made):
			f.obsolete = f.path + backupSuffix
		}
		f.text = made
		return nil
	})
}

// checkBinary finds now what containerd would only report with the first pod.
func checkBinary(path string) error {
	info, err := os.Stat(path)
	switch {
	case !filepath.IsAbs(path):
		return &agent.Error{Kind: agent.KindInvalid, Step: "runtime", Message: path + " is not an absolute path", Hint: "name clove-oci as containerd will find it"}
	case err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		return &agent.Error{Kind: agent.KindNotFound, Step: "runtime", Message: "there is no program " + path, Hint: "install clove-oci there, or name it with --runtime", Err: err}
	}
	return nil
}

// file is a configuration file, with what is to become of it.
type file struct {
	path     string
	text     []byte
	exists   bool
	copied   string // a backup that this change made
	obsolete string // a backup that is not needed any more
	mode     fs.FileMode
	uid, gid int
}

// edit changes the file as change says, and makes containerd read it. It writes nothing
// if the text stays the same, so that a repeated call restarts nothing.
func (c Containerd) edit(ctx context.Context, change func(*file) error) (Result, error) {
	f, err := open(c.Config)
	if err != nil {
		return Result{}, agent.Failed("containerd's configuration", err)
	}
	old := f
	if err := change(&f); err != nil {
		return Result{}, agent.Failed("containerd's configuration", err)
	}
	result := Result{Config: f.path}
	if bytes.Equal(old.text, f.text) {
		return result, nil
	}
	// A file that did not exist is made now. One that change has given up is removed.
	f.exists = f.exists || !old.exists
	if err := f.store(); err != nil {
		return result, agent.Failed("containerd's configuration", err)
	}
	result.Changed = true
	if c.Restart != nil {
		if err := c.Restart(ctx); err != nil {
			// takeBack restores the old text.
			result.Changed = false
			return result, c.takeBack(old, f.copied, err)
		}
		result.Restarted = true
	}
	// Last, when nothing can fail any more that the copy could be needed for.
	if f.obsolete != "" {
		err = os.Remove(f.obsolete)
	}
	return result, agent.Failed("containerd's configuration", err)
}

// takeBack restores the old file for a containerd that did not start, and starts it
// again: a node without containerd runs nothing. The caller's context may be what ended
// the restart, so it is not used.
func (c Containerd) takeBack(old file, copied string, cause error) error {
	err := old.store()
	if err == nil && copied != "" {
		err = os.Remove(copied)
	}
	err = errors.Join(cause, err, c.Restart(context.Background()))
	return &agent.Error{Kind: agent.KindInternal, Step: "containerd", Message: "it did not start with the new configuration, so it has the old one again",
		Hint: "its log says why; without a restart, use --restart no", Err: err}
}

// open reads the file that a link leads to: a rename over the link would replace it by
// a file.
func open(path string) (file, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return file{path: path, mode: 0o644, uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	var stat unix.Stat_t
	if err == nil {
		err = unix.Stat(real, &stat)
	}
	if err != nil {
		return file{}, err
	}
	text, err := os.ReadFile(real)
	return file{path: real, text: text, exists: true, mode: fs.FileMode(stat.Mode & 0o777), uid: int(stat.Uid), gid: int(stat.Gid)}, err
}

// store makes the file what f says, all of it or nothing.
func (f file) store() error {
	if f.exists {
		return f.write(f.path, f.text)
	}
	err := os.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write replaces the file and keeps its owner and mode.
func (f file) write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Replace(path, 0o600, func(file *os.File) error {
		_, err := file.Write(text)
		return errors.Join(err, file.Chown(f.uid, f.gid), file.Chmod(f.mode))
	})
}
