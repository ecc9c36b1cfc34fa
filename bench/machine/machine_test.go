package machine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindings(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, text := range map[string]string{
		"proc/swaps": "Filename Type Size\n/swap file 1\n", "proc/loadavg": "0.05 0.1 0.1 1/2 3\n", "proc/sys/kernel/randomize_va_space": "2\n",
		"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]bool{"swap": false, "load of the last minute": true, "address space layout": false, "transparent huge pages": true, "SMT": true}
	for _, f := range Findings(root) {
		if quiet, asked := want[f.Name]; asked && quiet != f.Quiet || !f.Quiet && f.Hint == "" {
			t.Errorf("%+v", f)
		}
	}
}

// The figure is one of the machine; that it is one at all can be tested.
func TestMeasure(t *testing.T) {
	t.Parallel()
	if n := Measure("now"); n.Spin < 0 || n.Memory < 0 || n.SpinMS <= 0 || n.When != "now" {
		t.Errorf("%+v", n)
	}
	if spread([]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}) != 0 {
		t.Error("equal times are apart")
	}
}
