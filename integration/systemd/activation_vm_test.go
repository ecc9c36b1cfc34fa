//go:build vm

package systemd

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A connection starts cloved, whichever member of the group makes it.
func TestSystemdSocketActivation(t *testing.T) {
	installed(t)
	do(t, "systemctl", "stop", "clove.service")
	if state := try(t, "systemctl", "is-active", "clove.service"); state.code == 0 {
		t.Fatalf("it is %s", state.text)
	}
	const stranger, member = "--reuid=65534 --regid=65534 --clear-groups", "--reuid=65534 --regid=65534 --groups=clove"
	if o := try(t, "sh", "-c", "setpriv "+stranger+" clove ps"); o.code == 0 {
		t.Errorf("a user outside of the group may connect: %s", o.text)
	}
	sh(t, "setpriv "+member+" clove ps")
	if state := do(t, "systemctl", "is-active", "clove.service"); state != "active" {
		t.Errorf("it is %s", state)
	}
	// A second cloved, started by hand, is refused and does not disturb the first.
	pid := mainPID(t)
	o := try(t, "/usr/sbin/cloved")
	if o.code == 0 || !strings.Contains(o.text, "another cloved") || !strings.Contains(o.text, "hint:") {
		t.Errorf("%d, %s", o.code, o.text)
	}
	do(t, "clove", "ps")
	if mainPID(t) != pid {
		t.Error("the first one is another now")
	}
}

// entries returns what cloved writes into the journal from here on.
func entries(t *testing.T, cursor string) []map[string]any {
	t.Helper()
	var all []map[string]any
	decoder := json.NewDecoder(strings.NewReader(do(t, "journalctl", "-u", "clove.service", "--after-cursor="+cursor, "-o", "json")))
	for decoder.More() {
		var e map[string]any
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func cursor(t *testing.T) string {
	t.Helper()
	_, at, _ := strings.Cut(do(t, "journalctl", "-n", "1", "--show-cursor", "-o", "cat"), "-- cursor: ")
	return strings.TrimSpace(at)
}

// The journal has the parts of each entry as fields of their own.
func TestSystemdJournal(t *testing.T) {
	installed(t)
	begin := cursor(t)
	detach(t, "noted", "true")
	until(t, "the journal has the start", func() bool {
		for _, e := range entries(t, begin) {
			if e["CLOVE_RUN"] == "noted" && e["CLOVE_ID"] != nil && e["PRIORITY"] == "6" && strings.HasPrefix(e["MESSAGE"].(string), "started run=noted") {
				return true
			}
		}
		return false
	})
}

// systemd follows a reload, and a mistake shows in the status and changes nothing.
func TestSystemdReload(t *testing.T) {
	installed(t)
	before := sh(t, "cat /etc/clove/clove.yaml")
	t.Cleanup(func() {
		sh(t, "cat >/etc/clove/clove.yaml <<'end'\n"+before+"\nend")
		do(t, "systemctl", "reload", "clove.service")
	})
	status := func() string {
		return do(t, "systemctl", "show", "--property=StatusText", "--value", "clove.service")
	}
	pid := mainPID(t)
	sh(t, "echo 'memory_shar: 1' >>/etc/clove/clove.yaml")
	do(t, "systemctl", "reload", "clove.service")
	until(t, "the mistake is reported", func() bool {
		return strings.Contains(status(), "was not reloaded") && strings.Contains(status(), "memory_shar")
	})
	sh(t, "sed -i '$d' /etc/clove/clove.yaml")
	do(t, "systemctl", "reload", "clove.service")
	until(t, "the reload is reported", func() bool { return strings.Contains(status(), "was reloaded") })
	if mainPID(t) != pid {
		t.Error("it was restarted")
	}
}

// A cloved that does not answer is ended by the watchdog and started again; an agent is not
// affected.
func TestSystemdWatchdog(t *testing.T) {
	installed(t)
	sh(t, "mkdir -p /run/systemd/system/clove.service.d && printf '[Service]\\nWatchdogSec=15\\n' >/run/systemd/system/clove.service.d/test.conf")
	t.Cleanup(func() {
		sh(t, "rm -r /run/systemd/system/clove.service.d && systemctl daemon-reload && systemctl restart clove.service")
	})
	do(t, "systemctl", "daemon-reload")
	do(t, "systemctl", "restart", "clove.service")
	detach(t, "survivor", counting)
	before, pid := look(t, "survivor"), mainPID(t)
	// It works, so it lives for longer than the watchdog's time.
	stamp := do(t, "systemctl", "show", "--property=WatchdogTimestampMonotonic", "--value", "clove.service")
	until(t, "the watchdog is fed twice", func() bool {
		now := do(t, "systemctl", "show", "--property=WatchdogTimestampMonotonic", "--value", "clove.service")
		a, _ := strconv.ParseInt(stamp, 10, 64)
		b, _ := strconv.ParseInt(now, 10, 64)
		return time.Duration(b-a)*time.Microsecond > 16*time.Second
	})
	if mainPID(t) != pid {
		t.Fatal("it was ended although it works")
	}
	do(t, "kill", "-STOP", itoa(pid))
	until(t, "systemd has another cloved", func() bool { now := mainPID(t); return now != 0 && now != pid })
	until(t, "it answers", func() bool { return try(t, "clove", "ps").code == 0 })
	goesOn(t, "survivor", before)
}
