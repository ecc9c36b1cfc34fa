package container

import (
	"fmt"

	"github.com/opencontainers/runc/libcontainer/capabilities"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/seccomp"
	"github.com/opencontainers/runc/libcontainer/specconv"
	runcfeatures "github.com/opencontainers/runc/types/features"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/opencontainers/runtime-spec/specs-go/features"
)

// SeccompVersion is that of the libseccomp that this binary was linked with.
func SeccompVersion() string {
	major, minor, patch := seccomp.Version()
	return fmt.Sprintf("%d.%d.%d", major, minor, patch)
}

// Features is what the features command prints: what libcontainer supports, whether or not
// this host does. unsafe are prefixes of annotations that change what a container may do;
// an engine must not let images set those.
func Features(unsafe ...string) features.Features {
	// The specification's fields are pointers: absent means unknown, not false.
	yes := new(bool)
	*yes = true
	return features.Features{
		OCIVersionMin: "1.0.0",
		OCIVersionMax: specs.Version,
		Hooks:         configs.KnownHookNames(),
		MountOptions:  specconv.KnownMountOptions(),
		Annotations: map[string]string{
			runcfeatures.AnnotationRuncCheckpointEnabled: "false",
			runcfeatures.AnnotationLibseccompVersion:     SeccompVersion(),
		},
		PotentiallyUnsafeConfigAnnotations: append([]string{"bundle", "org.systemd.property."}, unsafe...),
		Linux: &features.Linux{
			Namespaces:      specconv.KnownNamespaces(),
			Capabilities:    capabilities.KnownCapabilities(),
			Cgroup:          &features.Cgroup{V1: yes, V2: yes, Systemd: yes, SystemdUser: yes, Rdma: yes},
			Apparmor:        &features.Apparmor{Enabled: yes},
			Selinux:         &features.Selinux{Enabled: yes},
			IntelRdt:        &features.IntelRdt{Enabled: yes, Schemata: yes, Monitoring: yes},
			MemoryPolicy:    &features.MemoryPolicy{Modes: specconv.KnownMemoryPolicyModes(), Flags: specconv.KnownMemoryPolicyFlags()},
			MountExtensions: &features.MountExtensions{IDMap: &features.IDMap{Enabled: yes}},
			NetDevices:      &features.NetDevices{Enabled: yes}, // but not beside network annotations (package oci)
			Seccomp: &features.Seccomp{
				Enabled: yes, Actions: seccomp.KnownActions(), Operators: seccomp.KnownOperators(),
				Archs: seccomp.KnownArchs(), KnownFlags: seccomp.KnownFlags(), SupportedFlags: seccomp.SupportedFlags(),
			},
		},
	}
}

// Example is the config.json that the spec command writes; rootless: with a user
// namespace that maps root inside to the caller, and without a network namespace.
func Example(rootless bool) *specs.Spec {
	spec := specconv.Example()
	if rootless {
		specconv.ToRootless(spec)
	}
	return spec
}
