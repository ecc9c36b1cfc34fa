package main

import (
	"strings"
	"testing"
)

func TestTableShowsWhatWasMeasuredAndWhatWasNot(t *testing.T) {
	cpu := 12.34
	text := table(&results{
		Clove: "clove 1.0", Kernel: "6.1", CPUs: 2, Rounds: 30, Load: [2]string{"1.0 2.0 3.0", "4.0 5.0 6.0"},
		Absent: map[string]string{"docker": "no engine answers: refused"},
		Figures: []figure{
			{Peer: "clove", What: whatWhole, Together: 1, MS: spread{P50: 30, P95: 40, P99: 50}, CPUMS: &cpu, Ratio: &ratio{1.25, 1.1, 1.4}},
			{Peer: "runc", What: whatWhole, Together: 1, MS: spread{P50: 24, P95: 25, P99: 26}},
		},
		Steps:    map[string]float64{"prepare": 1, "start": 12, "rootfs": 5},
		Memories: []memory{{"clove", 10, 6.4, 5.1}},
	})
	for _, want := range []string{
		"clove 1.0, Linux 6.1, 2 CPUs, 30 rounds, load 1.0 2.0 3.0 before and 4.0 5.0 6.0 after\n",
		"whole command  1        clove  30.0  40.0  50.0  12.3  1.25 (1.10 to 1.40)\n",
		"                        runc   24.0  25.0  26.0  -     -\n",
		"clove                               10       6.4  5.1\n",
		"start 12.0, rootfs 5.0, prepare 1.0\n",
		"docker was not measured: no engine answers: refused\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	for _, name := range []string{"clove", "runc", "docker"} {
		if strings.Count(text, "\n"+name+" does: ") != 1 {
			t.Errorf("the table does not say once what %s does:\n%s", name, text)
		}
	}
	if strings.Contains(text, "bubblewrap") {
		t.Errorf("the table speaks of one that nobody asked for:\n%s", text)
	}
}

func TestTableTellsWhichRuntimesAnEngineHad(t *testing.T) {
	var figures []figure
	for _, p := range dockerPeers {
		figures = append(figures, figure{Peer: p.name, What: whatDocker, Together: 1, MS: spread{P50: 400}})
	}
	text := table(&results{Docker: "Docker 1; runc 2", Figures: figures})
	for _, want := range []string{"\nDocker 1; runc 2\n", "\ndocker's runc does: Docker's own", "\ndocker, clove-oci does: that with clove-oci\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
}
