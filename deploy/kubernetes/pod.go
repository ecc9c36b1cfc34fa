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

// engineShmBytes is the size of /dev/shm that containerd gives every pod. Another size
// needs a volume.
const engineShmBytes = 64 << 20

// podOf is the pod of a run. It has nothing that was not asked for: no credentials of
// the cluster, no variables with the names of services.
func podOf(run Run, files []placed) podSpec {
	spec := run.Spec
	// The engine's own profile: a node does not have clove's.
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
	// As command and not as args, which would leave the image's entrypoint before it.
	for _, word := range spec.Command {
		inside.Command = append(inside.Command, literal(word))
	}
	made.Volumes, inside.VolumeMounts = volumesOf(run, files)
	made.Containers = []container{inside}
	return made
}

// environment lists the variables in the order of their names, so that the text is
// always the same.
func environment(run Run) []variable {
	spec := run.Spec
	all := []variable{
		{Name: "HOME", Value: spec.User.Home},
		{Name: "LANG", Value: "C.UTF-8"},
		// The pod's uid is known only in the cluster.
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
	// A variable that was asked for replaces clove's own of that name.
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

// volumesOf are the places where the agent may write, and its files over the workspace.
// Each file is a mount of its own: the ConfigMap mounted as a directory would hide the
// workspace, and it is read-only.
func volumesOf(run Run, files []placed) ([]volume, []volumeMount) {
	var volumes []volume
	var mounts []volumeMount
	scratch := func(name, path string, dir emptyDir) {
		volumes = append(volumes, volume{Name: name, EmptyDir: &dir})
		mounts = append(mounts, volumeMount{Name: name, MountPath: path})
	}
	spec := run.Spec
	// An emptyDir counts towards the pod's ephemeral-storage limit, as the layer does
	// towards --disk.
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
		// Memory in it counts as the pod's.
		dir := emptyDir{Medium: "Memory"}
		if t.SizeBytes > 0 {
			dir.SizeLimit = quantity(t.SizeBytes)
		}
		scratch("tmpfs-"+strconv.Itoa(i), t.Target, dir)
	}
	if len(files) > 0 {
		const mode = 0o555 // readable and executable; a ConfigMap is never written
		volumes = append(volumes, volume{Name: "files", ConfigMap: &configMapVolume{run.Spec.Name, mode}})
	}
	for _, f := range files {
		mounts = append(mounts, volumeMount{Name: "files", MountPath: f.path, SubPath: f.key, ReadOnly: true})
	}
	return volumes, mounts
}
