package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// program runs a program in a client's folder, and returns what it printed.
func program(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// TestTypeScript runs the tests in typescript/tests.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("typescript/tests/*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no tests: %v", err)
	}
	for i := range files {
		files[i], _ = strings.CutPrefix(files[i], "typescript/")
	}
	out := program(t, "typescript", nil, "node", append([]string{"--test", "--test-reporter=tap"}, files...)...)
	if !strings.Contains(out, "# skipped 0") || strings.Contains(out, "# tests 0") {
		t.Errorf("not every test ran:\n%s", out)
	}
}

// declared matches what a module exports, also of other modules.
var declared = regexp.MustCompile(`(?m)^export (?:class|const|function|async function) (\w+)|^export \{ (.*) \} from`)

// TestDeclarationsAreTheModules: what a .d.ts file declares as a value is in the module beside it,
// and the other way round. Types alone have no module.
func TestDeclarationsAreTheModules(t *testing.T) {
	t.Parallel()
	types := []string{"AgentOptions", "Note", "Notifications", "CallOptions", "ExecOptions", "Executed", "Output", "Source", "StartOptions"}
	for _, module := range []string{"agent", "api", "cloved", "errors", "index"} {
		declarations := exportsOf(t, "typescript/"+module+".d.ts")
		values := slices.DeleteFunc(declarations, func(name string) bool { return slices.Contains(types, name) })
		if real := exportsOf(t, "typescript/"+module+".js"); !slices.Equal(values, real) || len(real) == 0 {
			t.Errorf("%s declares %v and exports %v", module, values, real)
		}
	}
}

func exportsOf(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
		names = append(names, strings.FieldsFunc(match[1]+match[2], func(r rune) bool { return strings.ContainsRune(", ", r) })...)
	}
	slices.Sort(names)
	return names
}

// TestTypes checks typescript/tests/types.mts, in which some lines must be wrong, under TypeScript's
// compiler, which integration/install.sh types has installed.
func TestTypes(t *testing.T) {
	t.Parallel()
	installed, err := filepath.EvalSymlinks("../build/clients/types")
	if err != nil {
		testhost.Missing(t, "run integration/install.sh types: %v", err)
	}
	modules, err := filepath.Abs(filepath.Join(installed, "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	program(t, filepath.Dir(withNode(t, "typescript/tests/types.mts")), nil, "node", filepath.Join(modules, "typescript", "bin", "tsc"), "--noEmit", "--strict",
		"--target", "es2022", "--module", "nodenext", "--preserveSymlinks", "--typeRoots", filepath.Join(modules, "@types"), "--types", "node", "types.mts")
}

// withNode is a folder in which a program imports the TypeScript client by its name.
func withNode(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	client, err := filepath.Abs("typescript")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, filepath.Base(file))
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "node_modules"), 0o755),
		os.Symlink(client, filepath.Join(dir, "node_modules", "clove")),
		os.WriteFile(path, text, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}
