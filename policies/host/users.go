package host

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// usersMost bounds what is read of a passwd or group file, in bytes.
const usersMost = 1 << 20

// User looks a name up in the passwd file of a root directory (passwd(5)).
func User(root, name string) (uid, gid uint32, found bool) {
	field := entry(root, "etc/passwd", name, 4)
	uid, found = number(field, 2)
	gid, has := number(field, 3)
	return uid, gid, found && has
}

// Group looks a name up in the group file of a root directory (group(5)).
func Group(root, name string) (gid uint32, found bool) {
	return number(entry(root, "etc/group", name, 3), 2)
}

// entry is the first line of that name, with at least so many fields. The tree may be hostile: no link leads out of
// it, and opening a FIFO does not wait.
func entry(root, file, name string, fields int) []string {
	tree, err := os.OpenRoot(root)
	if err != nil {
		return nil
	}
	defer tree.Close()
	f, err := tree.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > usersMost {
		return nil
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if field := strings.Split(lines.Text(), ":"); field[0] == name && len(field) >= fields {
			return field
		}
	}
	return nil
}

func number(field []string, at int) (uint32, bool) {
	if len(field) == 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(field[at], 10, 32)
	return uint32(n), err == nil
}
