package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// clovedPlace is a node with a systemd that answers about cloved as a real one would, and
// records its orders.
type clovedPlace struct {
	*place
	cloved   Cloved
	orders   []string // all calls of systemctl that are not queries
	fail     string   // the order that fails, once
	unit     string   // FragmentPath: the path of a foreign unit
	pid      int      // the pid of cloved; 0: it does not run
	enabled  bool
	agents   bool  // clove-agents.service runs
	mute     error // the error of a cloved that runs and does not answer
	answered bool  // another cloved answers, whatever systemd knows
	foreign  bool  // another cloved has the socket, and hangs
}

func newClovedPlace(t *testing.T) *clovedPlace {
	p := &clovedPlace{place: newPlace(t)}
	dir := filepath.Dir(p.handler.Binary)
	p.cloved = Cloved{Programs: dir, Units: filepath.Join(dir, "units"), Booted: filepath.Join(dir, "booted"), Systemctl: p.systemctl,
		Serves: func(context.Context) error {
			switch {
			case p.pid != 0 && p.mute != nil, p.foreign:
				return errors.New("it hangs")
			case p.answered || p.pid != 0:
				return nil
			}
			return &agent.Error{Kind: agent.KindNotFound, Message: "no process listens"}
		}}
	p.put(minimal2)
	for _, name := range []string{"clove", "clove-init", "clove-gate", "clove-loop", "clove-mcp", "clove-models", "clove-swap", "clove-tool", "clove-upstream"} {
		p.write(filepath.Join(dir, name), "")
	}
	own, err := os.Executable()
	if err := errors.Join(err, os.Symlink(own, filepath.Join(dir, "cloved"))); err != nil {
		t.Fatal(err)
	}
	p.write(p.cloved.Booted, "")
	p.write(filepath.Join(p.cloved.Units, "kubelet.service"), "[Service]\n")
	return p
}

func (p *clovedPlace) write(path, text string) {
	p.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *clovedPlace) systemctl(_ context.Context, args ...string) (string, error) {
	order := strings.Join(args, " ")
	switch order {
	case "show --property=MainPID --value clove.service":
		return strconv.Itoa(p.pid) + "\n", nil
	case "show --property=FragmentPath --value clove.service":
		return p.unit + "\n", nil
	}
	p.orders = append(p.orders, order)
	if order == p.fail {
		p.fail = ""
		return "", errors.New("exit status 5")
	}
	_, err := os.Stat(filepath.Join(p.cloved.Units, serviceUnit))
	for _, name := range args[1:] {
		if _, absent := os.Stat(filepath.Join(p.cloved.Units, name)); absent != nil && slices.Contains(unitNames, name) && args[0] != "reset-failed" {
			return "", fmt.Errorf("%s is not loaded", name)
		}
	}
	switch args[0] {
	case "enable":
		if err != nil {
			return "", err
		}
		p.enabled, p.agents = true, true
		if p.pid == 0 {
			p.pid = os.Getpid()
		}
	case "restart":
		p.pid = os.Getpid()
	case "disable":
		p.enabled, p.pid = false, 0
	case "stop":
		p.agents = false
	}
	return "", nil
}

func (p *clovedPlace) installBoth() (Result, error) {
	p.orders = nil
	return InstallWith(p.t.Context(), p.cloved, p.containerd(), p.handler)
}

func (p *clovedPlace) uninstallBoth() (Result, error) {
	p.orders = nil
	return UninstallWith(p.t.Context(), p.cloved, p.containerd())
}

// look describes the whole node: its files, and systemd's state.
func (p *clovedPlace) look() string {
	p.t.Helper()
	all := fmt.Sprintf("running %t, enabled %t, agents %t\n", p.pid != 0, p.enabled, p.agents)
	for _, dir := range []string{p.cloved.Units, filepath.Dir(p.config)} {
		files, err := os.ReadDir(dir)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, file := range files {
			all += file.Name() + "\n" + readFile(p.t, filepath.Join(dir, file.Name()))
		}
	}
	return all
}

// TestWhatWasCutShortIsTakenAway: an installation or removal was killed and left one of the
// units.
func TestWhatWasCutShortIsTakenAway(t *testing.T) {
	for _, left := range unitNames {
		p := newClovedPlace(t)
		before := p.look()
		if _, err := p.installBoth(); err != nil {
			t.Fatal(err)
		}
		for _, name := range unitNames {
			if name != left {
				if err := os.Remove(filepath.Join(p.cloved.Units, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.enabled, p.pid, p.agents = false, 0, false // as without units
		if r, err := p.uninstallBoth(); err != nil || !r.Cloved.Own || p.look() != before {
			t.Errorf("only %s: %+v, %v; orders %q, left\n%s", left, r.Cloved, err, p.orders, p.look())
		}
	}
}

var fromNothing = []string{"daemon-reload", "enable --now clove.socket clove.service"}

func TestClovedComesAndGoes(t *testing.T) {
	p := newClovedPlace(t)
	before, unit := p.look(), filepath.Join(p.cloved.Units, serviceUnit)
	r, err := p.installBoth()
	if err != nil || !r.Changed || *r.Cloved != (ClovedResult{unit, true, true}) || !slices.Equal(p.orders, fromNothing) {
		t.Fatalf("%+v, %+v, %v; orders %q", r, r.Cloved, err, p.orders)
	}
	with := p.look()
	if !p.enabled || p.pid == 0 || !strings.Contains(with, "ExecStart="+p.cloved.Programs+"/cloved\n") {
		t.Errorf("%s", with)
	}
	r, err = p.installBoth()
	if err != nil || r.Changed || *r.Cloved != (ClovedResult{unit, true, false}) || len(p.orders) != 0 || p.look() != with {
		t.Errorf("the second time: %+v, %v; orders %q", r.Cloved, err, p.orders)
	}
	r, err = p.uninstallBoth()
	if err != nil || *r.Cloved != (ClovedResult{unit, true, true}) || p.look() != before {
		t.Errorf("%+v, %v; left\n%s", r.Cloved, err, p.look())
	}
	r, err = p.uninstallBoth()
	if err != nil || *r.Cloved != (ClovedResult{}) || len(p.orders) != 0 || p.look() != before {
		t.Errorf("the second time: %+v, %v; orders %q", r.Cloved, err, p.orders)
	}
}

// TestUninstallStopsBeforeItForgets: a unit without its file cannot be disabled, and if a unit
// cannot be stopped the files stay.
func TestUninstallStopsBeforeItForgets(t *testing.T) {
	for _, fail := range []string{"disable --now clove.service clove.socket", "stop clove-agents.service clove.slice"} {
		p := newClovedPlace(t)
		if _, err := p.installBoth(); err != nil {
			t.Fatal(err)
		}
		p.fail = fail
		if _, err := p.uninstallBoth(); err == nil || slices.Contains(p.orders, "daemon-reload") {
			t.Errorf("%s: %v; orders %q", fail, err, p.orders)
		}
		if own, _, err := p.cloved.ownUnits(); err != nil || !own {
			t.Errorf("%s: its units are gone, %v", fail, err)
		}
		if r, err := p.uninstallBoth(); err != nil || !r.Cloved.Changed {
			t.Errorf("%s: again: %+v, %v", fail, r.Cloved, err)
		}
	}
}

// TestAClovedThatServesIsUsed: the installer does not matter, and an uninstall leaves it.
func TestAClovedThatServesIsUsed(t *testing.T) {
	for name, row := range map[string]struct {
		arrange func(p *clovedPlace) (unit string)
		refusal string // the error if that cloved does not serve
	}{
		"the Debian package's": {func(p *clovedPlace) string {
			p.unit = "/lib/systemd/system/clove.service"
			return p.unit
		}, "was not installed by clove node install"},
		"the administrator's": {func(p *clovedPlace) string {
			unit := filepath.Join(p.cloved.Units, serviceUnit)
			p.write(unit, "[Service]\nExecStart=/usr/local/sbin/cloved\n")
			return unit
		}, "was not installed by clove node install"},
		"without a systemd": {func(p *clovedPlace) string {
			if err := os.Remove(p.cloved.Booted); err != nil {
				p.t.Fatal(err)
			}
			return ""
		}, "systemd does not run here"},
		"started by hand": {func(*clovedPlace) string { return "" }, ""},
	} {
		p := newClovedPlace(t)
		unit := row.arrange(p)
		before := p.look()
		if row.refusal != "" {
			if r, err := p.installBoth(); err == nil || !strings.Contains(err.Error(), row.refusal) || r.Changed || len(p.orders) != 0 || p.look() != before {
				t.Errorf("%s: it does not serve: %+v, %v; orders %q", name, r, err, p.orders)
			}
		}
		p.foreign = true
		if r, err := p.installBoth(); err == nil || r.Changed || len(p.orders) != 0 || p.look() != before {
			t.Errorf("%s: it hangs: %+v, %v; orders %q", name, r, err, p.orders)
		}
		p.foreign, p.answered = false, true
		r, err := p.installBoth()
		if err != nil || !r.Changed || *r.Cloved != (ClovedResult{Unit: unit}) || len(p.orders) != 0 {
			t.Errorf("%s: %+v, %+v, %v; orders %q", name, r, r.Cloved, err, p.orders)
		}
		r, err = p.uninstallBoth()
		if err != nil || r.Cloved.Own || r.Cloved.Changed || len(p.orders) != 0 || p.look() != before {
			t.Errorf("%s: %+v, %v; orders %q, left\n%s", name, r.Cloved, err, p.orders, p.look())
		}
	}
}

// TestAFailureLeavesTheNodeAsItWas: at each order and at each step after them; also after an
// installation by an older clove.
func TestAFailureLeavesTheNodeAsItWas(t *testing.T) {
	failures := map[string]func(p *clovedPlace){
		"it does not answer":   func(p *clovedPlace) { p.mute = errors.New("it hangs") },
		"the configuration":    func(p *clovedPlace) { p.put("version = 1\n") },
		"containerd":           func(p *clovedPlace) { p.place.fail = errors.New("exit status 1") },
		"no handler's program": func(p *clovedPlace) { p.handler.Binary += "x" },
		"none (control)":       nil,
	}
	for _, order := range append(fromNothing, "restart clove.socket clove.service") {
		failures[order] = func(p *clovedPlace) { p.fail = order }
	}
	for name, arrange := range failures {
		for _, older := range []bool{false, true} {
			p := newClovedPlace(t)
			if older {
				p.older()
			}
			if arrange != nil {
				arrange(p)
			}
			failing := arrange != nil && (older || !strings.HasPrefix(p.fail, "restart"))
			before := p.look()
			_, err := p.installBoth()
			if (err != nil) != failing || (p.look() == before) != failing {
				t.Errorf("%s, older %t: %v; orders %q, left\n%s", name, older, err, p.orders, p.look())
			}
		}
	}
}

// older makes the node one with an installation by an older clove.
func (p *clovedPlace) older() {
	p.t.Helper()
	for _, name := range unitNames {
		p.write(filepath.Join(p.cloved.Units, name), unitMark+"[Unit]\n")
	}
	p.pid, p.enabled, p.agents = os.Getpid(), true, true
}

func TestAUnitThatCannotBeRead(t *testing.T) {
	p := newClovedPlace(t)
	p.write(filepath.Join(p.cloved.Units, socketUnit, "x"), "")
	if r, err := p.installBoth(); err == nil || r.Changed || len(p.orders) != 0 {
		t.Errorf("%+v, %v; orders %q", r, err, p.orders)
	}
}

// TestWhatCannotBeTakenBackIsSaid: the second error is reported beside the first.
func TestWhatCannotBeTakenBackIsSaid(t *testing.T) {
	p := newClovedPlace(t)
	p.mute = errors.New("it hangs")
	p.fail = "disable --now clove.service clove.socket"
	_, err := p.installBoth()
	if err == nil || !strings.Contains(err.Error(), "the node was not restored to its previous state") || !strings.Contains(err.Error(), "it hangs") || !strings.Contains(err.Error(), "exit status 5") {
		t.Error(err)
	}
}

// TestClovedIsRestartedForWhatChanged: for a newer program, which a rename put there, a newer
// unit, or one that was stopped.
func TestClovedIsRestartedForWhatChanged(t *testing.T) {
	for name, row := range map[string]struct {
		arrange func(p *clovedPlace)
		orders  []string
	}{
		"nothing (control)": {func(*clovedPlace) {}, nil},
		"the program": {func(p *clovedPlace) {
			if err := os.Remove(filepath.Join(p.cloved.Programs, "cloved")); err != nil {
				p.t.Fatal(err)
			}
			p.write(filepath.Join(p.cloved.Programs, "cloved"), "newer")
		}, append(slices.Clone(fromNothing), "restart clove.service")},
		"the service's unit": {func(p *clovedPlace) { p.write(filepath.Join(p.cloved.Units, serviceUnit), unitMark) }, append(slices.Clone(fromNothing), "restart clove.service")},
		"the socket's unit": {func(p *clovedPlace) { p.write(filepath.Join(p.cloved.Units, socketUnit), unitMark) },
			append(slices.Clone(fromNothing), "restart clove.socket clove.service")},
		"it was stopped": {func(p *clovedPlace) { p.pid = 0 }, fromNothing},
	} {
		p := newClovedPlace(t)
		if _, err := p.installBoth(); err != nil {
			t.Fatal(err)
		}
		with := p.look()
		row.arrange(p)
		r, err := p.installBoth()
		if err != nil || r.Changed || r.Cloved.Changed != (row.orders != nil) || !slices.Equal(p.orders, row.orders) || p.look() != with {
			t.Errorf("%s: %+v, %v; orders %q, left\n%s", name, r.Cloved, err, p.orders, p.look())
		}
	}
}
