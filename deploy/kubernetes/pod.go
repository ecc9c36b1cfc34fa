package kubernetes

import (
	"cmp"
	"slices"
	"strconv"

	"clove.run/clove/agent"
)

// The agent's own variables, as in a local run.
const (
	variableID        = "CLOVE_ID"
	variableName      = "CLOVE_NAME"
	variableMemory    = "CLOVE_MEMORY_BYTES"
	variableCPUs      = "CLOVE_CPUS"
	variableWorkspace = "CLOVE_WORKSPACE"
)

// engineShmBytes is the size of /dev/shm that containerd gives every pod.
const engineShmBytes = 64 << 20

// podOf is the pod of a run: an agent without the cluster's credentials, names
// or anything else that nobody asked for.
func podOf(run Run, files []placed) podSpec {
	spec := run.Spec
	profile := "RuntimeDefault"
	if spec.Seccomp.Profile == agent.SeccompUnconfined {
		profile = "Unconfined"
	}
	made := podSpec{
		RuntimeClassName:              run.RuntimeClass,
		RestartPolicy:                 "Never",
		TerminationGracePeriodSeconds: ceilSeconds(spec.Limits.StopGrace),
		Hostname:                      spec.Hostname,
		SecurityContext:               podSecurityContext{seccompProfile{profile}},
	}
	if spec.Restart.Policy == agent.RestartOnFailure {
		made.RestartPolicy = "OnFailure" // in the same pod, which keeps the workspace
	}
	inside := container{
		Name: "agent", Image: run.Image, WorkingDir: spec.Dir, Stdin: spec.Stdin, TTY: spec.Terminal,
		Env: environment(run), Resources: resources{limitsOf(spec.Limits)},
		SecurityContext: securityContext{
			RunAsUser: int64(spec.User.UID), RunAsGroup: int64(spec.User.GID), RunAsNonRoot: true,
			ReadOnlyRootFilesystem: spec.Files.ReadOnly, Capabilities: capabilities{Drop: []string{"ALL"}},
		},
	}
	for _, word := range spec.Command {
		inside.Command = append(inside.Command, literal(word))
	}
	made.Volumes, inside.VolumeMounts = volumesOf(run, files)
	made.Containers = []container{inside}
	return made
}

// environment has the variables in the order of their names.
func environment(run Run) []variable {
	spec := run.Spec
	all := []variable{
		{Name: "HOME", Value: spec.User.Home},
		{Name: "LANG", Value: "C.UTF-8"},
		{Name: variableID, ValueFrom: &reference{Field: &fieldPath{"metadata.uid"}}},
		{Name: variableName, Value: spec.Name},
		{Name: variableMemory, Value: strconv.FormatInt(spec.Limits.MemoryBytes, 10)},
		{Name: variableWorkspace, Value: agent.WorkspaceDir},
	}
	cpus := variable{Name: variableCPUs, ValueFrom: &reference{Resource: &resource{"limits.cpu"}}} // all of the node's
	if limit := spec.Limits.CPUs; limit > 0 {
		cpus = variable{Name: variableCPUs, Value: strconv.FormatFloat(limit, 'f', -1, 64)}
	}
	all = append(all, cpus)
	for _, v := range run.Variables {
		all = slices.DeleteFunc(all, func(other variable) bool { return other.Name == v.Name })
		if v.IsSecret {
			all = append(all, variable{Name: v.Name, ValueFrom: &reference{Secret: &secretKey{run.Secret, v.Name}}})
			continue
		}
		all = append(all, variable{Name: v.Name, Value: literal(v.Value)})
	}
	slices.SortFunc(all, func(a, b variable) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// volumesOf are the places where the agent may write, and its files over the
// workspace. Each file is a mount of its own: the ConfigMap's directory would
// hide the workspace, and nothing could be written there.
func volumesOf(run Run, files []placed) ([]volume, []volumeMount) {
	var volumes []volume
	var mounts []volumeMount
	scratch := func(name, path string, dir emptyDir) {
		volumes = append(volumes, volume{Name: name, EmptyDir: &dir})
		mounts = append(mounts, volumeMount{Name: name, MountPath: path})
	}
	spec := run.Spec
	scratch("workspace", agent.WorkspaceDir, emptyDir{})
	scratch("home", spec.User.Home, emptyDir{})
	if spec.Files.ReadOnly {
		scratch("tmp", "/tmp", emptyDir{})
		scratch("var-tmp", "/var/tmp", emptyDir{})
	}
	if spec.Limits.ShmBytes != engineShmBytes {
		scratch("shm", "/dev/shm", emptyDir{Medium: "Memory", SizeLimit: quantity(spec.Limits.ShmBytes)})
	}
	for i, t := range spec.Files.Tmpfs {
		dir := emptyDir{Medium: "Memory"}
		if t.SizeBytes > 0 {
			dir.SizeLimit = quantity(t.SizeBytes)
		}
		scratch("tmpfs-"+strconv.Itoa(i), t.Target, dir)
	}
	if len(files) > 0 {
		const mode = 0o555 // to be read and executed; a ConfigMap is never written
		volumes = append(volumes, volume{Name: "files", ConfigMap: &configMapVolume{run.Spec.Name, mode}})
	}
	for _, f := range files {
		mounts = append(mounts, volumeMount{Name: "files", MountPath: f.path, SubPath: f.key, ReadOnly: true})
	}
	return volumes, mounts
}
