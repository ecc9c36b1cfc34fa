package main

import (
	"bufio"
	"os/exec"
	"testing"
)

func TestRollupIsOneLineOfMany(t *testing.T) {
	text := "55f0-7ffe ---p 00000000 00:00 0 [rollup]\nRss:  3400 kB\nPss:  1234 kB\nPss_Anon:  100 kB\n"
	for key, want := range map[string]int64{"Pss:": 1234, "Pss_Anon:": 100} {
		if got, err := rollup([]byte(text), key); got != want || err != nil {
			t.Errorf("%s %d: %v", key, got, err)
		}
	}
	for _, text := range []string{"", "Pss_Anon: 100 kB\n", "Pss: many kB\n", "Pss: 5 MB\n"} {
		if got, err := rollup([]byte(text), "Pss:"); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestFamilyEndsWithTheAgent(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "sh -c 'echo idle; exec cat'; :")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	all := family(cmd.Process.Pid)
	if len(all) != 2 || all[0] != cmd.Process.Pid {
		t.Fatalf("%v below %d, not itself and one child", all, cmd.Process.Pid)
	}
	if agent, err := find(cmd.Process.Pid); agent != all[1] || err != nil {
		t.Errorf("%d: %v, not the child %d", agent, err, all[1])
	}
	if agent, err := find(all[1]); err == nil {
		t.Errorf("%d below a process that has no children", agent)
	}
	held, anonymous, err := (&idleAgent{cmd: cmd, agent: all[1]}).besides()
	if err != nil || anonymous <= 0 || held < anonymous {
		t.Errorf("%d KiB, %d of them anonymous: %v", held, anonymous, err)
	}
	both, _, err := (&idleAgent{cmd: cmd}).besides()
	if err != nil || both <= held {
		t.Errorf("%d KiB with the agent, %d without: %v", both, held, err)
	}
}
