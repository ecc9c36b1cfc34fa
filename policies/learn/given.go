package learn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// Given is what a run was allowed, as a document says it. left are reasons why a part of it is
// missing. Grants, budgets and variables are never a part: no run shows what of them is needed,
// and variables may be secrets.
func Given(spec agent.Spec) (d policies.Document, left []string) {
	l := spec.Limits
	d.Limits = policies.Limits{Memory: size(l.MemoryBytes), Pids: number(l.Pids), CPUTime: clock(l.CPUTime), Timeout: clock(l.WallClock),
		StopTimeout: clock(l.StopGrace), Output: size(l.OutputBytes), Disk: size(l.DiskBytes), Shm: size(l.ShmBytes), CPUSet: l.CPUSet}
	if l.CPUs > 0 {
		d.Limits.CPUs = policies.Text(strconv.FormatFloat(l.CPUs, 'f', -1, 64))
	}
	if l.StopGrace == 0 {
		d.Limits.StopTimeout = "0"
	}
	switch {
	case l.MemorySwapBytes < 0:
		d.Limits.MemorySwap = "-1"
	case l.MemorySwapBytes > l.MemoryBytes:
		d.Limits.MemorySwap = size(l.MemorySwapBytes)
	}
	for _, r := range l.Rlimits {
		if d.Ulimits == nil {
			d.Ulimits = map[string]policies.Text{}
		}
		d.Ulimits[r.Name] = rlimit(r)
	}
	left = givenFiles(&d, spec.Files)
	d.User = fmt.Sprintf("%d:%d", spec.User.UID, spec.User.GID)
	for _, known := range []agent.User{policies.AgentUser, policies.RootUser} {
		if known.UID == spec.User.UID && known.GID == spec.User.GID {
			d.User = known.Name
		}
	}
	d.Capabilities.Drop = spec.CapDrop
	d.Seccomp = spec.Seccomp.Profile
	d.AllowUnenforced = spec.AllowUnenforced
	givenNetwork(&d.Network, spec)
	return d, left
}

func givenFiles(d *policies.Document, files agent.Files) (left []string) {
	if files.ReadOnly {
		d.Files.Root, d.Files.Writable = policies.RootReadOnly, files.Writable
	}
	d.Files.Rootfs, d.Files.Execute, d.Files.Read = files.Rootfs, files.Execute, files.Read
	for _, b := range files.Binds {
		if strings.Contains(b.Source+b.Target, ":") {
			left = append(left, fmt.Sprintf("%s is shown inside and is not in the document, because of a colon in its path", b.Target))
			continue
		}
		text := b.Source + ":" + b.Target
		if b.ReadOnly {
			text += ":ro"
		}
		d.Files.Volumes = append(d.Files.Volumes, text)
	}
	for _, t := range files.Tmpfs {
		var options []string
		if t.SizeBytes > 0 {
			options = append(options, "size="+string(size(t.SizeBytes)))
		}
		if t.Mode > 0 {
			options = append(options, fmt.Sprintf("mode=%o", t.Mode))
		}
		text := t.Target
		if len(options) > 0 {
			text += ":" + strings.Join(options, ",")
		}
		d.Files.Tmpfs = append(d.Files.Tmpfs, text)
	}
	return left
}

func givenNetwork(n *policies.Network, spec agent.Spec) {
	n.Mode, n.HostPorts = spec.Network, spec.Egress.HostPorts
	for _, rule := range spec.Egress.Rules {
		if rule.Deny {
			n.Deny = append(n.Deny, rule.Target)
		} else {
			n.Allow = append(n.Allow, rule.Target)
		}
	}
	for _, server := range spec.Egress.DNS {
		n.DNS = append(n.DNS, server.String())
	}
	limits := spec.Egress.Limits
	n.Connections, n.Rate, n.Bytes = number(int64(limits.Connections)), number(int64(limits.PerSecond)), size(limits.Bytes)
}

// size writes a size with the largest unit that it is a multiple of; 0 is none.
func size(n int64) policies.Text {
	if n <= 0 {
		return ""
	}
	for _, unit := range []struct {
		letter string
		shift  int
	}{{"G", 30}, {"M", 20}, {"K", 10}} {
		if n%(1<<unit.shift) == 0 {
			return policies.Text(strconv.FormatInt(n>>unit.shift, 10) + unit.letter)
		}
	}
	return policies.Text(strconv.FormatInt(n, 10))
}

func number(n int64) policies.Text {
	if n <= 0 {
		return ""
	}
	return policies.Text(strconv.FormatInt(n, 10))
}

// clock writes a duration without parts that are 0.
func clock(d time.Duration) policies.Text {
	if d <= 0 {
		return ""
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return policies.Text(text)
}

func rlimit(r agent.Rlimit) policies.Text {
	one := func(n uint64) string {
		if n == agent.RlimitInfinity {
			return "-1"
		}
		return strconv.FormatUint(n, 10)
	}
	if r.Soft == r.Hard {
		return policies.Text(one(r.Soft))
	}
	return policies.Text(one(r.Soft) + ":" + one(r.Hard))
}

// nofile is the limit of descriptors that the runs had; 0: it is not known.
func nofile(d policies.Document) int64 {
	hard := string(d.Ulimits["nofile"])
	if _, after, both := strings.Cut(hard, ":"); both {
		hard = after
	}
	n, err := strconv.ParseInt(hard, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// writesHost reports whether the agent writes into a directory of the host.
func writesHost(d policies.Document) bool {
	return slices.ContainsFunc(d.Files.Volumes, func(v string) bool { return !strings.HasSuffix(v, ":ro") })
}
