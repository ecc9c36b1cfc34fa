package imports

import "fmt"

// plan is what the settings of a file ask for.
type plan struct {
	system  string // the filter's file: nothing else is asked for
	filter  []string
	notes   []note
	own     []string // settings of the program itself
	writes  []place  // wishes, which resolve turns into the rest
	reads   []place
	hides   []place
	keeps   []place // places that may not be written
	volumes []volume
	// writable are the places that stay writable, with the reason.
	writable map[string]string
	env      map[string]string
	ofEnv    string // the setting that env comes from

	mode        string
	public      string // the setting that allows the whole internet
	denyAll     string // the setting that denies everything
	noLoopback  string // the setting that denies the host's loopback
	allow, deny []target
	ports       []hostPort
}

// note is what became of a setting.
type note struct{ setting, text string }

// hostPort is a port of the host's loopback.
type hostPort struct {
	number  uint16
	setting string
}

func newPlan() plan { return plan{writable: map[string]string{}, env: map[string]string{}} }

func (p *plan) note(setting, format string, values ...any) {
	p.notes = append(p.notes, note{setting, fmt.Sprintf(format, values...)})
}
