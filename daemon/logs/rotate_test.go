package logs

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Between the two renames of a rotation readers find the whole log, for however long this
// state lasts: it is possible that nothing completes the rotation. Entries in this state are counted, and the
// next one that can completes the rotation.
func TestCutRotationIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, 8<<10)
	said(l, 1, 1000)
	must(t, l.retire(time.Now()))
	if _, err := os.Lstat(filepath.Join(dir, newer)); !os.IsNotExist(err) {
		t.Fatalf("the rotation is not cut: %v", err)
	}
	var cut listener
	must(t, Read(t.Context(), dir, all, cut.hear))
	if cut.told != upTo(1000) || cut.marks != 1 {
		t.Errorf("cut: %+v", cut)
	}
	// A directory at the target of the last rename.
	must(t, os.MkdirAll(filepath.Join(dir, newer, "full"), 0o700))
	said(l, 1001, 1020)
	must(t, os.RemoveAll(filepath.Join(dir, newer)))
	said(l, 1021, 1030)
	var whole listener
	must(t, Read(t.Context(), dir, all, whole.hear))
	if whole.told != upTo(1030) || whole.lost.lines != cut.lost.lines+20 {
		t.Errorf("ended: %+v, after %+v", whole, cut)
	}
}

// A kill at any step of a rotation loses no line and no count.
func TestKilledInARotation(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(*testing.T, *Log){
		"before": func(*testing.T, *Log) {},
		"half prepared": func(t *testing.T, l *Log) {
			must(t, os.WriteFile(l.path(prepared), []byte(`{"head":true,"lo`), 0o600))
		},
		"prepared": func(t *testing.T, l *Log) {
			next, err := l.prepare(entry{Head: true})
			must(t, err)
			must(t, next.Close())
		},
		"retired": func(t *testing.T, l *Log) { must(t, l.retire(time.Now())) },
		"rotated": func(t *testing.T, l *Log) { must(t, l.rotate(time.Now())) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir, 8<<10)
			said(l, 1, 1000)
			until(t, l)
			must(t, l.Close())
			l = open(t, dir, 8<<10)
			said(l, 1001, 2000)
			var h listener
			must(t, Read(t.Context(), dir, all, h.hear))
			if h.told != upTo(2000) {
				t.Errorf("%+v", h)
			}
		})
	}
}

// A reader that looks at the newer file's two names while a rotation moves it from one to the
// other still finds it. Here every line is a rotation, so the reader meets many.
func TestReadersBetweenRotations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, 1)
	said(l, 1, 10)
	written := make(chan struct{})
	go func() {
		defer close(written)
		said(l, 11, 5000)
	}()
	for reading := true; reading; {
		select {
		case <-written:
			reading = false
		default:
		}
		var h listener
		if err := Read(t.Context(), dir, all, h.hear); err != nil || h.told.lines < 10 {
			t.Errorf("%+v, %v", h, err)
			break
		}
	}
	<-written
}
