//go:build root

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// A digest of run.diff is for the bytes that were there: a file that a running agent changes behind it, in as many bytes and
// with the same times, is not written. The control applies with the digest of what is there.
func TestADigestIsForTheBytesOfFiles(t *testing.T) {
	d := newCloved(t)
	lead, dir := appliesFrom(t, d, "lead", applying)
	write := func(text string) {
		t.Helper()
		fmt.Fprintln(lead.stdin, "new! "+text)
		if line := lead.line(); line != "swapped" {
			t.Fatalf("%q", line)
		}
	}
	c, err := client.Dial(t.Context(), d.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run := api.RunParams{Run: "lead"}
	digest := func(paths ...string) string {
		t.Helper()
		seen, err := client.Each(t.Context(), c, methods.RunDiff, api.DiffParams{RunParams: run, Paths: paths}, func(api.ChangeNote) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return seen.Digest
	}
	apply := func(digest string) error {
		_, err := client.Each(t.Context(), c, methods.RunApply, api.ApplyParams{RunParams: run, Digest: digest, Paths: []string{"/workspace/new"}}, func(api.ChangeNote) error { return nil })
		return err
	}
	written := func() string {
		text, _ := os.ReadFile(filepath.Join(dir, "new")) // none if it is not there
		return string(text)
	}
	write("SAFE")
	for _, paths := range [][]string{nil, {"/workspace/new"}} {
		seen := digest(paths...)
		write("EVIL")
		if err := apply(seen); err == nil || api.ErrorOf(err).Code != api.CodeConflict || written() != "" {
			t.Errorf("%v: %v, %q", paths, err, written())
		}
		write("SAFE")
	}
	if err := apply(digest()); err != nil || written() != "SAFE" {
		t.Errorf("control: %v, %q", err, written())
	}
	if end := lead.wait(); end.code != 0 {
		t.Errorf("%d %s", end.code, end.stderr)
	}
}
