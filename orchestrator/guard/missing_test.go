package guard

import (
	"strings"
	"testing"

	"anamnesis/orchestrator/guard/confine"
)

// TestMissing: each part that a machine lacks is reported, and nothing of one that has all.
func TestMissing(t *testing.T) {
	all := confine.Parts{Namespaces: true, PIDs: true, Landlock: confine.LandlockSignals, Seccomp: true}
	for want, edit := range map[string]func(p *confine.Parts){
		"":                           func(*confine.Parts) {},
		"sandbox without Landlock:":  func(p *confine.Parts) { p.Landlock = 0 },
		"sandbox without a filter":   func(p *confine.Parts) { p.Seccomp = false },
		"sandbox without namespaces": func(p *confine.Parts) { p.Namespaces, p.PIDs = false, false },
		"sandbox without a PID":      func(p *confine.Parts) { p.PIDs, p.Landlock = false, confine.LandlockSignals-1 },
		"sandbox with neither|a PID": func(p *confine.Parts) { *p = confine.Parts{Seccomp: true} },
		"no sandbox:":                func(p *confine.Parts) { *p = confine.Parts{} },
	} {
		p := all
		edit(&p)
		got := missing(p)
		parts := strings.Split(want, "|")
		if want == "" {
			parts = nil
		}
		if len(got) != len(parts) {
			t.Errorf("%+v: %q, want %q", p, got, parts)
			continue
		}
		for i, part := range parts {
			if !strings.Contains(got[i], part) {
				t.Errorf("%+v: %q, want %q", p, got[i], part)
			}
		}
	}
}
