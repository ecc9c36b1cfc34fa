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

// Containerd is where a node's containerd is configured, and how it is made to
// read that again.
type Containerd struct {
	Config string // path of config.toml; it need not exist
	// Restart makes it read the configuration; nil: nobody does now. It is not
	// called when nothing changed.
	Restart func(context.Context) error
}

// Result is what was done.
type Result struct {
	Config    string `json:"config"`    // the file itself, links followed
	Changed   bool   `json:"changed"`   // it is another one than before
	Restarted bool   `json:"restarted"` // containerd has read it
	// Cloved is nil where nobody asked for it.
	Cloved *ClovedResult `json:"cloved,omitempty"`
}

// Install registers h, keeps a copy of the file as it was before the first time,
// and has containerd read it. A second call changes nothing. Where containerd does
// not come back the old file is put in place again, and the error says so.
func Install(ctx context.Context, c Containerd, h Handler) (Result, error) {
	if err := checkBinary(h.Binary); err != nil {
		return Result{}, err
	}
	return c.edit(ctx, func(f *file) (err error) {
		if h.systemdCgroup, err = importedCgroups(f); err != nil {
			return err
		}
		made, err := Register(f.text, h)
		// The copy of the first time stays: a later one would have clove in it.
		if before, _, _ := split(f.text); err == nil && f.exists && len(before) == len(f.text) {
			f.copied = f.path + backupSuffix
			err = f.write(f.copied, f.text)
		}
		f.text = made
		return err
	})
}

// importedCgroups is what the last import says of cgroups: it counts more than
// the file itself.
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

// Uninstall takes away what Install wrote, whatever the handler was called, with
// the copy, if the file is the same again, and with a file that Install made. A
// second call changes nothing. Containers of the handler are not looked for.
func Uninstall(ctx context.Context, c Containerd) (Result, error) {
	return c.edit(ctx, func(f *file) error {
		made, err := Unregister(f.text)
		if err != nil {
			return err
		}
		backup, err := os.ReadFile(f.path + backupSuffix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.exists = f.exists && len(made) > 0 // without a copy, clove made the file
		case err != nil:
			return err
		case bytes.Equal(backup, made):
			f.obsolete = f.path + backupSuffix
		}
		f.text = made
		return nil
	})
}

// checkBinary: containerd would only find out with the first pod.
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

// file is a configuration file and what is to become of it.
type file struct {
	path     string
	text     []byte
	exists   bool
	copied   string // a backup that is new with this change
	obsolete string // a backup that nobody needs any more
	mode     fs.FileMode
	uid, gid int
}

// edit changes the file as change says, and has containerd read it.
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
	f.exists = f.exists || !old.exists
	if err := f.store(); err != nil {
		return result, agent.Failed("containerd's configuration", err)
	}
	result.Changed = true
	if c.Restart != nil {
		if err := c.Restart(ctx); err != nil {
			result.Changed = false
			return result, c.takeBack(old, f.copied, err)
		}
		result.Restarted = true
	}
	if f.obsolete != "" {
		err = os.Remove(f.obsolete)
	}
	return result, agent.Failed("containerd's configuration", err)
}

// takeBack puts the old file in place for a containerd that did not come up.
// The caller's context may be what ended the restart.
func (c Containerd) takeBack(old file, copied string, cause error) error {
	err := old.store()
	if err == nil && copied != "" {
		err = os.Remove(copied)
	}
	err = errors.Join(cause, err, c.Restart(context.Background()))
	return &agent.Error{Kind: agent.KindInternal, Step: "containerd", Message: "it did not start with the new configuration, so it has the old one again",
		Hint: "its log says why; without a restart, use --restart no", Err: err}
}

// open reads the file behind links: a rename would replace a link by a file.
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

// store makes the file what f says, at once or not at all.
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

// write puts text into place with the file's owner and mode.
func (f file) write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.Replace(path, 0o600, func(file *os.File) error {
		_, err := file.Write(text)
		return errors.Join(err, file.Chown(f.uid, f.gid), file.Chmod(f.mode))
	})
}
