//go:build root

package integration

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// fillDisk writes up to argv[2] MiB into a new file in argv[1], in pieces of argv[3] KiB,
// prints how many bytes were written and the error, and fails with that error.
const fillDisk = `
import errno, os, sys
written, piece = 0, b"x" * (int(sys.argv[3]) << 10)
file = os.open(sys.argv[1] + "/fill", os.O_WRONLY | os.O_CREAT)
try:
    while written < int(sys.argv[2]) << 20:
        written += os.write(file, piece)
    os.fsync(file)
except OSError as e:
    print(written, errno.errorcode[e.errno])
    sys.exit(1)
print(written, "all")
`

// filled runs fillDisk and parses its output.
func (h *host) filled(flags []string, dir string, mebibytes, piece int) (r result, written int64, ending string) {
	h.t.Helper()
	r = h.agent(flags, python, "-c", fillDisk, dir, strconv.Itoa(mebibytes), strconv.Itoa(piece))
	count, ending, _ := strings.Cut(strings.TrimSpace(r.stdout), " ")
	written, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		h.t.Fatalf("the agent says %q: %+v\n%s", r.stdout, r.record, r.stderr)
	}
	return r, written, ending
}

// TestDiskFill: ENOSPC close to the limit, wherever the agent writes and in pieces of any
// size, and the record names the disk. The control has more disk.
func TestDiskFill(t *testing.T) {
	h := newHost(t)
	if _, written, ending := h.filled([]string{"--disk", "128M"}, "/tmp", 80, 1024); written != 80<<20 || ending != "all" {
		t.Fatalf("control: only %d bytes, %s", written, ending)
	}
	for _, c := range testhost.Few([]struct {
		dir   string
		piece int
		flags []string
	}{
		{"/tmp", 1024, nil},
		{"/workspace", 4, nil},
		{"/usr/local", 64, []string{"--user", "root"}},
	}, 1) {
		t.Run(strings.TrimPrefix(c.dir, "/"), func(t *testing.T) {
			const limit = 64 << 20
			r, written, ending := h.filled(append([]string{"--disk", "64M"}, c.flags...), c.dir, 80, c.piece)
			if ending != "ENOSPC" || written > limit || written < limit*85/100 {
				t.Errorf("%d of %d bytes, then %s", written, limit, ending)
			}
			hit := r.record.Limit
			if r.record.Status != agent.StatusDiskFull || r.code != 1 || hit == nil || hit.Name != agent.ControlDisk || hit.Value != limit {
				t.Fatalf("%s, exit %d, limit %+v", r.record.Status, r.code, hit)
			}
			if hit.Peak == nil || *hit.Peak < written || *hit.Peak > limit {
				t.Errorf("the peak is %s, %d bytes were written", show(hit.Peak), written)
			}
			if !strings.Contains(r.stderr, "clove: disk limit of 64MiB reached") || !strings.Contains(r.stderr, "--disk") {
				t.Errorf("stderr does not say it:\n%s", r.stderr)
			}
		})
	}
	r := h.sh("cat /dev/zero >/tmp/fill 2>/dev/null || true", "--disk", "8M")
	if r.want(t, agent.StatusExited, 0, ""); r.record.Limit != nil || r.stderr != "" {
		t.Errorf("an agent that coped with a full disk is told off: %+v\n%s", r.record.Limit, r.stderr)
	}
}

// TestInodeFill: the number of files is limited, and the record names that limit if it was
// reached. The control has more of both.
func TestInodeFill(t *testing.T) {
	h := newHost(t)
	const makeFiles = `
import errno, sys
made = 0
try:
    while made < 5000:
        open("/tmp/%d" % made, "x").close()
        made += 1
except OSError as e:
    print(errno.errorcode[e.errno])
    sys.exit(1)
print(made)
`
	h.agent([]string{"--disk", "64M"}, python, "-c", makeFiles).want(t, agent.StatusExited, 0, "5000\n")
	r := h.agent([]string{"--disk", "16M"}, python, "-c", makeFiles)
	r.want(t, agent.StatusDiskFull, 1, "ENOSPC\n")
	hit := r.record.Limit
	if hit == nil || hit.Name != agent.LimitDiskFiles || hit.Value < 2000 || hit.Value > 5000 || hit.Peak == nil || *hit.Peak != hit.Value {
		t.Errorf("the record says %+v (peak %s)", hit, show(hit.Peak))
	}
	if !strings.Contains(r.stderr, " files: raise --disk") {
		t.Errorf("stderr does not say it:\n%s", r.stderr)
	}
}

// TestPageCacheIsNoMemoryBomb: the kernel can free cached pages of written files, so they
// cause no OOM. The control is a tmpfs, whose pages it cannot free.
func TestPageCacheIsNoMemoryBomb(t *testing.T) {
	h := newHost(t)
	size := rounds(300, 150)
	r, written, ending := h.filled([]string{"--memory", "64M"}, "/tmp", size, 1024)
	if r.record.Status != agent.StatusExited || written != int64(size)<<20 || ending != "all" {
		t.Errorf("%d bytes, %s, %s\n%s", written, ending, r.record.Status, r.stderr)
	}
	if kills := r.record.Events.OOMKill; kills == nil || *kills != 0 {
		t.Errorf("%s processes were killed", show(kills))
	}
	h.agent([]string{"--memory", "64M", "--tmpfs", "/scratch:size=400M"}, python, "-c", fillDisk, "/scratch", strconv.Itoa(size), "1024").wantOOM(t, 64<<20)
}

// TestMemoryFileSystemsHaveASize: /dev/shm and --tmpfs, as requested and by default.
func TestMemoryFileSystemsHaveASize(t *testing.T) {
	h := newHost(t)
	for _, c := range []struct {
		dir   string
		flags []string
		want  int64
	}{
		{"/dev/shm", nil, 64 << 20},
		{"/dev/shm", []string{"--shm-size", "8M"}, 8 << 20},
		{"/dev/shm", []string{"--shm-size", "96M"}, 96 << 20},
		{"/scratch", []string{"--tmpfs", "/scratch:size=8M"}, 8 << 20},
		{"/scratch", []string{"--tmpfs", "/scratch", "--memory", "128M"}, 64 << 20},
	} {
		_, written, ending := h.filled(c.flags, c.dir, 100, 256)
		if written != c.want || ending != "ENOSPC" {
			t.Errorf("%s with %v took %d bytes and ended with %s, want %d and ENOSPC", c.dir, c.flags, written, ending, c.want)
		}
	}
	// Control: with more room than is written, all of it is written.
	if _, written, ending := h.filled([]string{"--shm-size", "128M"}, "/dev/shm", 100, 256); written != 100<<20 || ending != "all" {
		t.Errorf("control: %d bytes, %s", written, ending)
	}
}

// TestTheLayerIsThrownAway: the agent's disk takes no space on the host's afterwards. The
// control is a run that keeps its layer.
func TestTheLayerIsThrownAway(t *testing.T) {
	h := newHost(t)
	h.sh("head -c 8000000 /dev/zero | tr '\\0' x >/tmp/big")
	thrown := held(t, h.state+"/layers")
	if r := h.clove("run", "--name", "keeper", "--", "sh", "-c", "head -c 8000000 /dev/zero | tr '\\0' x >/tmp/big"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if kept := held(t, h.state+"/layers"); thrown != 0 || kept < 8000000 {
		t.Errorf("--rm leaves %d bytes, without it %d", thrown, kept)
	}
	if r := h.clove("rm", "keeper"); r.code != 0 || held(t, h.state+"/layers") != 0 {
		t.Errorf("clove rm leaves %d bytes: %s", held(t, h.state+"/layers"), r.stderr)
	}
}

// held returns how many bytes of the host's disk the files in dir take.
func held(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	return bytes
}
