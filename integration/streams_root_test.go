//go:build root

package integration

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// streamUse is the part of the record of an ended run.
func streamUse(t *testing.T, d *cloved, name string) agent.StreamUse {
	t.Helper()
	var shown struct {
		Record *agent.Record `json:"record"`
	}
	text := d.ok("inspect", name)
	if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.Record == nil || shown.Record.Streams == nil {
		t.Fatal(err, text)
	}
	return *shown.Record.Streams
}

// Two programs that know nothing of clove are joined by mail. The writer has more than the mailbox and its pipe
// hold, so it waits until the reader starts, also while cloved is killed: each line arrives once, in order, and
// the record says that it waited. The control is a writer whose lines have place, which does not wait.
func TestShellProgramsAreJoinedByMail(t *testing.T) {
	d := newCloved(t)
	const writes = `i=0; while [ $i -lt LINES ]; do i=$((i+1)); printf "%d %01000d\n" $i 0; done; echo written >&2`
	write := func(name, lines string) {
		d.ok("run", "-d", "--name", name, "--grant", "send:lines", "--stdout-to", "mail:lines", "--", "sh", "-c", strings.ReplaceAll(writes, "LINES", lines))
	}
	d.ok("name", "reserve", "lines")
	write("control", "100")
	d.ok("wait", "control")
	if u := streamUse(t, d, "control"); u.Sent != 100 || u.WaitedMS != 0 {
		t.Errorf("control: %+v", u)
	}
	write("writer", "1200")
	until(t, "the mail", func() bool { return strings.Contains(d.ok("mail", "list", "--json"), `"messages": 1024`) })
	time.Sleep(time.Second)
	if strings.Contains(d.ok("logs", "writer"), "written") {
		t.Error("the writer did not wait")
	}
	d.stop(unix.SIGKILL)
	d.serve()
	d.ok("run", "-d", "--name", "reader", "--grant", "name:lines", "--stdin-from", "mail:lines", "--", "sh", "-c", `n=0; while read i rest; do n=$((n+1)); echo "$n $i"; done`)
	d.ok("wait", "writer")
	until(t, "the mail", func() bool { return strings.HasSuffix(strings.TrimSpace(d.ok("logs", "reader")), "1300 1200") })
	lines := strings.Split(strings.TrimSpace(d.ok("logs", "reader")), "\n")
	if len(lines) != 1300 || lines[99] != "100 100" || lines[100] != "101 1" {
		t.Errorf("%d lines, %q", len(lines), lines[99:101])
	}
	d.ok("stop", "reader")
	if u := streamUse(t, d, "writer"); u.Sent != 1200 || u.WaitedMS < 1000 || u.Unsent != 0 {
		t.Errorf("writer: %+v", u)
	}
	if u := streamUse(t, d, "reader"); u.Received != 1300 {
		t.Errorf("reader: %+v", u)
	}
}

// What is not served is refused before anything is made, with a hint; with the grant the same line starts.
func TestStreamsThatCannotBeJoinedAreRefused(t *testing.T) {
	d := newCloved(t)
	d.ok("name", "reserve", "box")
	for name, row := range map[string]struct {
		flags []string
		hint  string
	}{
		"send": {[]string{"--stdout-to", "mail:box"}, "--grant send:box"}, "name": {[]string{"--stdin-from", "mail:box"}, "name:box"},
		"terminal": {[]string{"-t", "--grant", "send:box", "--stdout-to", "mail:box"}, "omit the terminal"}, "form": {[]string{"--stdout-to", "box"}, "mail:NAME"},
	} {
		if r := d.clove(append(append([]string{"run", "-d", "--name", name}, row.flags...), "--", "true")...); r.code == 0 || !strings.Contains(r.stderr, row.hint) {
			t.Errorf("%s: %d, %s", name, r.code, r.stderr)
		}
	}
	d.ok("run", "-d", "--name", "granted", "--grant", "send:box", "--stdout-to", "mail:box", "--", "echo", "hello")
	d.ok("wait", "granted")
	if text := d.ok("mail", "read", "box"); !strings.Contains(text, `"hello"`) {
		t.Error(text)
	}
	// A reader that has ended ends the pipe of the writer, as in a shell.
	d.ok("run", "-d", "--name", "gone", "--agent-socket", "--", "true")
	d.ok("wait", "gone")
	d.ok("run", "-d", "--name", "endless", "--grant", "send:gone", "--stdout-to", "mail:gone", "--", "yes")
	if r := d.clove("wait", "endless"); r.code != 128+int(unix.SIGPIPE) {
		t.Error(r.code, r.stderr)
	}
	if u := streamUse(t, d, "endless"); u.Sent != 0 || u.Unsent == 0 {
		t.Errorf("%+v", u)
	}
}
