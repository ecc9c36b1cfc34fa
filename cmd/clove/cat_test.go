package main

import (
	"archive/tar"
	"bytes"
	"strings"
	"testing"
)

// archiveOf is an archive with one element.
func archiveOf(t *testing.T, h tar.Header, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	h.Size, h.Mode = int64(len(text)), 0o644
	if err := w.WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCat(t *testing.T) {
	b := newBench(t)
	file := archiveOf(t, tar.Header{Name: "f", Typeflag: tar.TypeReg}, "text\x1b\n")
	b.backend.archives = map[string][]byte{"/workspace/f": file, "/etc/f": file, "/workspace/cut": file[:len(file)-1024-512],
		"/workspace/link":   archiveOf(t, tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "to"}, ""),
		"/workspace/folder": archiveOf(t, tar.Header{Name: "folder/", Typeflag: tar.TypeDir}, "")}
	for _, row := range []struct {
		args, stdout, stderr string
		status               int
	}{
		{"f /etc/f", "text\x1b\ntext\x1b\n", "", 0},
		{"f link", "text\x1b\n", "/workspace/link is a link to to", exitFailed},
		{"folder", "", "clove cp copies folders", exitFailed},
		{"cut", "", "unexpected EOF", exitFailed},
		{"", "", "clove cat", exitFailed},
	} {
		status, stdout, stderr := b.clove(append([]string{"cat", "done"}, strings.Fields(row.args)...)...)
		if status != row.status || stdout != row.stdout || !strings.Contains(stderr, row.stderr) {
			t.Errorf("%s: %d, %q, %q", row.args, status, stdout, stderr)
		}
	}
}
