package runtime

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// A limit beyond the host is refused with what is there; one that the host has, and the default, are not.
func TestAmountsBeyondTheHost(t *testing.T) {
	t.Parallel()
	paths := Paths{State: t.TempDir()}
	var memory unix.Sysinfo_t
	var disk unix.Statfs_t
	if err := unix.Sysinfo(&memory); err != nil {
		t.Fatal(err)
	}
	if err := unix.Statfs(paths.State, &disk); err != nil {
		t.Fatal(err)
	}
	ram, space := max(int64(memory.Totalram)*int64(memory.Unit), agent.UsualMemoryBytes), max(int64(disk.Blocks)*disk.Bsize, agent.UsualDiskBytes)
	for _, c := range []struct {
		asked agent.Limits
		want  string
	}{
		{agent.Limits{MemoryBytes: ram, DiskBytes: space}, ""},
		{agent.Limits{MemoryBytes: agent.UsualMemoryBytes, DiskBytes: agent.UsualDiskBytes}, ""},
		{agent.Limits{MemoryBytes: ram + 1, DiskBytes: space}, "--memory: "},
		{agent.Limits{MemoryBytes: ram, DiskBytes: space + 1}, "--disk: "},
		{agent.Limits{MemoryBytes: agent.SizeCeiling}, "--memory: 4294967296 MiB are more than this host has, which is "},
		{agent.Limits{DiskBytes: agent.SizeCeiling}, "--disk: 4294967296 MiB are more than the file system of " + paths.State + " has, which is "},
	} {
		err := paths.CheckAmounts(c.asked)
		if c.want == "" && err != nil || c.want != "" && (agent.KindOf(err) != agent.KindInvalid || !strings.HasPrefix(err.Error(), c.want) || agent.FailureOf(err).Hint == "") {
			t.Errorf("%+v: %v", c.asked, err)
		}
	}
	if (Paths{State: "/nowhere"}).CheckAmounts(agent.Limits{}) == nil {
		t.Error("a disk that cannot be measured passes")
	}
}
