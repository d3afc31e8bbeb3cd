package runtime

import (
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// TestToolTraits: package op knows recorded tools by their names as their specs describe them,
// and no subagent is offered one that rewinds.
func TestToolTraits(t *testing.T) {
	asked, err := builtin.OptIn("SendDMail", "dmail")
	if err != nil {
		t.Fatal(err)
	}
	for _, tl := range append(builtin.Tools(builtin.Options{}), asked...) {
		spec := tl.Spec()
		act := op.Acts(spec.Name)
		reads := act == op.Reads || act == op.Searches || act == op.Thinks || act == op.Plans || act == op.Investigates
		if spec.Rewinds != (act == op.Rewinds) || spec.Edits != (act == op.Edits) ||
			spec.Fetches != (act == op.Fetches) ||
			(spec.Command != "") != (act == op.RunsShell) || reads && !spec.ReadOnly {
			t.Errorf("%s %s, its spec is %+v", spec.Name, act, spec)
		}
		if any := (&Subagent{}).offers(tool.Spec{Name: spec.Name, Rewinds: spec.Rewinds, Delegates: spec.Delegates}); any == (spec.Rewinds || spec.Delegates) {
			t.Errorf("%s is offered to subagents: %v", spec.Name, any)
		}
	}
}
