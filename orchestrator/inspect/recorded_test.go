package inspect

import (
	"testing"

	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/optest"
)

// TestAskedBack: the agent's jumps back count with the operation that made
// them, or with the request the loop guard held back; a forward jump, one that
// was dropped, and a user's do not.
func TestAskedBack(t *testing.T) {
	const asks = `jump.requested 1 {"to":2,"by":"agent","call":"a"}` + "\n"
	for name, tt := range map[string]struct {
		ops  string
		want loop.Back // the zero Back: none
	}{
		"made":        {asks + `jump.intended 1 {"to":2,"by":"agent","backward":true}`, loop.Back{To: 2, Seq: 2}},
		"forward":     {asks + `jump.intended 1 {"to":2,"by":"agent"}`, loop.Back{}},
		"held back":   {asks + `reflect.failed 1 {"to":2}`, loop.Back{To: 2, Seq: 1}},
		"with a plan": {asks + `reflect.asked 1 {"to":2}`, loop.Back{To: 2, Seq: 1}},
		"a D-Mail":    {asks + `mail.delivered 1 {"to":2}`, loop.Back{To: 2, Seq: 2}},
		"dropped":     {asks + `jump.dropped 1 {"to":2}` + "\n" + `jump.intended 1 {"to":2,"backward":true}`, loop.Back{}},
		"of a user":   {`jump.requested 1 {"to":2,"by":"person"}` + "\n" + `jump.intended 1 {"to":2,"by":"person","backward":true}`, loop.Back{}},
		"a user then": {asks + `jump.requested 1 {"to":2,"by":"person"}` + "\n" + `jump.intended 1 {"to":2,"by":"person","backward":true}`, loop.Back{}},
	} {
		jump := asked{calls: map[string]int{"a": 0}, call: -1}
		var got loop.Back
		for _, o := range optest.Parse(t, tt.ops) {
			if b := jump.back(o); b != nil {
				got = *b
			}
		}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
