package kubernetes

import (
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
)

// startAllowance is added to the Job's deadline, which also counts scheduling and
// pulling the image. The agent's own deadline is the annotation, which clove enforces
// from the start; the Job's is for a node that has failed.
const startAllowance = 5 * time.Minute

// jobOf is the part of the Job that says how often the pod is started and when it is
// given up.
func jobOf(spec agent.Spec) jobSpec {
	var made jobSpec
	switch {
	// The limit of 0 is written: without it Kubernetes would try six times.
	case spec.Restart.Policy != agent.RestartOnFailure:
	case spec.Restart.Max == 0:
		made.BackoffLimit = math.MaxInt32
	default:
		made.BackoffLimit = int32(min(spec.Restart.Max, math.MaxInt32))
	}
	// Each start has the agent's time to itself; without a last start there is
	// no last moment.
	if spec.Limits.WallClock > 0 && made.BackoffLimit < math.MaxInt32 {
		seconds := (int64(made.BackoffLimit)+1)*ceilSeconds(spec.Limits.WallClock) + ceilSeconds(startAllowance)
		made.ActiveDeadlineSeconds = &seconds
	}
	// 0 seconds: the Job is removed as soon as it has finished.
	if spec.Remove {
		made.TTLSecondsAfterFinished = new(int32)
	}
	return made
}

// ceilSeconds rounds up, because the API counts whole seconds: rounded down, a deadline
// could end the agent early.
func ceilSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// checkNode refuses what a node would not start. An agent that is root needs a user
// namespace, so that it has no rights outside. containerd 1.7 then lets the runtime make
// the network namespace, which that user namespace owns: the container's root could
// change the rules, so clove-oci refuses network rules there.
func checkNode(run Run) error {
	if run.Spec.User.UID == 0 {
		return refused("--user", "omit the flag, or name a user other than root",
			"in a pod its root would be the node's, or could change the network's rules")
	}
	// An engine leaves a pod's /dev/shm and parts of /dev writable, whatever the Job says.
	if run.Spec.Files.Writable != nil {
		return refused("files.writable", "omit the list", "a node cannot keep an agent from writing to some of its writable places only")
	}
	if run.Spec.Files.Execute != nil {
		return refused("--allow-exec", "omit the flag", "a node cannot hold a list of programs: the engine mounts an image's files")
	}
	if run.Spec.Files.Read != nil {
		return refused("--allow-read", "omit the flag", "a node cannot hold a list of what may be read: an engine starts the program, and nothing enters Landlock rules before it")
	}
	if run.Spec.Files.Landlock != "" {
		return refused("files.landlock", "omit the key", "an engine starts the program, and nothing enters Landlock rules before it")
	}
	// Each start is a new container to the engine, and a record belongs to one
	// container.
	if run.Record != "" && run.Spec.Restart.Policy == agent.RestartOnFailure && !strings.Contains(run.Record, oci.RecordID) {
		stem, extension := strings.TrimSuffix(run.Record, path.Ext(run.Record)), path.Ext(run.Record)
		return refused("--result", "let each have one: --result "+stem+"-"+oci.RecordID+extension,
			"with --restart there may be several starts, and the record's name is the first one's")
	}
	return nil
}

// annotationsOf are the rules that only clove enforces. They are parsed here by the
// package that parses them on the node, so that no Job is written that would fail
// there.
func annotationsOf(run Run) (map[string]string, error) {
	spec := run.Spec
	all := map[string]string{
		oci.AnnotationPids:        strconv.FormatInt(spec.Limits.Pids, 10),
		oci.AnnotationNetworkMode: spec.Network,
	}
	if spec.Limits.WallClock > 0 {
		all[oci.AnnotationTimeout] = spec.Limits.WallClock.String()
	}
	if run.Record != "" {
		all[oci.AnnotationRecord] = run.Record
	}
	for _, rule := range spec.Egress.Rules {
		key := oci.AnnotationNetworkAllow
		if rule.Deny {
			key = oci.AnnotationNetworkDeny
		}
		if all[key] != "" {
			all[key] += ","
		}
		all[key] += rule.Target
	}
	_, err := oci.Parse(all)
	return all, err
}

// limitsOf are the limits that the kubelet enforces. Kubernetes sets a request that is
// not written to the limit; such a container gets no swap, which is clove's default
// too.
func limitsOf(limits agent.Limits) map[string]string {
	all := map[string]string{
		"memory":            quantity(limits.MemoryBytes),
		"ephemeral-storage": quantity(limits.DiskBytes),
	}
	if limits.CPUs > 0 {
		all["cpu"] = milliCPUs(limits.CPUs)
	}
	return all
}

// quantity writes bytes in the largest unit without a fraction, as people write them.
func quantity(n int64) string {
	unit := 0
	for n != 0 && n%1024 == 0 && unit < 4 {
		n /= 1024
		unit++
	}
	return strconv.FormatInt(n, 10) + []string{"", "Ki", "Mi", "Gi", "Ti"}[unit]
}

// milliCPUs is exact to a thousandth, the API's finest step. A finer part is cut off,
// so that the limit is never wider than what was asked for.
func milliCPUs(cpus float64) string {
	const rounding = 1e-6 // 0.57 times 1000 is a little less than 570
	milli := int64(math.Floor(cpus*1000 + rounding))
	if milli%1000 == 0 {
		return strconv.FormatInt(milli/1000, 10)
	}
	return strconv.FormatInt(milli, 10) + "m"
}

// literal keeps Kubernetes from expanding variables in a command or a value: it
// replaces $(NAME), and takes $$ for $. A $ before any other character has no meaning
// and stays single.
func literal(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if text[i] == '$' && i+1 < len(text) && (text[i+1] == '(' || text[i+1] == '$') {
			out.WriteByte('$')
		}
		out.WriteByte(text[i])
	}
	return out.String()
}
