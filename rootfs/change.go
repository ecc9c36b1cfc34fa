package rootfs

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Upper is one part of a writable layer: an overlayfs upper directory and
// where the agent saw it.
type Upper struct {
	Dir    string `json:"dir"`             // the upper directory
	Prefix string `json:"prefix"`          // the sandbox path at which it appeared
	Lower  string `json:"lower,omitempty"` // the host directory below it; empty: none
	// Since is when the layer was made, on the host's clock. What the host
	// changed at or after it is a conflict for Apply, so zero refuses to
	// replace anything.
	Since time.Time `json:"since,omitzero"`
}

// ChangeKind says what happened to a path.
type ChangeKind string

// The kinds of change. A path that became another type of file is Changed.
const (
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed"
	Deleted ChangeKind = "deleted"
)

// FileType says what stands at a path.
type FileType string

// The types of files that Linux knows.
const (
	TypeFile    FileType = "file"
	TypeDir     FileType = "dir"
	TypeSymlink FileType = "symlink"
	TypeFIFO    FileType = "fifo"
	TypeSocket  FileType = "socket"
	TypeChar    FileType = "char"
	TypeBlock   FileType = "block"
)

// Change is one difference between what the agent left and what was there.
// Every text in it was chosen by the agent: print it with String only. JSON
// replaces bytes of a name that are not UTF-8.
type Change struct {
	Kind ChangeKind `json:"kind"`
	Path string     `json:"path"` // inside the sandbox
	// Type, Size, Mode and Target describe what the agent left; for a deleted
	// path what was there, and a deleted directory stands for all below it.
	// Type is empty where the layer no longer tells what was deleted.
	Type   FileType `json:"type,omitempty"`
	Size   int64    `json:"size"`             // bytes of a regular file, else 0
	Mode   uint32   `json:"mode"`             // the permission, setuid, setgid and sticky bits
	Target string   `json:"target,omitempty"` // what a symbolic link says
	// Was is what stood there before, where that was of another type. A
	// directory that was is gone with all below it.
	Was FileType `json:"was,omitempty"`
	// ExecutedBy is the program of the host's that executes the file by itself, as
	// git does a hook, once it is there; empty: none that clove knows.
	ExecutedBy string `json:"executed_by,omitempty"`
	// Refused is why Apply did not make this change, or why Diff did not look
	// below it; empty when neither happened.
	Refused string `json:"refused,omitempty"`
}

// String returns the change as one line for people: a letter as docker diff
// prints it and the path. What could move a terminal's cursor, reorder text or
// be taken for the end of a name is escaped as in a Go string.
func (c Change) String() string {
	var line strings.Builder
	letter, ok := map[ChangeKind]string{Added: "A ", Changed: "C ", Deleted: "D "}[c.Kind]
	if !ok {
		letter = "? "
	}
	line.WriteString(letter + printable(c.Path))
	if c.Type == TypeSymlink && c.Kind != Deleted {
		line.WriteString(" -> " + printable(c.Target))
	}
	if c.Was != "" {
		line.WriteString(" (was a " + string(c.Was) + ")")
	}
	if c.ExecutedBy != "" {
		line.WriteString(" (" + c.ExecutedBy + " executes it)")
	}
	if c.Refused != "" {
		line.WriteString(" (refused: " + c.Refused + ")")
	}
	return line.String()
}

// printable returns text as it is when it reads unambiguously, else quoted.
// strconv's idea of printable leaves out control characters and the invisible
// ones that turn the direction of writing; a blank could fake our own words.
func printable(text string) string {
	quoted := strconv.Quote(text)
	if text == "" || strings.ContainsAny(text, " '") || quoted != `"`+text+`"` {
		return quoted
	}
	return text
}

// fileType translates the type bits of st_mode.
func fileType(mode uint32) FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return TypeDir
	case unix.S_IFLNK:
		return TypeSymlink
	case unix.S_IFIFO:
		return TypeFIFO
	case unix.S_IFSOCK:
		return TypeSocket
	case unix.S_IFCHR:
		return TypeChar
	case unix.S_IFBLK:
		return TypeBlock
	default:
		return TypeFile
	}
}
