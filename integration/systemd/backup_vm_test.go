//go:build vm

package systemd

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
)

var ours = []string{"clove.service", "clove.socket", "clove-agents.service"}

func systemctl(t *testing.T, verb string, units ...string) {
	t.Helper()
	do(t, "systemctl", append([]string{verb}, units...)...)
}

// The instructions in docs/operations.md for restoring a backup, and for a damaged store,
// work.
func TestSystemdBackup(t *testing.T) {
	installed(t)
	const copied, database = "/root/copy.db", "/var/lib/clove/clove.db"
	t.Cleanup(func() { sh(t, "rm -f "+copied+" "+copied+".kernel "+database+".damaged") })
	detach(t, "kept", "exit 3")
	try(t, "clove", "wait", "kept")
	detach(t, "live", counting)
	do(t, "clove", "backup", copied)
	if o := try(t, "clove", "backup", copied); o.code == 0 || !strings.Contains(o.text, "there already") {
		t.Errorf("%d, %s", o.code, o.text)
	}
	do(t, "clove", "rm", "kept")
	back := func() {
		t.Helper()
		systemctl(t, "stop", ours...)
		do(t, "install", "-m", "600", copied, database)
		do(t, "install", "-m", "600", copied+".kernel", "/var/lib/clove/kernel.db")
		systemctl(t, "start", "clove-agents.service", "clove.service")
	}
	back()
	if run := inspect(t, "kept"); run.Record == nil || run.Record.ExitCode != 3 {
		t.Errorf("%+v", run.Record)
	}
	until(t, "what was live then is over", func() bool { return inspect(t, "live").State == agent.StateEnded })

	systemctl(t, "stop", ours...)
	sh(t, "dd if=/dev/urandom of="+database+" bs=4096 count=4 conv=notrunc status=none")
	if o := try(t, "systemctl", "start", "clove.service"); o.code == 0 {
		t.Error("it starts on a damaged store")
	}
	until(t, "the journal has its hint", func() bool {
		return strings.Contains(do(t, "journalctl", "-u", "clove.service", "-n", "20", "-o", "cat"), "hint:")
	})
	systemctl(t, "stop", ours...)
	do(t, "mv", database, database+".damaged")
	systemctl(t, "reset-failed", "clove.service", "clove.socket")
	systemctl(t, "start", "clove-agents.service", "clove.service")
	if all := runs(t); len(all) != 0 {
		t.Errorf("a new store has %d runs", len(all))
	}
	back()
	inspect(t, "kept")
}
