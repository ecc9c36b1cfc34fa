package runtime

// Finding is one row of doctor.
type Finding struct {
	Name     string   `json:"name"`
	Status   string   `json:"status"`             // FindingOK or FindingMissing
	Found    string   `json:"found,omitempty"`    // what is there
	Missing  string   `json:"missing,omitempty"`  // why nothing is
	Enforces string   `json:"enforces"`           // what clove does with it
	Remedy   string   `json:"remedy,omitempty"`   // what to do when it is missing
	Controls []string `json:"controls,omitempty"` // the limits that stand on it
}

// The two answers of a probe.
const (
	FindingOK      = "ok"
	FindingMissing = "missing"
)

// Doctor looks at every kernel feature, controller and tool that clove builds
// on. It needs no root and changes nothing.
//
// run is the directory of the run directories; it need not be there yet.
func Doctor(run string) []Finding {
	executable, _ := findInit() // a missing binary is a row, not an error
	f := gatherProbes(executable, run)
	findings := make([]Finding, 0, len(probeTable))
	for _, p := range probeTable {
		finding := Finding{Name: p.name, Status: FindingOK, Enforces: p.enforces, Controls: p.controls}
		var remedy string
		finding.Found, finding.Missing, remedy = p.ask(f)
		if finding.Missing != "" {
			finding.Status, finding.Remedy = FindingMissing, remedy
		}
		findings = append(findings, finding)
	}
	return findings
}
