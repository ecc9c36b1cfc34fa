// Package compare says where one agent.Spec allows an agent more than another one does.
// Documents that extend others, the ceiling of a host and clove policy diff ask it. It reads
// values only, and opens nothing.
//
// Where it cannot decide, it says that more is allowed: two filters of docker's format, for
// example, are compared rule by rule and not call by call.
package compare

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/seccomp"
)

// Difference is one place in which the second of two specs allows more.
type Difference struct {
	Place string `json:"place"` // key of a policy document, as limits.memory
	From  string `json:"from"`  // what the first has, in words
	To    string `json:"to"`    // what the second has
}

// String is the difference in words.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s instead of %s", d.Place, d.To, d.From)
}

// Wider returns where wide allows more than base, in the order of a document's keys. Both are
// valid; what cannot be parsed counts as more.
func Wider(base, wide agent.Spec) []Difference {
	c := comparison{base: base, wide: wide}
	c.limits()
	c.ulimits()
	c.files()
	c.identity()
	c.filter()
	c.network()
	c.shared()
	c.beyond("allow_unenforced", base.AllowUnenforced, wide.AllowUnenforced, slices.Contains)
	return c.found
}

type comparison struct {
	base, wide agent.Spec
	found      []Difference
}

func (c *comparison) add(place, from, to string) {
	c.found = append(c.found, Difference{place, from, to})
}

// number adds a difference where wide is above base; without says that none of both is above
// anything.
func (c *comparison) number(place string, base, wide float64, without float64, say func(float64) string) {
	if base == without || wide != without && wide <= base {
		return
	}
	words := func(n float64) string {
		if n == without {
			return "no limit"
		}
		return say(n)
	}
	c.add(place, words(base), words(wide))
}

// never is no value of a limit that always exists.
const never = -2

func (c *comparison) limits() {
	b, w := c.base.Limits, c.wide.Limits
	size := func(n float64) string { return units.BytesSize(n) }
	plain := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	clock := func(n float64) string { return time.Duration(n).String() }
	c.number("limits.memory", float64(b.MemoryBytes), float64(w.MemoryBytes), never, size)
	// Swap by itself: memory and swap together follow memory.
	c.number("limits.memory_swap", swap(b), swap(w), -1, size)
	c.number("limits.cpus", b.CPUs, w.CPUs, 0, plain)
	if b.CPUSet != "" && b.CPUSet != w.CPUSet && !cpusWithin(w.CPUSet, b.CPUSet) {
		c.add("limits.cpuset", "CPUs "+b.CPUSet, orAll("CPUs ", w.CPUSet))
	}
	c.number("limits.pids", float64(b.Pids), float64(w.Pids), never, plain)
	c.number("limits.cpu_time", float64(b.CPUTime), float64(w.CPUTime), 0, clock)
	c.number("limits.timeout", float64(b.WallClock), float64(w.WallClock), 0, clock)
	c.number("limits.stop_timeout", float64(b.StopGrace), float64(w.StopGrace), never, clock)
	c.number("limits.output", float64(b.OutputBytes), float64(w.OutputBytes), 0, size)
	c.number("limits.disk", float64(b.DiskBytes), float64(w.DiskBytes), never, size)
	c.number("limits.shm", float64(b.ShmBytes), float64(w.ShmBytes), never, size)
}

func orAll(before, text string) string {
	if text == "" {
		return "all"
	}
	return before + text
}

// swap is how much swap there may be beyond memory; -1: any amount.
func swap(l agent.Limits) float64 {
	if l.MemorySwapBytes < 0 {
		return -1
	}
	return float64(max(0, l.MemorySwapBytes-l.MemoryBytes))
}

// cpusWithin compares two lists of CPUs as --cpuset-cpus has them; the empty one is all.
func cpusWithin(narrow, wide string) bool {
	inside, all := cpus(narrow), cpus(wide)
	return len(inside) > 0 && !slices.ContainsFunc(inside, func(cpu int) bool { return !slices.Contains(all, cpu) })
}

func cpus(list string) (numbers []int) {
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to := from
		if ranged {
			to, _ = strconv.Atoi(last)
		}
		if err != nil || to-from > 1<<16 {
			return nil
		}
		for cpu := from; cpu <= to; cpu++ {
			numbers = append(numbers, cpu)
		}
	}
	return numbers
}

// ulimits: one that only wide lacks is the kernel's own.
func (c *comparison) ulimits() {
	has := map[string]agent.Rlimit{}
	for _, limit := range c.wide.Limits.Rlimits {
		has[limit.Name] = limit
	}
	for _, base := range c.base.Limits.Rlimits {
		wide, found := has[base.Name]
		if !found {
			wide = agent.Rlimit{Soft: agent.RlimitInfinity, Hard: agent.RlimitInfinity}
		}
		if wide.Hard > base.Hard {
			c.add("ulimits."+base.Name, ulimit(base.Hard), ulimit(wide.Hard))
		}
	}
}

func ulimit(n uint64) string {
	if n == agent.RlimitInfinity {
		return "no limit"
	}
	return strconv.FormatUint(n, 10)
}

func (c *comparison) files() {
	b, w := c.base.Files, c.wide.Files
	if b.ReadOnly && !w.ReadOnly {
		c.add("files.root", "read-only", "writable")
	}
	c.beyond("files.writable", writable(b), writable(w), slices.Contains)
	c.execute(b, w)
	c.read(b, w)
	if b.Landlock != "" && w.Landlock == "" {
		c.add("files.landlock", b.Landlock, "where the host has it")
	}
	var binds []string
	for _, bind := range w.Binds {
		if !slices.ContainsFunc(b.Binds, func(have agent.Bind) bool {
			return have.Source == bind.Source && have.Target == bind.Target && (bind.ReadOnly || !have.ReadOnly)
		}) {
			mode := "rw"
			if bind.ReadOnly {
				mode = "ro"
			}
			binds = append(binds, bind.Source+":"+bind.Target+":"+mode)
		}
	}
	if len(binds) > 0 {
		c.add("files.volumes", "nothing of them", strings.Join(binds, ", "))
	}
	if w.Rootfs != b.Rootfs {
		c.add("files.rootfs", orWord(b.Rootfs, "the host's base system"), orWord(w.Rootfs, "the host's base system"))
	}
	// On a read-only root it is one more place that can be written.
	if b.ReadOnly {
		c.beyond("files.tmpfs", targetsOf(b.Tmpfs), targetsOf(w.Tmpfs), slices.Contains)
	}
}

// execute compares entries as they are written. A path that a pattern of base matches, or that
// is the same, leads to the same program in both.
func (c *comparison) execute(b, w agent.Files) {
	switch {
	case b.Execute == nil:
	case w.Execute == nil:
		c.add("files.execute", strings.Join(b.Execute, ", "), "any program")
	default:
		c.beyond("files.execute", b.Execute, w.Execute, func(base []string, entry string) bool {
			return slices.ContainsFunc(base, func(have string) bool {
				match, _ := path.Match(have, entry) // an entry that is no pattern matches itself only
				return have == entry || match && !strings.ContainsAny(entry, `*?[\`)
			})
		})
	}
}

// read compares entries as they are written: one that lies in an entry of base, or in a place of
// the agent's own, shows no more.
func (c *comparison) read(b, w agent.Files) {
	switch {
	case b.Read == nil:
	case w.Read == nil:
		c.add("files.read", strings.Join(b.Read, ", "), "all that appears inside")
	default:
		c.beyond("files.read", b.Read, w.Read, func(_ []string, entry string) bool { return b.MayRead(entry) })
	}
}

// writable are the places outside of the root's base that can be written.
func writable(f agent.Files) []string {
	if f.ReadOnly && f.Writable != nil {
		return f.Writable
	}
	return agent.WritablePlaces
}

func targetsOf(all []agent.Tmpfs) (targets []string) {
	for _, t := range all {
		targets = append(targets, t.Target)
	}
	return targets
}

func orWord(text, word string) string {
	if text == "" {
		return word
	}
	return text
}

// identity: capabilities are root's only.
func (c *comparison) identity() {
	if c.wide.User.UID != 0 {
		return
	}
	if c.base.User.UID != 0 {
		c.add("user", c.base.User.Name, "root inside")
	}
	dropped := func(s agent.Spec, name string) bool {
		return slices.Contains(s.CapDrop, name) || slices.Contains(s.CapDrop, agent.AllCapabilities)
	}
	var more []string
	for _, name := range agent.Capabilities {
		if dropped(c.base, name) && !dropped(c.wide, name) {
			more = append(more, name)
		}
	}
	if len(more) > 0 {
		c.add("capabilities.drop", "without them", strings.Join(more, ", "))
	}
}

// filter goes by the order of the built-in profiles, each of which allows what the next one
// allows; documents are compared call by call.
func (c *comparison) filter() {
	b, w := c.base.Seccomp, c.wide.Seccomp
	names := seccomp.Names()
	from, to := slices.Index(names, b.Profile), slices.Index(names, w.Profile)
	if len(b.Document)+len(w.Document) == 0 && from >= 0 && to >= 0 {
		if to < from {
			c.add("seccomp", b.Profile, w.Profile)
		}
		return
	}
	base, err := profileOf(b)
	if err != nil {
		c.add("seccomp", orWord(b.Profile, "none"), w.Profile)
		return
	}
	wide, err := profileOf(w)
	if err != nil {
		c.add("seccomp", b.Profile, w.Profile)
		return
	}
	var more []string
	compared := seccomp.Compare(base, wide)
	for _, d := range slices.Concat(compared.OnlyB, compared.Other) {
		// A call that base allows with all arguments can only be narrower.
		if d.A != seccomp.Allowed && !seccomp.Narrower(base, wide, d.Call) {
			more = append(more, d.Call)
		}
	}
	if len(more) > 0 {
		c.add("seccomp", b.Profile, fmt.Sprintf("%s, with %s", w.Profile, few(more)))
	}
}

// profileOf is nil for the unconfined profile.
func profileOf(s agent.Seccomp) (*specs.LinuxSeccomp, error) {
	if len(s.Document) > 0 {
		return seccomp.Parse(s.Document)
	}
	return seccomp.Profile(s.Profile)
}

// few are the first of many words.
func few(words []string) string {
	const most = 8
	if len(words) > most {
		return fmt.Sprintf("%s and %d more calls", strings.Join(words[:most], " "), len(words)-most)
	}
	return strings.Join(words, " ")
}

func (c *comparison) network() {
	b, w := c.base, c.wide
	from, to := slices.Index(agent.NetworkModes, b.Network), slices.Index(agent.NetworkModes, w.Network)
	if to > from {
		c.add("network.mode", b.Network, w.Network)
	}
	c.allowed()
	if b.Network != agent.NetworkNone && w.Network != agent.NetworkNone {
		var gone []string
		for _, rule := range b.Egress.Rules {
			if rule.Deny && !slices.ContainsFunc(w.Egress.Rules, func(have agent.EgressRule) bool { return have.Deny && have.Target == rule.Target }) {
				gone = append(gone, rule.Target)
			}
		}
		if len(gone) > 0 && w.Network != agent.NetworkHost {
			c.add("network.deny", strings.Join(gone, ", ")+" denied", "not denied")
		}
	}
	c.beyond("network.host_ports", ports(b.Egress.HostPorts), ports(w.Egress.HostPorts), slices.Contains)
	if w.Network != agent.NetworkNone {
		var servers, more []string
		for _, server := range b.Egress.DNS {
			servers = append(servers, server.String())
		}
		for _, server := range w.Egress.DNS {
			more = append(more, server.String())
		}
		c.beyond("network.dns", servers, more, slices.Contains)
	}
	c.networkLimits()
}

// networkLimits: without a gate nothing passes, except in the host's network, where nothing
// counts.
func (c *comparison) networkLimits() {
	b, w := c.base.Egress.Limits, c.wide.Egress.Limits
	if c.wide.Network == agent.NetworkHost {
		w = agent.EgressLimits{}
	} else if !c.wide.Gated() {
		return
	}
	plain := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	c.number("network.connections", float64(b.Connections), float64(w.Connections), 0, plain)
	c.number("network.rate", float64(b.PerSecond), float64(w.PerSecond), 0, plain)
	c.number("network.bytes", float64(b.Bytes), float64(w.Bytes), 0, units.BytesSize)
}

// allowed compares the targets, those of grants too. Where the mode got wider too, the targets
// are a part of it.
func (c *comparison) allowed() {
	if c.base.Network == agent.NetworkHost {
		return
	}
	reach, err := egress.Reach(c.base.Network, c.base.Egress.Rules)
	var more []string
	for _, rule := range c.wide.Egress.Rules {
		if rule.Deny {
			continue
		}
		covered := false
		if err == nil {
			covered, _ = reach.Covers(rule.Target) // an error: not covered
		}
		if !covered {
			more = append(more, rule.Target)
		}
	}
	for _, text := range c.wide.Kernel.Grants {
		target, isNet := strings.CutPrefix(text, string(grant.Net)+":")
		if !isNet || granted(c.base.Kernel.Grants, text) {
			continue
		}
		if covered, cerr := reach.Covers(target); err != nil || cerr != nil || !covered {
			more = append(more, text)
		}
	}
	if len(more) > 0 {
		c.add("network.allow", orWord(reach.String(), "nothing"), strings.Join(more, ", "))
	}
}

func ports(numbers []uint16) (texts []string) {
	for _, port := range numbers {
		texts = append(texts, strconv.Itoa(int(port)))
	}
	return texts
}

// beyond adds what wide lists and base does not have.
func (c *comparison) beyond(place string, base, wide []string, has func([]string, string) bool) {
	var more []string
	for _, item := range wide {
		if !has(base, item) {
			more = append(more, item)
		}
	}
	if len(more) > 0 {
		c.add(place, orWord(strings.Join(base, ", "), "none"), strings.Join(more, ", "))
	}
}

func (c *comparison) shared() {
	b, w := c.base.Kernel, c.wide.Kernel
	isModel := func(text string) bool { return strings.HasPrefix(text, string(grant.Model)+":") }
	isOther := func(text string) bool { return !isModel(text) }
	c.beyond("models", slices.DeleteFunc(slices.Clone(b.Grants), isOther), slices.DeleteFunc(slices.Clone(w.Grants), isOther), granted)
	c.beyond("grants", slices.DeleteFunc(slices.Clone(b.Grants), isModel), slices.DeleteFunc(slices.Clone(w.Grants), isModel), granted)
	c.budgets()
	if from, to := denial(b), denial(w); to > from {
		c.add("on_denial", orWord(b.OnDenial, "deny"), orWord(w.OnDenial, "deny"))
	}
	if from, to := slices.Index(agent.AtEnds, atEnd(b)), slices.Index(agent.AtEnds, atEnd(w)); to > from {
		c.add("at_end", atEnd(b), atEnd(w))
	}
	if w.Socket && !b.HasSocket() {
		c.add("agent_socket", "none", "one")
	}
}

// atEnd is what happens at the end of a budget: the agent is ended, paused, or lives on.
func atEnd(k agent.Kernel) string { return orWord(k.AtEnd, agent.AtEnds[0]) }

// granted reports whether one of the grants allows what the text grants.
func granted(base []string, text string) bool {
	narrow, err := grant.Parse(text)
	return err == nil && slices.ContainsFunc(base, func(have string) bool {
		wide, err := grant.Parse(have)
		return err == nil && wide.Covers(narrow)
	})
}

// denial orders what a refusal does: the more calls may be refused before the agent ends,
// the wider.
func denial(k agent.Kernel) float64 {
	switch what, after, err := k.Denial(); {
	case err != nil, what == "deny":
		return math.Inf(1)
	case what == "pause":
		return math.MaxInt32
	default:
		return float64(after)
	}
}

// budgets: a line that wide lacks has no limit, and one for another period is another limit.
func (c *comparison) budgets() {
	base, wide := lines(c.base.Kernel.Budgets), lines(c.wide.Kernel.Budgets)
	for _, key := range slices.Sorted(maps.Keys(base)) {
		have, found := wide[key]
		if !found || have.Period != base[key].Period || have.Granted > base[key].Granted {
			to := "no limit"
			if found {
				to = have.String()
			}
			c.add("budgets", base[key].String(), to)
		}
	}
}

func lines(texts []string) map[string]budget.Limit {
	all := map[string]budget.Limit{}
	for _, text := range texts {
		if limit, err := budget.ParseLimit(text); err == nil {
			all[string(limit.Dimension)] = limit
		}
	}
	return all
}
