package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func readTree(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDockerPrivilegesAreOneList: the document, the compose file and the tests name the same
// capabilities, filter, device and rule for the container.
func TestDockerPrivilegesAreOneList(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(readTree(t, "integration/testdata/docker.sh"), "CAPABILITIES='")
	list, _, _ = strings.Cut(list, "'")
	want := strings.Fields(list)
	if len(want) < 10 {
		t.Fatalf("the tests give %q", list)
	}
	document := readTree(t, "docs/docker.md")
	var said []string
	for _, match := range regexp.MustCompile(`--cap-add ([A-Z_]+)`).FindAllStringSubmatch(document, -1) {
		said = append(said, match[1])
	}
	var compose struct {
		Services map[string]struct {
			Image       string
			CapDrop     []string `json:"cap_drop"`
			CapAdd      []string `json:"cap_add"`
			SecurityOpt []string `json:"security_opt"`
			Devices     []string
			Rules       []string `json:"device_cgroup_rules"`
			Init        bool
			Grace       string `json:"stop_grace_period"`
			Restart     string
			Volumes     []string
		}
		Volumes map[string]any
	}
	if err := yaml.UnmarshalStrict([]byte(readTree(t, "deploy/docker/compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	cloved := compose.Services["cloved"]
	if !slices.Equal(said, want) || !slices.Equal(cloved.CapAdd, want) || !slices.Equal(cloved.CapDrop, []string{"ALL"}) {
		t.Errorf("tests %q, document %q, compose file %q", want, said, cloved.CapAdd)
	}
	if !slices.Equal(cloved.Devices, []string{"/dev/loop-control"}) || !slices.Equal(cloved.Rules, []string{"b 7:* rw"}) {
		t.Errorf("the compose file gives %q, %q", cloved.Devices, cloved.Rules)
	}
	for _, option := range cloved.SecurityOpt {
		file, isFilter := strings.CutPrefix(option, "seccomp=")
		if isFilter {
			readTree(t, filepath.Join("deploy/docker", file))
		}
		if !isFilter && !strings.Contains(document, "--security-opt "+option) {
			t.Errorf("the document does not give %s", option)
		}
	}
	if !strings.Contains(document, "docker.sh build "+cloved.Image+" daemon") || !cloved.Init || len(compose.Volumes) != 1 {
		t.Errorf("the compose file: %+v", cloved)
	}
}

// licences is the file with the licences of everything that clove's programs are linked with;
// integration/package/docker.sh makes it.
const licences = "third-party.gz"

// TestDockerfilesCopyWhatIsStaged: they copy clove's programs, the licences, and files of
// deploy/docker.
func TestDockerfilesCopyWhatIsStaged(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"deploy/docker/Dockerfile", "deploy/kubernetes/Dockerfile"} {
		if sources := copiedBy(t, file); !slices.Contains(sources, licences) || !slices.Contains(sources, "bin/clove") {
			t.Errorf("%s copies %q: not the programs and the licences of what they are linked with", file, sources)
		}
	}
}

// copiedBy returns what a Dockerfile copies; all of it must exist.
func copiedBy(t *testing.T, file string) (sources []string) {
	t.Helper()
	for line := range strings.Lines(readTree(t, file)) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != "COPY" {
			continue
		}
		for _, source := range words[1 : len(words)-1] {
			sources = append(sources, source)
			at := filepath.Join("deploy/docker", source)
			if program, is := strings.CutPrefix(source, "bin/"); is {
				at = filepath.Join("cmd", program)
			}
			if source == licences {
				at = "integration/package/licences" // which makes it
			}
			if _, err := os.Stat(filepath.Join(Root(t), at)); err != nil {
				t.Error(err)
			}
		}
	}
	return sources
}
