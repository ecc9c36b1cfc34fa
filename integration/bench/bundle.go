package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/rlimits"
	"clove.run/clove/oci"
	"clove.run/clove/policies"
	"clove.run/clove/seccomp"
)

// programs are all that the bench runs in bundles. A bundle's config.json names its
// program, so there is a bundle for each.
var programs = [][]string{programTrue, programDate, programIdle}

// bundle is the directory of the bundle that runs program.
func (b *bench) bundle(program []string) string {
	return filepath.Join(b.scratch, "bundle-"+filepath.Base(program[0]))
}

// timedBundle is the same with a deadline that no run reaches, so that a monitor is
// started.
func (b *bench) timedBundle(program []string) string { return b.bundle(program) + "-timed" }

// writeBundles writes both bundles for each program. The host's root is bound to
// another directory, in the bench's own mount namespace: pivot_root(2) does not accept
// the root that the process is in.
func (b *bench) writeBundles() error {
	root := filepath.Join(b.scratch, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	err := b.thread.Do(func() error { return unix.Mount("/", root, "", unix.MS_BIND, "") })
	if err != nil {
		return fmt.Errorf("cannot bind the host's root: %w", err)
	}
	for _, program := range programs {
		config, err := bundleConfig(root, program)
		if err != nil {
			return err
		}
		if err := writeConfig(b.bundle(program), config); err != nil {
			return err
		}
		// The second bundle differs in this only.
		config["annotations"] = object{oci.AnnotationTimeout: "1h"}
		if err := writeConfig(b.timedBundle(program), config); err != nil {
			return err
		}
	}
	return nil
}

// writeConfig makes a bundle: a directory with config.json.
func writeConfig(dir string, config object) error {
	text, err := json.Marshal(config)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
}

// object is a JSON object, without a type for each of config.json's.
type object = map[string]any

// bundleConfig is a config.json for the work that clove does at its standard level: the
// same namespaces, id map, mounts, limits and filter. Otherwise the comparison with
// runc would compare different work.
func bundleConfig(root string, program []string) (object, error) {
	standard := policies.Standard()
	filter, err := seccomp.Profile(standard.Seccomp.Profile)
	if err != nil {
		return nil, err
	}
	limits := standard.Limits
	var asked []object
	for _, r := range limits.Rlimits {
		asked = append(asked, object{"type": rlimits.OCIName(r.Name), "soft": r.Soft, "hard": r.Hard})
	}
	ids := []object{{"containerID": 0, "hostID": agent.FirstHostID, "size": agent.IDsPerAgent}}
	var namespaces []object
	for _, kind := range []string{"user", "pid", "mount", "uts", "ipc", "cgroup", "network"} {
		namespaces = append(namespaces, object{"type": kind})
	}
	return object{
		"ociVersion": "1.3.0",
		"root":       object{"path": root, "readonly": true},
		"hostname":   "bench",
		"process": object{
			"user": object{"uid": 1000, "gid": 1000}, "args": program, "cwd": "/", "env": []string{"PATH=/usr/bin:/bin"},
			"capabilities": object{}, "noNewPrivileges": true, "rlimits": asked,
		},
		"mounts": bundleMounts(limits.ShmBytes),
		"linux": object{
			"uidMappings": ids, "gidMappings": ids, "namespaces": namespaces, "seccomp": filter,
			"resources": object{
				// Denies every device; runc adds those that every container has.
				"devices": []object{{"allow": false, "access": "rwm"}},
				"memory":  object{"limit": limits.MemoryBytes},
				"pids":    object{"limit": limits.Pids},
			},
			// The paths that clove covers too.
			"maskedPaths": []string{"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
				"/proc/latency_stats", "/proc/timer_list", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"},
			"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}, nil
}

// bundleMounts are the mounts that clove makes.
func bundleMounts(shmBytes int64) []object {
	mount := func(target, kind string, options ...string) object {
		return object{"destination": target, "type": kind, "source": kind, "options": append(options, "nosuid", "noexec")}
	}
	return []object{
		mount("/proc", "proc", "nodev"),
		mount("/dev", "tmpfs", "strictatime", "mode=755", "size=64k"),
		mount("/dev/pts", "devpts", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"),
		mount("/dev/shm", "tmpfs", "nodev", "mode=1777", fmt.Sprintf("size=%d", shmBytes)),
		mount("/dev/mqueue", "mqueue", "nodev"),
		mount("/sys", "sysfs", "nodev", "ro"),
		mount("/sys/fs/cgroup", "cgroup", "nodev", "ro"),
		mount("/tmp", "tmpfs", "nodev", "mode=1777"),
	}
}
