package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// unpack returns the files of an archive.
func unpack(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	files, archive := map[string]string{}, tar.NewReader(zipped)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil || header.Mode != 0o600 {
			t.Fatalf("%s: %v, mode %o", header.Name, err, header.Mode)
		}
		files[header.Name] = string(text)
	}
}

// A part that fails, and one that hangs for ever, affect only themselves.
func TestWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		release := make(chan struct{})
		missing, err := Write(context.Background(), &out, "dir", "Intro.\n", []Part{
			{"a.txt", "the first", func(context.Context) ([]byte, error) { return []byte("one"), nil }},
			{"b.txt", "the second", func(context.Context) ([]byte, error) { return nil, errors.New("it broke") }},
			{"c.txt", "the third", func(context.Context) ([]byte, error) { <-release; return nil, nil }},
			{"d.txt", "the fourth", func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }},
			{"e.txt", "the fifth", func(context.Context) ([]byte, error) { return bytes.Repeat([]byte("x"), PartBytes+1), nil }},
		})
		close(release)
		if err != nil || len(missing) != 3 || missing[0].Name != "b.txt" || !errors.Is(missing[1].Why, errLate) || !errors.Is(missing[2].Why, errLate) {
			t.Errorf("%v, %v", missing, err)
		}
		files := unpack(t, &out)
		readme := files["dir/README.txt"]
		if len(files) != 3 || files["dir/a.txt"] != "one" || !strings.HasPrefix(readme, "Intro.\na.txt") || strings.Count(readme, "MISSING") != 3 {
			t.Errorf("%d files, %s", len(files), readme)
		}
		if large := files["dir/e.txt"]; !strings.HasSuffix(large, "left out)\n") || len(large) > PartBytes+64 {
			t.Errorf("%d bytes", len(large))
		}
	})
}

func TestWriteSaysThatItFailed(t *testing.T) {
	t.Parallel()
	if _, err := Write(context.Background(), full{}, "dir", "", nil); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }
