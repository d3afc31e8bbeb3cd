package guard

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProcessLimit: a command that starts processes without end is held to a
// number of them and is ended whole, as root and as an ordinary user, also
// where there are no namespaces.
func TestProcessLimit(t *testing.T) {
	_, err := exec.LookPath("perl")
	needs(t, err == nil, "perl")
	onStages(t, func(t *testing.T, dir string, run func(stage) string) {
		o := hiddenState(t, dir)
		for name, none := range map[string]bool{"namespaces": false, "Landlock": true} {
			line := long(t)
			// 2,000 are more than the limit and what this user may have besides.
			out := run(stage{NoNamespaces: none, Options: o, Processes: 40, Command: `perl -e '$0 = "` + line +
				`"; for (1..2000) { my $p = fork(); if (!defined $p) { print "refused\n"; exit } if (!$p) { sleep 600 } }'`})
			if !strings.Contains(out, "refused") {
				t.Errorf("%s: no fork was refused:\n%s", name, out)
			}
			if left := running(t, line); len(left) > 0 {
				t.Errorf("%s: still alive: %v", name, left)
			}
		}
	})
}

// TestStormEnds: a fork bomb whose processes leave their session ends with its command, also where
// there are no namespaces and only Landlock confines signals.
func TestStormEnds(t *testing.T) {
	_, err := exec.LookPath("perl")
	needs(t, err == nil, "perl")
	onStages(t, func(t *testing.T, dir string, run func(stage) string) {
		line := long(t)
		// In case this fails, it ends by itself and says so, and before the machine has 6,000 processes.
		out := run(stage{NoNamespaces: true, Options: hiddenState(t, dir), Processes: 400, Seconds: 1,
			Command: `perl -MPOSIX -e '$0 = "` + line + `"; $SIG{TERM} = "IGNORE"; my $end = time + 120;
			while (time < $end) { open(F, "/proc/loadavg"); exit if <F> =~ m{/(\d+)} && $1 > 6000; close(F);
			my $p = fork(); POSIX::setsid() if defined $p && !$p } open(F, ">outlived")'`})
		if left := running(t, line); len(left) > 0 || strings.Contains(out, "alive:") {
			t.Errorf("%d are still alive:\n%s", len(left), out)
		}
		if found, _ := filepath.Glob(filepath.Join(dir, "*", "outlived")); len(found) > 0 {
			t.Error("the storm ended by itself")
		}
	})
}

// TestKilledFromOutside: a namespace whose supervisor is stuck is ended whole,
// while its processes start others.
func TestKilledFromOutside(t *testing.T) {
	b := newBox(t, SandboxOptions{})
	needs(t, b.parts.PIDs, "PID namespaces")
	b.procs = 60
	line := long(t)
	s, err := startSupervisor(context.Background(), b.Sandbox, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.prepare(Command{Path: "/bin/bash", Args: []string{"bash", "-c", "while :; do " + line + " & done"}, Dir: b.world, Env: os.Environ(), Timeout: time.Hour, Sandbox: b.Sandbox}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.control.Write([]byte{goByte}); err != nil {
		t.Fatal(err)
	}
	await(t, "the command runs", func() bool { return len(running(t, line)) > 0 })
	o, err := s.rescue(t.Context(), true)
	if err != nil || len(o.Alive) > 0 || len(running(t, line)) > 0 {
		t.Errorf("rescue = %+v, %v; running: %v", o, err, running(t, line))
	}
}
