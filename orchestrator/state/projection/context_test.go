package projection

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/optest"
)

// contextOf applies operations, passes included.
func contextOf(t *testing.T, text string) *Context {
	t.Helper()
	p := new(Context)
	for _, o := range optest.Parse(t, text) {
		p.Apply(o)
		if b, ok := o.Body.(*op.PassDone); ok {
			p.Compact(Pass{PassDone: b, Seq: o.Seq, Step: o.Step, Tok: o.Tok})
		}
	}
	return p
}

// short is a chat on one line: the roles' first letters, the texts and the names of calls.
func short(ms []model.Message) string {
	var out []string
	for _, m := range ms {
		text := m.Text
		for _, c := range m.Calls {
			text += "+" + c.ID
		}
		if text == UnknownResult {
			text = "?" + m.CallID
		}
		out = append(out, string(m.Role[:1])+":"+strings.ReplaceAll(text, "\n", "/"))
	}
	return strings.Join(out, " ")
}

// TestContext: the chat that operations make, and its size.
func TestContext(t *testing.T) {
	const (
		call   = `model.replied %d {"text":"r","calls":[{"id":%q,"name":"Bash"}]}` + "\n"
		result = `tool.returned %d {"call":%q,"name":"Bash","text":%q}` + "\n"
		saved  = `world.saved %d {"mark":%q}` + "\n"
		pass   = `pass.done %d {"trigger":%q,"ranges":[{"first":%d,"last":%d}],"block":"B","words":%q}` + "\n"
	)
	f := fmt.Sprintf
	go1 := "user.said 0 {\"text\":\"go\"}\n"
	step := f(call, 1, "a") + f(result, 1, "a", "x") + f(saved, 1, "[1]") // op 2 to 4
	for _, tt := range []struct{ name, ops, want string }{
		{"a mark at the last result", go1 + f(call, 1, "a") + f(result, 1, "a", "x\n\n") + f(saved, 1, "[1]"), "u:go a:r+a t:x/[1]"},
		{"no mark", go1 + f(call, 1, "a") + f(result, 1, "a", "x") + f(saved, 1, ""), "u:go a:r+a t:x"},
		{"a mark after an answer", go1 + "model.replied 1 {\"text\":\"r\"}\n" + f(saved, 1, "[1]"), "u:go a:r u:[1]"},
		{"a mark before later words", go1 + f(call, 1, "a") + f(result, 1, "a", "x") + "user.said 1 {\"text\":\"and\"}\n" + f(saved, 1, "[1]"), "u:go a:r+a t:x/[1] u:and"},
		{"a mark after a result of another reply", go1 + f(call, 1, "a") + f(result, 1, "a", "x") + "model.replied 1 {\"text\":\"s\"}\n" + f(saved, 1, "[1]"), "u:go a:r+a t:x a:s u:[1]"},
		{"a mark after a result of another step", go1 + f(call, 1, "a") + f(result, 1, "a", "x") + f(saved, 2, "[2]"), "u:go a:r+a t:x u:[2]"},
		{"a mark of all", f(saved, 0, "[0]"), "u:[0]"},

		{"calls that join", go1 + f(call, 1, "a") + `model.replied 1 {"joins":true,"calls":[{"id":"b"}]}` + "\n" + f(result, 1, "a", "x"), "u:go a:r+a+b t:x t:?b"},
		{"calls that join beside a result", go1 + `model.replied 1 {"calls":[{"id":"a"},{"id":"b"}]}` + "\n" + f(result, 1, "a", "x") + `model.replied 1 {"joins":true,"calls":[{"id":"c"}]}`, "u:go a:+a+b+c t:x t:?b t:?c"},
		{"calls that follow all results", go1 + f(call, 1, "a") + f(result, 1, "a", "x") + `model.replied 1 {"joins":true,"calls":[{"id":"b"}]}`, "u:go a:r+a t:x a:+b t:?b"},
		{"calls that join nothing", `model.replied 1 {"joins":true,"calls":[{"id":"b"}]}`, "a:+b t:?b"},
		{"calls of another step", go1 + f(call, 1, "a") + `model.replied 2 {"joins":true,"calls":[{"id":"b"}]}`, "u:go a:r+a t:?a a:+b t:?b"},
		{"an empty reply", go1 + "model.replied 1 {\"text\":\" \"}\n", "u:go"},
		{"a call without a text", go1 + `model.replied 1 {"calls":[{"id":"a"}]}`, "u:go a:+a t:?a"},

		{"a masked result", go1 + step + `context.masked 2 {"results":[{"seq":3,"line":"L","tok":1}]}`, "u:go a:r+a t:L/[1]"},
		{"masked once", go1 + step + `context.masked 2 {"results":[{"seq":3,"line":"L","tok":1}]}` + "\n" + `context.masked 2 {"results":[{"seq":3,"line":"M","tok":1}]}`, "u:go a:r+a t:L/[1]"},
		{"what is no result", go1 + step + `context.masked 2 {"results":[{"seq":2,"line":"L","tok":1},{"seq":9,"line":"L","tok":1}]}`, "u:go a:r+a t:x/[1]"},

		{"a pass", go1 + step + f(pass, 2, "jump", 2, 4, "") + f(call, 2, "b"), "u:go//B a:r+b t:?b"},
		{"a pass over nothing", go1 + step + f(pass, 2, "jump", 9, 9, ""), "u:go a:r+a t:x/[1] u:B"},
		{"with words", go1 + step + f(pass, 2, "window", 1, 4, "W") + "user.said 2 {\"text\":\"on\"}\n", "u:B//W//on"},
		{"two passes", go1 + step + f(pass, 2, "jump", 2, 4, "") + f(pass, 2, "jump", 1, 5, ""), "u:B//B"},
		{"a pass that makes room", go1 + step + f(pass, 2, "jump", 2, 4, "") + f(pass, 2, "window", 1, 5, ""), "u:B"},
		{"words stay", go1 + step + f(pass, 2, "window", 1, 4, "W") + f(pass, 2, "window", 1, 5, ""), "u:B//W"},
		{"a D-Mail", go1 + step + f(pass, 2, "mail", 2, 4, "") + f(pass, 2, "mail", 2, 5, ""), "u:go//B"},
		{"a D-Mail that reaches further back", go1 + step + f(pass, 2, "mail", 2, 4, "") + f(pass, 2, "mail", 1, 5, ""), "u:B"},
		{"one that does not", go1 + step + f(pass, 2, "mail", 2, 4, "") + f(pass, 2, "mail", 3, 5, ""), "u:go//B//B"},
		{"a D-Mail and a jump", go1 + step + f(pass, 2, "mail", 2, 4, "") + f(pass, 2, "jump", 2, 5, ""), "u:go//B//B"},
		{"a D-Mail and a lack of room", go1 + step + f(pass, 2, "mail", 2, 4, "") + f(pass, 2, "window", 2, 5, ""), "u:go//B"},
		{"a block and a D-Mail", go1 + step + f(pass, 2, "jump", 2, 4, "") + f(pass, 2, "mail", 2, 5, ""), "u:go//B//B"},

		{"a resumed task", go1 + "model.asked 1 {\"last_seq\":1}\nuser.said 1 {\"text\":\"x\"}\n" + `task.resumed 1 {"notice":"N"}`, "u:go//x//N"},
		{"a jump", go1 + `jump.done 1 {"words":"WWW","notice":"N"}`, "u:go//WWW//N"},
		{"a system prompt", `task.opened 0 {"system":"S"}` + "\n" + go1, "s:S u:go"},
	} {
		p := contextOf(t, tt.ops)
		if got, want := short(p.Chat()), tt.want; got != want {
			t.Errorf("%s: %s, want %s", tt.name, got, want)
		}
		size := p.SystemTok
		for _, e := range append(p.Entries, p.Held...) {
			size += e.Tok
		}
		if size != p.Tokens {
			t.Errorf("%s: %d tokens, its messages have %d", tt.name, p.Tokens, size)
		}
	}

	p := contextOf(t, go1+step+f(pass, 2, "window", 1, 1, "WWW"))
	var of []string
	p.Each(func(m model.Message, entries []Entry) {
		var seqs []string
		for _, e := range entries {
			seqs = append(seqs, fmt.Sprint(e.Seq, "=", e.Tok))
		}
		of = append(of, string(m.Role[:1])+strings.Join(seqs, "+"))
	})
	if got := strings.Join(of, " "); got != "u5=1+5=4 a2=7 t3=4" {
		t.Errorf("the messages' operations: %s", got)
	}
	for seq, want := range map[uint64]bool{1: false, 2: false, 3: true, 5: false} {
		if p.Visible()(seq) != want {
			t.Errorf("op %d is a visible result: %v", seq, !want)
		}
	}
	p.Apply(op.Op{Seq: 6, Body: &op.ContextMasked{Results: []op.MaskedResult{{Seq: 3}}}})
	if p.Visible()(3) {
		t.Error("a masked result is visible")
	}
	for last, want := range map[uint64]string{1: "0 0", 2: "1 7", 4: "2 11"} {
		messages, tokens := contextOf(t, go1+step+f(pass, 2, "window", 1, 1, "WWW")).Removes(
			&op.PassDone{Ranges: []op.Range{{First: 2, Last: last}}})
		if got := fmt.Sprint(messages, tokens); last > 1 && got != want || last == 1 && messages != 0 {
			t.Errorf("a pass to op %d removes %s, want %s", last, got, want)
		}
	}
	off := Off()
	off.Apply(op.Op{Seq: 1, Tok: 1, Body: &op.UserSaid{Text: "x"}})
	if off.Compact(Pass{PassDone: &op.PassDone{Block: "B"}}); len(off.Chat()) != 0 || off.Tokens != 0 {
		t.Errorf("a context that is off: %+v", off)
	}
}

// TestImages: images are shown while all fit; masking or a pass makes room for others.
func TestImages(t *testing.T) {
	shot := func(n int) []op.Part {
		return []op.Part{
			{Kind: op.PartImage, Width: 28, Height: 28, Base64: make([]byte, n)},
			{Kind: op.PartBlob, Base64: []byte("x")},
		}
	}
	p := new(Context)
	seq := uint64(0)
	look := func(n int) string {
		seq += 2
		id := fmt.Sprint(seq)
		p.Apply(op.Op{Seq: seq - 1, Body: &op.ModelReplied{Calls: []op.Call{{ID: id}}}})
		p.Apply(op.Op{Seq: seq, Body: &op.ToolReturned{Call: id, Parts: shot(n)}})
		e := p.Entries[len(p.Entries)-1]
		return fmt.Sprint(len(e.Msg.Parts), " ", e.Msg.Text != "")
	}
	for _, tt := range []struct {
		bytes int
		want  string
	}{
		{0, "0 false"}, {100, "1 false"}, {MaxImageBytes - 99, "0 true"}, {MaxImageBytes - 100, "1 false"},
		{1, "0 true"},
	} {
		if got := look(tt.bytes); got != tt.want {
			t.Errorf("an image of %d bytes: %s, want %s", tt.bytes, got, tt.want)
		}
	}
	p.Apply(op.Op{Seq: 99, Body: &op.ContextMasked{Results: []op.MaskedResult{{Seq: 4, Line: "L"}}}})
	if got := look(100); got != "1 false" {
		t.Errorf("after an image was masked: %s", got)
	}
	p.Compact(Pass{PassDone: &op.PassDone{Ranges: []op.Range{{First: 7, Last: 8}}, Block: "B"}, Seq: 100})
	if got := look(MaxImageBytes - 100); got != "1 false" {
		t.Errorf("after a pass over a result: %s", got)
	}
	stored := *p
	stored.images = 0
	if again := Restored(stored); again.images != MaxImageBytes {
		t.Errorf("read from a snapshot: %d bytes", again.images)
	}
	for _, side := range [][2]int{{0, 28}, {28, 0}, {-1, 28}, {28, -1}} {
		if got := imageTokens(side[0], side[1]); got != 1000 {
			t.Errorf("%v: %d tokens", side, got)
		}
	}
	reply := &op.ModelReplied{Text: "abc", Calls: []op.Call{{ID: "a"}}}
	size := CountBody(reply, func(text string) int { return len(text) })
	reply.Extra = map[string]json.RawMessage{"k": json.RawMessage(`"v"`)}
	if got := CountBody(reply, func(text string) int { return len(text) }); got != size+len("k \"v\"\n") {
		t.Errorf("what a provider put beside a reply: %d tokens, %d without", got, size)
	}
	if got := CountBody(&op.ModelReplied{Text: "abc"}, func(string) int { return 1 }); got != 1 {
		t.Errorf("nothing beside a reply: %d texts are counted", got)
	}
}
