package main

import (
	"bytes"
	"fmt"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"

	"clove.run/clove/rootfs"
)

// patch is a change with its contents as git writes it, below the line of the list. git and
// patch(1) skip that line. What has no contents, such as a directory, is that line alone.
func patch(c rootfs.Change) string {
	line := c.String() + "\n"
	switch {
	case c.Contents == nil:
		return line
	case c.Contents.Omitted != "":
		return line + "contents are not shown: " + c.Contents.Omitted + "\n"
	case c.Was != "": // git has no patch between two types
		var removed, added string
		if hasContents(c.Was) {
			removed = patchFrom(c.Path, gitMode(c.Was, c.Contents.Mode), "", c.Contents.Before, nil)
		}
		if hasContents(c.Type) {
			added = patchFrom(c.Path, "", gitMode(c.Type, c.Mode), nil, c.Contents.After)
		}
		return line + removed + added
	case c.Kind == rootfs.Deleted:
		return line + patchFrom(c.Path, gitMode(c.Type, c.Mode), "", c.Contents.Before, nil)
	case c.Kind == rootfs.Added:
		return line + patchFrom(c.Path, "", gitMode(c.Type, c.Mode), nil, c.Contents.After)
	}
	return line + patchFrom(c.Path, gitMode(c.Type, c.Contents.Mode), gitMode(c.Type, c.Mode), c.Contents.Before, c.Contents.After)
}

func hasContents(t rootfs.FileType) bool { return t == rootfs.TypeFile || t == rootfs.TypeSymlink }

// gitMode is st_mode in octal, with the permissions that git knows.
func gitMode(t rootfs.FileType, mode uint32) string {
	if t == rootfs.TypeSymlink {
		return "120000"
	}
	return fmt.Sprintf("100%03o", mode&0o777)
}

// patchFrom is the patch of one file. The mode of a side that does not exist is empty.
func patchFrom(at, oldMode, newMode string, before, after []byte) string {
	if isBinary(before) || isBinary(after) {
		return "contents are not shown: binary\n" // git apply would refuse the whole patch for its header
	}
	name := strings.TrimPrefix(at, "/")
	from, to := gitName("a/"+name), gitName("b/"+name)
	text := fmt.Sprintf("diff --git %s %s\n", from, to)
	switch {
	case oldMode == "":
		text, from = text+"new file mode "+newMode+"\n", "/dev/null"
	case newMode == "":
		text, to = text+"deleted file mode "+oldMode+"\n", "/dev/null"
	case oldMode != newMode:
		text += "old mode " + oldMode + "\nnew mode " + newMode + "\n"
	}
	if strings.Contains(name, " ") {
		from, to = from+"\t", to+"\t" // where the name ends
	}
	return text + udiff.Unified(from, to, string(before), string(after))
}

// isBinary is git's rule: a NUL among the first 8000 bytes.
func isBinary(text []byte) bool { return bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 }

// gitName quotes a name as git does, if it has characters that a reader could take for something
// else.
func gitName(name string) string {
	if printable(name) == name && !strings.ContainsAny(name, `"\`) {
		return name
	}
	quoted := []byte{'"'}
	for _, b := range []byte(name) {
		switch {
		case b == '"' || b == '\\':
			quoted = append(quoted, '\\', b)
		case b < 0x20 || b >= 0x7f:
			quoted = fmt.Appendf(quoted, `\%03o`, b)
		default:
			quoted = append(quoted, b)
		}
	}
	return string(append(quoted, '"'))
}

// printableText is printable for text of several lines, with tabs.
func printableText(text string) string {
	var b strings.Builder
	for text != "" {
		end := strings.IndexAny(text, "\n\t")
		if end < 0 {
			return b.String() + printable(text)
		}
		b.WriteString(printable(text[:end]) + text[end:end+1])
		text = text[end+1:]
	}
	return b.String()
}
