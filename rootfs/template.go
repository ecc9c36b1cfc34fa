package rootfs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// skeletonDir is the directory of the skeleton in a layer's image, beside the upper
// directories, so the agent cannot change it.
const skeletonDir = "skel"

// The kinds of templates: runs over the host's base and runs over a caller's root need
// different skeletons.
const (
	templateBase   = "base"
	templateRootfs = "rootfs"
)

// template is an empty layer of Bytes bytes with the skeleton in it. It is a file that each
// run copies.
type template struct {
	Path    string
	Kind    string
	Bytes   int64
	Entries []entry // the skeleton
}

// newTemplate derives the template's name from its content, so a change of the host's /etc
// makes a new one. The text of an entry has its stamp, and the disk's size is in the name.
func newTemplate(cfg Config, kind string, entries []entry) template {
	hash := sha256.New()
	for _, e := range entries {
		fmt.Fprintln(hash, e)
	}
	name := fmt.Sprintf("%s-%d-%.8x.img", kind, cfg.DiskBytes, hash.Sum(nil))
	return template{Path: filepath.Join(templatesDir(cfg.StateDir), name), Kind: kind, Bytes: cfg.DiskBytes, Entries: entries}
}

func templatesDir(stateDir string) string { return filepath.Join(stateDir, "templates") }

func (t template) String() string {
	return fmt.Sprintf("%s with %d names", filepath.Base(t.Path), len(t.Entries))
}

// open opens the template, and makes it at its first use. Concurrent makers each make their
// own, and the last rename wins; the files are equivalent. A template may be removed at any
// time, because a run that copies it has it open.
func (t template) open() (*os.File, error) {
	file, err := os.Open(t.Path)
	if err == nil {
		t.noteUse(file, time.Now())
		return file, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot open the template: %w", err)
	}
	scratch, err := newScratch(filepath.Dir(t.Path))
	if err != nil {
		return nil, fmt.Errorf("cannot make a template: %w", err)
	}
	defer scratch.remove()
	if file, err = t.make(scratch.path); err != nil {
		return nil, fmt.Errorf("cannot make a template of %d bytes: %w", t.Bytes, err)
	}
	t.removeOlder()
	return file, nil
}

// noteUse keeps the file's modification time within a day of its last use, for
// SweepTemplates. The access time is not kept on every host (noatime).
func (t template) noteUse(file *os.File, now time.Time) {
	if info, err := file.Stat(); err == nil && now.Sub(info.ModTime()) > 24*time.Hour {
		_ = os.Chtimes(t.Path, now, now) // after an error the template is only remade too early
	}
}

// make builds the template in scratch, which is in the same directory, so that the rename
// is atomic.
func (t template) make(scratch string) (*os.File, error) {
	content, image := filepath.Join(scratch, "content"), filepath.Join(scratch, "image")
	for _, name := range []string{"", "upper", "work", skeletonDir} {
		// The sandbox's root looks up names below these, so they are not 0700.
		if err := os.Mkdir(filepath.Join(content, name), 0o755); err != nil {
			return nil, err
		}
	}
	for _, e := range t.Entries {
		loaded, ok := e.load()
		if !ok {
			continue
		}
		if err := loaded.write(filepath.Join(content, skeletonDir)); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(image, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = file.Truncate(t.Bytes); err == nil {
		err = makeFileSystem(image, t.Bytes, content)
	}
	if err == nil {
		// Before the rename: after a power cut the name must not lead to an unfinished
		// image.
		err = file.Sync()
	}
	if err == nil {
		err = os.Rename(image, t.Path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// removeOlder removes templates of this kind and size for earlier states of the host's
// /etc, and what killed makers left.
func (t template) removeOlder() {
	like := filepath.Join(filepath.Dir(t.Path), fmt.Sprintf("%s-%d-*.img", t.Kind, t.Bytes))
	matches, _ := filepath.Glob(like) // fails on a bad pattern only
	for _, path := range matches {
		if path != t.Path {
			os.Remove(path)
		}
	}
	_ = eachAbandoned(filepath.Dir(t.Path), scratch.remove) // clove check reports what cannot be removed
}
