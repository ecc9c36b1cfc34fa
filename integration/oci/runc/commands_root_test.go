//go:build root

package runc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// withoutContainer are command lines for no existing container, most of which should fail.
// Words are separated by single blanks, so that one may be empty.
var withoutContainer = strings.Split(`state none|start none|kill none|kill none KILL|kill --all none 9|delete none|delete --force none|exec none /probe
ps none|pause none|resume none|update none|update --memory 1 none|events none|events --stats none
state|start|kill|delete|exec|exec none|ps|pause|resume|update|events|state a b|start a b|kill a b c|delete a b|pause a b|list a|create|run|create a b|features a
state |delete |delete --force |create |run |state a/b|state ..|state .|state /|create ..|create a/b|create a,b|run a:b|create ä|delete --force ../x|exec a/b /probe
state --flag none|--flag state none|kill --signal 9 none|frobnicate|create --bundle|create --preserve-fds x @1|update --pids-limit x none
list|list -q|list --format json|list --format table|list --format xml|list -f json -q
--log-format xml list|--root / list|--debug list --format json
create --bundle none @1|run --bundle none @1|create --bundle volume @1|create --bundle rootfs/probe @1|create --pid-file none/pid @1
create --console-socket none @1|run --console-socket none @1|run --detach --console-socket none @1|create --pidfd-socket none @1
spec --bundle none|spec --bundle volume|spec --bundle volume|spec a|checkpoint none|restore none|checkpoint|restore`, "|")

// withContainer are the command lines in one container's life. @ is its id; a word that ends
// with a colon is an action of the test.
var withContainer = strings.Split(`create @|create @|run @|state @|list -q|pause @|state @|resume @|delete @|state @
create --no-pivot @|kill @ 0|kill @ WINCH|exec @ /probe ids|ps --format json @|update --pids-limit 30 @|start @|started:|start @|create @|run --detach @
state @|kill @ FOO|kill @ 9x|kill @ 100|kill @ -1|kill @ |delete @|resume @|exec @|exec @ /none|exec @ none|exec @ /probe ids|exec @ /probe none|exec @ /probe
exec --cwd tmp @ /probe ids|exec --cwd /tmp @ /probe ids|exec --cwd /none/new @ /probe ids|exec --user 1000:1000 @ /probe ids|exec --user 1000 @ /probe ids
exec --user x @ /probe ids|exec --user 1:y @ /probe ids|exec --env A=1 @ /probe ids|exec -e A @ /probe ids|exec --additional-gids 5 @ /probe ids
exec --cap CAP_SYS_ADMIN @ /probe ids|exec --cap CAP_FLY @ /probe ids|exec --no-new-privs @ /probe ids|exec --process volume/process.json @|exec --process none @
exec --process volume/broken.json @|exec --process volume/file @|exec --process volume/process.json @ /probe|exec --preserve-fds 2 @ /probe ids
exec --tty --detach @ /probe ids|exec --console-socket none @ /probe ids|exec --cgroup ../.. @ /probe ids|exec @ -- /probe ids
ps @|ps --format json @|ps --format xml @|ps @ -ef|events --stats @
update --pids-limit 20 @|update --memory 64000000 @|update --memory much @|update --cpu-quota 20000 --cpu-period 50000 @|update --cpu-share 100 @|update --cpu-quota 30000 @
update --cpuset-cpus 900 @|update --memory 1 @|update --resources volume/resources.json @|update --resources none @|update --resources volume/file @|update @
limits:|pause @|state @|pause @|exec @ /probe ids|kill @ WINCH|start @|delete @|ps --format json @|resume @|state @|resume @
kill @ KILL|ended:|state @|list -q|start @|kill @|kill --all @ KILL|exec @ /probe ids|pause @|resume @|ps @|ps --format json @|events --stats @|update --pids-limit 9 @|create @
delete @|state @|delete @|delete --force @
short:|run --keep @|state @|delete --force @|run @|state @|run --detach --pid-file pid @|delete --force @|state @`, "|")

// words splits a line of the tables, also at line breaks.
func words(lines []string) (all [][]string) {
	for _, text := range lines {
		for line := range strings.SplitSeq(text, "\n") {
			all = append(all, strings.Split(line, " "))
		}
	}
	return all
}

// help matches the usage text: each program has its own.
var help = regexp.MustCompile(`(?s)(Incorrect Usage[^\n]*\n\n)?NAME:.*`)

// figures are the numbers that ps and events print of one moment, with the blanks that align
// them.
var figures = regexp.MustCompile(`[\d.]+|\s+`)

// momentary are the figures of events that are omitted while they are zero (the omitempty and
// omitzero fields of runc's types/events.go).
var momentary = map[string]bool{"cache": true, "usage": true, "max": true, "failcnt": true, "current": true, "total": true,
	"throttling": true, "some": true, "full": true, "ioServiceBytesRecursive": true, "ioServicedRecursive": true, "ioQueueRecursive": true,
	"ioServiceTimeRecursive": true, "ioWaitTimeRecursive": true, "ioMergedRecursive": true, "ioTimeRecursive": true, "sectorsRecursive": true}

// lasting returns the text of events, or of ps, without its figures: the same at any moment.
func lasting(text string) string {
	var event any
	if json.Unmarshal([]byte(text), &event) == nil {
		shape, _ := json.Marshal(withoutFigures(event)) // it was JSON
		return string(shape)
	}
	return figures.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.TrimSpace(s) != "":
			return "N"
		case strings.Contains(s, "\n"):
			return "\n"
		}
		return " "
	})
}

func withoutFigures(value any) any {
	switch value := value.(type) {
	case float64:
		return "N"
	case []any:
		for i := range value {
			value[i] = withoutFigures(value[i])
		}
	case map[string]any:
		for name, inner := range value {
			// usage and max are also the names of objects that are always there.
			if _, object := inner.(map[string]any); momentary[name] && (!object || name == "throttling" || name == "some" || name == "full") {
				delete(value, name)
			} else {
				value[name] = withoutFigures(inner)
			}
		}
	}
	return value
}

// ordered runs one line of the tables in a container's life.
func (h *history) ordered(args []string, watched *int) {
	s := h.site
	switch strings.Join(args, " ") {
	case "started:":
		h.watch(watched)
		return
	case "limits:":
		h.limits(h.pid())
		return
	case "short:":
		plain(s, "ids").save()
		return
	case "ended:":
		if !readable(*watched, patience()) {
			s.t.Fatal("the process does not end")
		}
		unix.Close(*watched)
		return
	}
	name := strings.Join(args, " ")
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "@", s.id)
	}
	own := streams{in: h.input}
	if args[0] == "create" || args[0] == "run" {
		own.out = s.create("process-stdout") // the process has it longer than the command
		defer own.out.Close()
	}
	got := s.callWith(own, args...)
	if own.out != nil {
		got.out = s.commandsOwn()
	}
	got.out = help.ReplaceAllString(got.out, "${1}help\n")
	got.err = help.ReplaceAllString(got.err, "${1}help\n")
	if args[0] == "events" || args[0] == "ps" {
		got.out = lasting(got.out)
	}
	h.told(name, got)
}

// commandsOwn returns what create or run printed before the process did: the usage text, if
// anything.
func (s *site) commandsOwn() string {
	text := s.read("process-stdout")
	if !strings.HasPrefix(text, "Incorrect Usage") {
		return ""
	}
	return text
}

// pid returns the first process's pid.
func (h *history) pid() int {
	var pid int
	for _, group := range cgroups(h.site.id) {
		text, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		if err == nil && len(text) > 0 {
			pid, _ = strconv.Atoi(strings.Fields(string(text))[0]) // the kernel's text
		}
	}
	return pid
}

func (h *history) watch(watched *int) {
	fd, err := unix.PidfdOpen(h.pid(), 0)
	if err != nil {
		h.site.t.Fatalf("cannot watch the container: %v", err)
	}
	*watched = fd
}

// commanded goes through the life of a container with both tables.
func commanded(s *site) []string {
	s.t.Helper()
	plain(s, "world").save()
	s.write("volume/process.json", `{"args":["/probe","ids"],"cwd":"/","env":["A=1"],"user":{"uid":7,"gid":8}}`)
	s.write("volume/broken.json", `{"args":["/probe"`)
	s.write("volume/resources.json", `{"pids":{"limit":11}}`)
	in, input := s.pipe() // the container lives as long as its input is open
	defer in.Close()
	defer input.Close()
	h, watched := &history{site: s, input: in}, -1
	for _, args := range append(words(withoutContainer), words(withContainer)...) {
		h.ordered(args, &watched)
	}
	h.left()
	return h.normal()
}

// TestCommandLinesAreTheSameToBoth goes through a container's life with valid and invalid
// commands in every state.
func TestCommandLinesAreTheSameToBoth(t *testing.T) {
	if rest := unexplained(differ(both(t, quiet(t), "", commanded))); len(rest) > 0 {
		t.Errorf("\n%s", strings.Join(rest, "\n"))
	}
}
