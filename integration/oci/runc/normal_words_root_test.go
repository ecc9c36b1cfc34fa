//go:build root

package runc

import "testing"

// TestOnlyWhatMustDifferIsMadeTheSame: a number that a runtime decides is kept.
func TestOnlyWhatMustDifferIsMadeTheSame(t *testing.T) {
	n := newNormaliser(&site{t: t, dir: "/tmp/a1", id: "beside-a1", runtime: runtime{name: "clove-oci"}})
	n.line("world: /proc/self/mountinfo\t71 47 0:44 / / rw - tmpfs tmpfs rw")
	for line, want := range map[string]string{
		"create stderr: clove-oci create failed: /tmp/a1/rootfs of beside-a1":                  "create stderr: RUNTIME create failed: SITE/rootfs of ID",
		"create log: runc init error(s): nsexec-1[123]: no":                                    "create log: init error(s): nsexec-1: no",
		"world: /proc/self/status\tNoNewPrivs:\\x091":                                          "world: /proc/self/status NoNewPrivs: 1",
		"world: /proc/self/status\tVmRSS:\\x09 800 kB":                                         "",
		"world: /proc/self/status\tNSpid:\\x096260\\x091":                                      "world: /proc/self/status NSpid: N 1",
		"world: /proc/self/status\tNSpid:\\x091":                                               "world: /proc/self/status NSpid: 1",
		"world: /proc/self/mountinfo\t73 71 0:45 / /proc rw shared:5 - proc proc rw,hidepid=2": `world: /proc/self/mountinfo on "/" - / /proc rw shared - proc proc rw,hidepid=2`,
		"world: /proc/self/mountinfo\t74 71 254:0 /x /vol ro - ext4 /dev/vda rw":               `world: /proc/self/mountinfo on "/" 254:0 /x /vol ro - ext4 /dev/vda rw`,
		"world: /proc/self/fd/0\tpipe:[300]":                                                   "world: /proc/self/fd/0 pipe",
		"world: /proc/self/ns/net\tnet:[1]":                                                    "world: /proc/self/ns/net net of its own",
		"world: /proc/timer_list\tTimer List":                                                  "world: /proc/timer_list something",
		"world: /proc/timer_list\t0 bytes":                                                     "world: /proc/timer_list 0 bytes",
		"cgroup pids.max: 30":                                                                  "cgroup pids.max: 30",
	} {
		got, counts := n.line(line)
		if got != want || counts != (want != "") {
			t.Errorf("%q is %q, not %q", line, got, want)
		}
	}
}
