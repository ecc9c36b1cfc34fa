package rootfs

import "testing"

// A folder of the list counts with all that is in it, and with nothing beside it.
func TestExecutable(t *testing.T) {
	t.Parallel()
	listed := Plan{cfg: Config{Execute: []string{"/usr/bin/id", "/usr/lib/gcc"}}, hostInfo: hostInfo{Execute: []executeOp{{Path: "/usr/bin/id"}, {Path: "/usr/lib/gcc", Dir: true}}}}
	for at, want := range map[string]bool{
		"/usr/bin/id": true, "/usr/bin/id2": false, "/usr/bin/id/x": false, "/usr/bin/env": false,
		"/usr/lib/gcc/cc1": true, "/usr/lib/gcc-12/cc1": false, "/memfd:x (deleted)": false,
	} {
		if got := listed.Executable(at); got != want {
			t.Errorf("%s: %t", at, got)
		}
		if !(Plan{}).Executable(at) {
			t.Errorf("%s: refused without a list", at)
		}
	}
}
