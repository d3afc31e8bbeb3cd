package runtime

import (
	"slices"
	"testing"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// TestRewindingTools: the fold knows the tools that rewind by the names they have in
// old streams, and their specs say so; no subagent is offered one.
func TestRewindingTools(t *testing.T) {
	asked, err := builtin.OptIn("SendDMail", "dmail")
	if err != nil {
		t.Fatal(err)
	}
	var rewind []string
	for _, tl := range append(builtin.Tools(nil), asked...) {
		spec := tl.Spec()
		if spec.Rewinds {
			rewind = append(rewind, spec.Name)
		}
		if any := (&Subagent{}).offers(tool.Spec{Name: spec.Name, Rewinds: spec.Rewinds, Delegates: spec.Delegates}); any == (spec.Rewinds || spec.Delegates) {
			t.Errorf("%s is offered to subagents: %v", spec.Name, any)
		}
	}
	slices.Sort(rewind)
	if want := []string{"SendDMail", "dmail", "jump_to_step"}; !slices.Equal(rewind, want) {
		t.Errorf("tools that rewind: %v, want %v", rewind, want)
	}
}
