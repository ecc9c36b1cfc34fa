package runtime

import (
	"archive/tar"
	"context"
	"io"
	"os"
	"strings"

	"clove.run/clove/rootfs"
)

// Copied is what an archive of changes has.
type Copied struct {
	Files int   // and links
	Bytes int64 // of the files
	Left  []Left
	// Missing is how many changes were left out, of which Left has the first thousand.
	Missing int
}

// Left is a change that is not in an archive, and why.
type Left struct{ Path, Why string }

// Reasons for which a change is not copied.
const (
	errDeleted notCopied = "it was deleted"
	errRenamed notCopied = "it is a folder of the host's with another name"
	errRef     notCopied = "it is a branch of a repository"
	errUnread  notCopied = "the agent may not read it"
)

// CopyChanges writes the files, folders and links that a run's agent made or changed as a tar
// archive, whose names are the paths inside. It reads with the agent's rights, and leaves out what
// its list of what may be read does not have. Reading.Paths choose a part of the changes. to gets
// the archive of a live agent while that is frozen.
func (r *Runtime) CopyChanges(ctx context.Context, reading Reading, to io.Writer) (copied Copied, err error) {
	if reading.Live == nil && reading.Run.Layer == "" {
		_, err = chosenOf(nil, reading.Paths)
		return copied, err // nothing was kept: nothing changed
	}
	err = r.read(ctx, reading, func(l *layerReader) error {
		changes, err := l.changes(ctx, func(layer *rootfs.Layer) []rootfs.Upper { return layer.Uppers() })
		if err == nil {
			changes, err = chosenOf(changes, reading.Paths)
		}
		if err == nil {
			copied, err = l.copy(ctx, changes, to)
		}
		return err
	})
	return copied, err
}

// copy writes the archive of changes.
func (l *layerReader) copy(ctx context.Context, changes []rootfs.Change, to io.Writer) (copied Copied, err error) {
	user := l.Run.Spec.User
	o := &outward{copier: copier{hostID: l.layer.HostID(), uid: user.UID, gid: user.GID, kept: true, confined: true},
		to: to, archive: tar.NewWriter(to), flat: true}
	err = o.do(func() error {
		for _, c := range changes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.copyOne(o, c); err != nil {
				return copyFailed(c.Path, err)
			}
		}
		return o.archive.Close()
	})
	for _, left := range o.left {
		copied.Left = append(copied.Left, Left{"/" + left.name, left.reason()})
	}
	copied.Files, copied.Bytes, copied.Missing = o.files, o.bytes, o.missing
	return copied, err
}

// copyOne adds a change to an archive, or leaves it out.
func (l *layerReader) copyOne(o *outward, c rootfs.Change) error {
	name := strings.TrimPrefix(c.Path, "/")
	if why := l.uncopied(c); why != "" {
		o.leave(name, why)
		return nil
	}
	var place *os.File
	if err := l.root.Do(func() (err error) { place, err = l.layer.Place(c.Path); return err }); err != nil {
		o.leave(name, err)
		return nil
	}
	defer place.Close()
	return o.add(place, name, 0)
}

// uncopied is why a change is not copied, empty if it is.
func (l *layerReader) uncopied(c rootfs.Change) notCopied {
	switch {
	case c.Refused != "":
		return notCopied(c.Refused)
	case c.Kind == rootfs.Deleted:
		return errDeleted
	case c.Kind == rootfs.Renamed:
		return errRenamed
	case c.Type == rootfs.TypeRef:
		return errRef
	case !l.Run.Spec.Files.MayRead(c.Path):
		return errUnread
	}
	return ""
}
