package bundle

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Bounds of a part.
const (
	PartTime  = 10 * time.Second
	PartBytes = 8 << 20
)

// Part is one file of the archive.
type Part struct {
	Name string
	What string // for README.txt
	Make func(context.Context) ([]byte, error)
}

// Missing is a part that could not be made, and why.
type Missing struct {
	Name string
	Why  error
}

// Write makes all parts concurrently and writes those that succeeded. dir is the archive's
// only directory, intro the beginning of README.txt.
func Write(ctx context.Context, to io.Writer, dir, intro string, parts []Part) ([]Missing, error) {
	made, errs := make([][]byte, len(parts)), make([]error, len(parts))
	var all sync.WaitGroup
	// At once, so that parts that hang cost PartTime together and not one after the other.
	for i, part := range parts {
		all.Go(func() { made[i], errs[i] = within(ctx, part.Make) })
	}
	all.Wait()
	zipped := gzip.NewWriter(to)
	archive := tar.NewWriter(zipped)
	now := time.Now()
	add := func(name string, text []byte) error {
		err := archive.WriteHeader(&tar.Header{Name: dir + "/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: now, Typeflag: tar.TypeReg})
		if err == nil {
			_, err = archive.Write(text)
		}
		return err
	}
	var missing []Missing
	var readme strings.Builder
	readme.WriteString(intro)
	for i, part := range parts {
		if errs[i] != nil {
			missing = append(missing, Missing{part.Name, errs[i]})
			fmt.Fprintf(&readme, "%-32s MISSING: %v\n", part.Name, errs[i])
			continue
		}
		fmt.Fprintf(&readme, "%-32s %s\n", part.Name, part.What)
	}
	err := add("README.txt", []byte(readme.String()))
	for i, part := range parts {
		if errs[i] == nil {
			err = errors.Join(err, add(part.Name, made[i]))
		}
	}
	return missing, errors.Join(err, archive.Close(), zipped.Close())
}

// errLate replaces a part that hung. Its goroutine is not stopped, because the process exits soon.
var errLate = fmt.Errorf("no answer in %s", PartTime)

// within makes one part in bounded time and size.
func within(ctx context.Context, produce func(context.Context) ([]byte, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, PartTime, errLate)
	defer cancel()
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1) // buffered: after a timeout nothing receives
	go func() {
		text, err := produce(ctx)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		if len(r.text) > PartBytes {
			r.text = append(r.text[:PartBytes:PartBytes], "\n(the rest is left out)\n"...)
		}
		if r.err != nil && ctx.Err() != nil {
			r.err = context.Cause(ctx)
		}
		return r.text, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
