package main

import (
	"strings"
	"testing"

	"clove.run/clove/rootfs"
)

func TestPatch(t *testing.T) {
	file := func(kind rootfs.ChangeKind, before, after string, c rootfs.Change) rootfs.Change {
		c.Kind, c.Type, c.Mode = kind, rootfs.TypeFile, 0o644
		c.Contents = &rootfs.Contents{Before: []byte(before), After: []byte(after), Mode: 0o644}
		return c
	}
	at := rootfs.Change{Path: "/workspace/f"}
	executable := file(rootfs.Changed, "a\n", "a\n", at)
	executable.Mode = 0o755
	retyped := file(rootfs.Changed, "a\n", "to", at)
	retyped.Type, retyped.Was = rootfs.TypeSymlink, rootfs.TypeFile
	large := file(rootfs.Changed, "", "", at)
	large.Contents.Omitted = "larger than 1 MiB"
	for _, tt := range []struct {
		change rootfs.Change
		want   string
	}{
		{file(rootfs.Changed, "a\nb\n", "a\nc", at), "C /workspace/f\ndiff --git a/workspace/f b/workspace/f\n--- a/workspace/f\n+++ b/workspace/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"},
		{file(rootfs.Added, "", "x\n", at), "A /workspace/f\ndiff --git a/workspace/f b/workspace/f\nnew file mode 100644\n--- /dev/null\n+++ b/workspace/f\n@@ -0,0 +1 @@\n+x\n"},
		{file(rootfs.Added, "", "", at), "A /workspace/f\ndiff --git a/workspace/f b/workspace/f\nnew file mode 100644\n"},
		{file(rootfs.Deleted, "x\n", "", at), "D /workspace/f\ndiff --git a/workspace/f b/workspace/f\ndeleted file mode 100644\n--- a/workspace/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"},
		{executable, "C /workspace/f\ndiff --git a/workspace/f b/workspace/f\nold mode 100644\nnew mode 100755\n"},
		{retyped, "C /workspace/f -> \"\" (was a file)\ndiff --git a/workspace/f b/workspace/f\ndeleted file mode 100644\n--- a/workspace/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n" +
			"diff --git a/workspace/f b/workspace/f\nnew file mode 120000\n--- /dev/null\n+++ b/workspace/f\n@@ -0,0 +1 @@\n+to\n\\ No newline at end of file\n"},
		{file(rootfs.Changed, "a\x00", "b\x00", at), "C /workspace/f\ncontents are not shown: binary\n"},
		{large, "C /workspace/f\ncontents are not shown: larger than 1 MiB\n"},
		{rootfs.Change{Kind: rootfs.Renamed, Path: "/workspace/lib", From: "/workspace/src", Type: rootfs.TypeDir}, "R /workspace/lib (from /workspace/src)\n"},
		{file(rootfs.Added, "", "", rootfs.Change{Path: "/workspace/a\n+++ b/x\x1b"}), "A \"/workspace/a\\n+++ b/x\\x1b\"\ndiff --git \"a/workspace/a\\012+++ b/x\\033\" \"b/workspace/a\\012+++ b/x\\033\"\nnew file mode 100644\n"},
		{file(rootfs.Changed, "a", "b", rootfs.Change{Path: "/workspace/a b"}), "C \"/workspace/a b\"\ndiff --git a/workspace/a b b/workspace/a b\n--- a/workspace/a b\t\n+++ b/workspace/a b\t\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"},
	} {
		if got := patch(tt.change); got != tt.want {
			t.Errorf("%q\nwant %q", got, tt.want)
		}
	}
}

// The bytes of an agent reach a pipe as they are, so that git can apply them, and a terminal
// escaped.
func TestPatchOnATerminal(t *testing.T) {
	b := newBench(t)
	b.backend.changes = []rootfs.Change{{Kind: rootfs.Added, Path: "/workspace/f", Type: rootfs.TypeFile, Contents: &rootfs.Contents{After: []byte("a\tb\x1b]52;c;eA==\a\xff\r\n")}}}
	if _, stdout, _ := b.clove("diff", "done", "f"); !strings.HasSuffix(stdout, "+a\tb\x1b]52;c;eA==\a\xff\r\n") {
		t.Errorf("%q", stdout)
	}
	if got := printableText("a\tb\x1b]52;c;eA==\a\r\n\x9b2J\u202e"); got != "a\tb\\x1b]52;c;eA==\\a\\r\n\ufffd2J\\u202e" {
		t.Errorf("%q", got)
	}
}
