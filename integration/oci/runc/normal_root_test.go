//go:build root

package runc

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// normal returns the history in words that are the same for both runtimes.
func (h *history) normal() []string {
	n := newNormaliser(h.site)
	var lines []string
	for _, line := range n.states(h.lines) {
		if line, counts := n.line(line); counts {
			lines = append(lines, line)
		}
	}
	return lines
}

// normaliser knows the names and numbers of one site.
type normaliser struct {
	words *strings.Replacer
	// points maps each mount's number to its mount point.
	points map[string]string
	host   map[string]string // this process's namespaces
}

func newNormaliser(s *site) *normaliser {
	n := &normaliser{points: map[string]string{}, host: map[string]string{},
		// libcontainer's init uses this name in both.
		words: strings.NewReplacer("runc init error(s)", "init error(s)", s.dir, "SITE", s.id, "ID", s.runtime.name, "RUNTIME")}
	names, _ := filepath.Glob("/proc/self/ns/*")
	for _, name := range names {
		if target, err := os.Readlink(name); err == nil {
			n.host[target] = "the host's"
		}
	}
	return n
}

// states joins the lines of a state's JSON.
func (n *normaliser) states(lines []string) []string {
	var joined []string
	for i := 0; i < len(lines); i++ {
		place, text, _ := strings.Cut(lines[i], ": ")
		if !strings.HasSuffix(place, " output") || text != "{" {
			joined = append(joined, lines[i])
			continue
		}
		for i++; i < len(lines) && strings.HasPrefix(lines[i], place+": "); i++ {
			text += strings.TrimPrefix(lines[i], place+": ")
		}
		i--
		joined = append(joined, place+": "+stateLine(text))
	}
	return joined
}

// statusCounts are the fields of proc_pid_status(5) that a runtime decides.
var statusCounts = regexp.MustCompile(`^(Name|Uid|Gid|Groups|NSpid|Threads|SigBlk|SigIgn|Cap\w+|NoNewPrivs|Seccomp\w*|Cpus_allowed|Mems_allowed_list|THP_enabled|Speculation\w*):`)

// numbers are those that always differ between two processes: ids, addresses, use of memory,
// durations.
var numbers = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`("pid":|pid |process |/proc/|session |group |usage: |now at )\d+`), "${1}N"},
	{regexp.MustCompile(`(nsexec-?\d?)\[\d+\]`), "$1"},
	{regexp.MustCompile(`0x[0-9a-f]{9,}`), "ADDRESS"},
	{regexp.MustCompile(`NSpid: \d\d+`), "NSpid: N"},
	{regexp.MustCompile(`time=\S+ |"time":"[^"]*"`), ""},
}

var (
	pipes     = regexp.MustCompile(`(pipe|socket|anon_inode):\[\d+\]`)
	spaces    = regexp.MustCompile(`[a-z_]+:\[\d+\]`)
	peers     = regexp.MustCompile(`(shared|master|propagate_from):\d+`)
	anonymous = regexp.MustCompile(`^0:\d+$`)
)

// line returns the normalised line, or that it does not count.
func (n *normaliser) line(line string) (string, bool) {
	place, text, _ := strings.Cut(line, ": ")
	if place == "world" {
		name, seen, _ := strings.Cut(text, "\t")
		switch name {
		case "/proc/self/status":
			seen = strings.ReplaceAll(seen, `\x09`, " ")
			if !statusCounts.MatchString(seen) {
				return "", false
			}
		case "/proc/self/mountinfo":
			seen = n.mount(seen)
		case "/proc/net/dev":
			seen, _, _ = strings.Cut(seen, ":") // without its counters
		case "/proc/keys", "/proc/timer_list":
			if !strings.HasPrefix(seen, "node ") && !strings.HasPrefix(seen, "writable ") && len(seen) > len("0 bytes") {
				seen = "something" // the kernel's own while it works
			}
		}
		line = "world: " + name + " " + seen
	}
	line = pipes.ReplaceAllString(n.words.Replace(line), "$1")
	line = spaces.ReplaceAllStringFunc(line, func(space string) string {
		kind, _, _ := strings.Cut(space, ":")
		if _, shared := n.host[space]; shared {
			return kind + " of the host"
		}
		return kind + " of its own"
	})
	for _, n := range numbers {
		line = n.pattern.ReplaceAllString(line, n.replacement)
	}
	return line, true
}

// mount returns a line of mountinfo with the parent's mount point in place of its number.
func (n *normaliser) mount(line string) string {
	fields := strings.Fields(line)
	if len(fields) < 6 {
		return line
	}
	n.points[fields[0]] = fields[4]
	device := fields[2]
	if anonymous.MatchString(device) {
		device = "-"
	}
	rest := peers.ReplaceAllString(strings.Join(fields[3:], " "), "$1")
	return fmt.Sprintf("on %q %s %s", n.points[fields[1]], device, rest)
}

// differ returns the lines that only one of the two has, in order.
func differ(ours, theirs []string) (only []string) {
	// The longest common subsequence of lines: histories have some hundreds.
	common := make([][]int, len(ours)+1)
	for i := range common {
		common[i] = make([]int, len(theirs)+1)
	}
	for i := len(ours) - 1; i >= 0; i-- {
		for j := len(theirs) - 1; j >= 0; j-- {
			if ours[i] == theirs[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(ours) || j < len(theirs) {
		switch {
		case i < len(ours) && j < len(theirs) && ours[i] == theirs[j]:
			i, j = i+1, j+1
		case j == len(theirs) || i < len(ours) && common[i+1][j] >= common[i][j+1]:
			only = append(only, "clove-oci: "+ours[i])
			i++
		default:
			only = append(only, "runc:      "+theirs[j])
			j++
		}
	}
	return only
}
