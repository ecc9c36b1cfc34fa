package rootfs

import (
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
)

func TestVeiled(t *testing.T) {
	t.Parallel()
	for points, want := range map[string]bool{
		"/ /proc /sys /process/x":          false,
		"/ /proc /proc/sys/fs/binfmt_misc": false,
		"/ /proc /proc/kcore":              true,
		"/ /proc /proc/sys":                true,
	} {
		var mounts []*mountinfo.Info
		for point := range strings.FieldsSeq(points) {
			mounts = append(mounts, &mountinfo.Info{Mountpoint: point})
		}
		if got := veiled(mounts); got != want {
			t.Errorf("%s: %v", points, got)
		}
	}
}

// TestWholeProcOnlyWhereItIsVeiled: elsewhere it would cost a mount at each start.
func TestWholeProcOnlyWhereItIsVeiled(t *testing.T) {
	t.Parallel()
	for _, isVeiled := range []bool{false, true} {
		plan := planFor(testConfig(t.TempDir()), hostInfo{Veiled: isVeiled})
		if got := strings.Contains(plan.String(), "whole proc\n"); got != isVeiled {
			t.Errorf("veiled %v:\n%s", isVeiled, plan)
		}
	}
}
