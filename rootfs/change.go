package rootfs

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Upper is one part of a writable layer: an overlayfs upper directory, and where the agent saw it.
type Upper struct {
	Dir    string `json:"dir"`             // the upper directory
	Prefix string `json:"prefix"`          // the sandbox path of the overlay
	Lower  string `json:"lower,omitempty"` // the host directory below it; empty: none
	// Since is when the layer was made, by the host's clock. A change of the host at or
	// after it is a conflict for Apply. Zero makes everything a conflict.
	Since time.Time `json:"since,omitzero"`
}

// ChangeKind says what happened to a path.
type ChangeKind string

// The kinds of change. A path whose file type changed is Changed.
const (
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed"
	Deleted ChangeKind = "deleted"
	// Renamed is a directory of the host's with another name, with everything in it.
	Renamed ChangeKind = "renamed"
)

// FileType is the type of file at a path.
type FileType string

// The file types of Linux, and one of git.
const (
	TypeFile    FileType = "file"
	TypeDir     FileType = "dir"
	TypeSymlink FileType = "symlink"
	TypeFIFO    FileType = "fifo"
	TypeSocket  FileType = "socket"
	TypeChar    FileType = "char"
	TypeBlock   FileType = "block"
	// TypeRef is a branch of the repository outside of the workspace, or a HEAD.
	TypeRef FileType = "ref"
)

// Change is one difference between the agent's files and the host's. The agent chose every
// string in it: print it with String only. It has no JSON form, which would replace bytes of a
// name that are not UTF-8: agent.Change has.
type Change struct {
	Kind ChangeKind
	Path string // inside the sandbox
	// Type, Size, Mode and Target describe the agent's file, for a deleted path the former
	// one. A deleted directory stands for everything below it. Type is empty if the layer
	// no longer shows what was deleted.
	Type   FileType
	Size   int64  // bytes of a regular file, else 0
	Mode   uint32 // the permission, setuid, setgid and sticky bits
	Target string // the target of a symbolic link, the commit of a ref
	// Sum stands for the bytes of a file where Access.Sums asks for it: equal sums, equal bytes. Empty otherwise.
	Sum string
	// Was is the former type, if it was another one. A directory is gone with everything below it.
	Was FileType
	// From is the former path of a renamed directory, inside the sandbox.
	From string
	// ExecutedBy names the host program that executes the file without being asked, as git
	// does with a hook; empty: clove knows none.
	ExecutedBy string
	// Instructs names the agents that follow the file's text in this folder; empty: clove knows
	// none.
	Instructs string
	// Unknown says why a program that clove does not know may execute it; empty: nothing points
	// to that.
	Unknown string
	// Lost names what Apply did not write of a file that it wrote, such as extended attributes;
	// empty: nothing.
	Lost string
	// Refused is why Apply did not make this change, or why Diff did not descend into it;
	// empty otherwise.
	Refused string
	// Contents are those of files and links that Access.Contents names; nil otherwise.
	Contents *Contents
}

// Class is the class of consent that the change needs, or "" if a yes to all is enough.
func (c Change) Class() Class {
	switch {
	case c.ExecutedBy != "":
		return ClassExecutable
	case c.Instructs != "":
		return ClassInstructions
	case c.Unknown != "":
		return ClassUnknown
	}
	return ""
}

// String is the change as one line: a letter as in docker diff, and the path. Characters
// that could move a terminal's cursor, reorder text or be mistaken for the end of a name
// are escaped as in a Go string.
func (c Change) String() string {
	var line strings.Builder
	letter, ok := map[ChangeKind]string{Added: "A ", Changed: "C ", Deleted: "D ", Renamed: "R "}[c.Kind]
	if !ok {
		letter = "? "
	}
	line.WriteString(letter + printable(c.Path))
	if c.Type == TypeSymlink && c.Kind != Deleted || c.Type == TypeRef && c.Target != "" {
		line.WriteString(" -> " + printable(c.Target))
	}
	if c.From != "" {
		line.WriteString(" (from " + printable(c.From) + ")")
	}
	if c.Was != "" {
		line.WriteString(" (was a " + string(c.Was) + ")")
	}
	if c.ExecutedBy != "" {
		line.WriteString(" (" + c.ExecutedBy + " executes it)")
	}
	if c.Instructs != "" {
		line.WriteString(" (instructions for " + c.Instructs + ")")
	}
	if c.Unknown != "" {
		line.WriteString(" (unknown: " + printable(c.Unknown) + ")")
	}
	if c.Lost != "" {
		line.WriteString(" (without " + c.Lost + ")")
	}
	if c.Refused != "" {
		line.WriteString(" (refused: " + c.Refused + ")")
	}
	return line.String()
}

// printable returns text unchanged if it is unambiguous, otherwise quoted. strconv quotes
// control characters and invisible ones that change the direction of text. Blanks are
// quoted too, because they could imitate clove's own words.
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
