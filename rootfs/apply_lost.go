package rootfs

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Apply writes no extended attributes, because programs of the host obey some of them (file
// capabilities, ACLs, what a backup restores), and no special bits. The list names
// those that a file had (Change.Lost), and hard links that are none any more.

// mostAttributes bounds the names of attributes of one file that are read, in bytes.
const mostAttributes = 4 << 10

// lose notes what is not written of e.
func (a *applier) lose(e layerEntry, file *os.File) {
	a.lost = append(a.lost, attributesOf(file)...)
	for _, special := range []struct {
		bit  uint32
		name string
	}{{unix.S_ISUID, "set-user-id"}, {unix.S_ISGID, "set-group-id"}, {unix.S_ISVTX, "sticky"}} {
		if e.st.Mode&special.bit != 0 {
			a.lost = append(a.lost, "its "+special.name+" bit")
		}
	}
}

// attributesOf names the extended attributes of an open file, without those of overlayfs and
// of the host's security modules, which each file has.
func attributesOf(file *os.File) (names []string) {
	buffer := make([]byte, mostAttributes)
	n, err := unix.Flistxattr(int(file.Fd()), buffer)
	if err == unix.ERANGE {
		return []string{"its extended attributes"}
	}
	for name := range strings.SplitSeq(string(buffer[:max(n, 0)]), "\x00") {
		switch {
		case name == "" || strings.HasPrefix(name, "trusted.") || name == "security.selinux" || name == "security.SMACK64" || name == "security.ima":
		case strings.HasPrefix(name, "system.posix_acl_"):
			if acl := "its ACL"; !slices.Contains(names, acl) {
				names = append(names, acl)
			}
		default:
			names = append(names, "its attribute "+printable(name))
		}
	}
	return names
}

// loseLinks notes, when all is done, the files that have not all of the agent's names for them
// as hard links: a name was refused, not asked for, or is another file on the host.
func (a *applier) loseLinks(g *agenda) {
	for _, of := range a.links {
		if uint64(len(of.names)) == of.count {
			continue
		}
		for _, rel := range of.names {
			s := &g.steps[g.at[rel]]
			s.change.Lost = strings.Join(slices.DeleteFunc([]string{s.change.Lost, "some of its hard links"}, func(t string) bool { return t == "" }), ", ")
		}
	}
}
