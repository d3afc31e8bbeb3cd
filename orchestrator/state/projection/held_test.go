package projection

import (
	"testing"

	"anamnesis/opstream/op"
)

// TestHeldWords: words that a request did not include come after its reply, and after the results of its calls.
func TestHeldWords(t *testing.T) {
	p := new(Context)
	seq := uint64(0)
	apply := func(bodies ...op.Body) {
		for _, b := range bodies {
			seq++
			p.Apply(op.Op{Seq: seq, Tok: 1, Body: b})
		}
	}
	chat := func() (out string) {
		for _, m := range p.Chat() {
			out += string(m.Role[:1]) + ":" + m.Text + " "
		}
		return out
	}
	equal := func(when, want string) {
		t.Helper()
		if got := chat(); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	said := func(text string) *op.UserSaid { return &op.UserSaid{Text: text} }
	apply(said("a"), said("late"))
	p.Apply(op.Op{Seq: 3, Body: &op.ModelAsked{LastSeq: 1}})
	seq = 3
	if len(p.Entries) != 1 || len(p.Held) != 1 {
		t.Errorf("asked with %d entries, %d held", len(p.Entries), len(p.Held))
	}
	apply(said("meanwhile"))
	apply(&op.ModelReplied{Text: "r", Calls: []op.Call{{ID: "c", Name: "Any"}}})
	if len(p.Held) != 2 {
		t.Errorf("%d held while a call has no result", len(p.Held))
	}
	apply(&op.ToolReturned{Call: "c", Name: "Any", Text: "done"})
	equal("after the result", "u:a a:r t:done u:late\n\nmeanwhile ")
	if len(p.Held) != 0 {
		t.Errorf("%d held after the result", len(p.Held))
	}
	apply(&op.ModelAsked{LastSeq: seq}, &op.ModelFailed{})
	apply(said("more"))
	equal("after a request that failed", "u:a a:r t:done u:late\n\nmeanwhile\n\nmore ")
	apply(&op.ModelAsked{LastSeq: seq}, &op.ModelReplied{Text: " "}, said("again"))
	if len(p.Held) != 0 {
		t.Errorf("%d held after an empty reply", len(p.Held))
	}
	equal("after an empty reply", "u:a a:r t:done u:late\n\nmeanwhile\n\nmore\n\nagain ")
}
