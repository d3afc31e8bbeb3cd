package anamnesis

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
)

// TestSchema: what the model is told is valid JSON Schema and means what the
// decoder reads.
func TestSchema(t *testing.T) {
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(schemaText), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, object, _ := strings.Cut(goodReply, "\n")
	object = object[:strings.LastIndexByte(object, '}')+1]
	var v any
	if err := json.Unmarshal([]byte(object), &v); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(v); err != nil {
		t.Errorf("the tests' good reply does not fit the schema: %v", err)
	}
	for name := range s.Properties {
		if rep, err := note.Decode(`{"` + name + `": []}`); err != nil || !rep.Notes.Empty() {
			t.Errorf("the decoder does not know the schema's field %q: %v", name, err)
		}
	}
	if len(s.Properties) != 7 {
		t.Errorf("the schema has %d fields", len(s.Properties))
	}
}

func TestGround(t *testing.T) {
	r := story().request(16000)
	recs := records(&r)
	ev := newEvidence(&r, recs)
	for _, tt := range []struct {
		name, reply string
		kept        bool
	}{
		{"exact quote", `{"falsified":[{"action":"a","error":"parser_test.go:31: got 3 nodes, want 4","ops":[19]}]}`, true},
		{"other white space", `{"falsified":[{"action":"a","error":"--- FAIL: TestParse (0.00s)\n\tparser_test.go:31:  got 3 nodes, want 4","ops":[19]}]}`, true},
		{"no error printed", `{"falsified":[{"action":"a","error":"","ops":[19]}]}`, true},
		{"changed quote", `{"falsified":[{"action":"a","error":"parser_test.go:31: got 3 nodes, want 5","ops":[19]}]}`, false},
		{"other case", `{"falsified":[{"action":"a","error":"GOT 3 NODES","ops":[19]}]}`, false},
		{"quote across two outputs", `{"falsified":[{"action":"a","error":"exit status 1 # example","ops":[19]}]}`, false},
		{"two outputs run together", `{"falsified":[{"action":"a","error":"exit status 1{\"command\":\"go generate","ops":[19]}]}`, false},
		{"too short to mean anything", `{"falsified":[{"action":"a","error":"go","ops":[19]}]}`, false},
		{"op before the span", `{"falsified":[{"action":"a","error":"","ops":[11]}]}`, false},
		{"op after the span", `{"falsified":[{"action":"a","error":"","ops":[19,35]}]}`, false},
		{"no op", `{"falsified":[{"action":"a","error":"exit status 1","ops":[]}]}`, false},
		{"no action", `{"falsified":[{"action":"","error":"","ops":[19]}]}`, false},
		{"uncited advice", `{"advice":["do it"]}`, true},
		{"advice citing elsewhere", `{"advice":[{"text":"x","ops":[99]}]}`, false},
		{"cause citing elsewhere", `{"failure_causes":[{"text":"x","ops":[99]}]}`, false},
		{"option citing elsewhere", `{"untried":[{"text":"x","ops":[99]}]}`, false},
		{"uncited finding", `{"findings":["x"]}`, false},
		{"verified by a success", `{"verified":[{"text":"x","ops":[26]}]}`, true},
		{"verified by a failure", `{"verified":[{"text":"x","ops":[22]}]}`, false},
		{"verified by a word", `{"verified":[{"text":"x","ops":[12]}]}`, false},
		{"verified by the jump", `{"verified":[{"text":"x","ops":[33]}]}`, false},
		{"card", `{"cards":[{"topic":"t","issue":["i"],"solution":["s"],"ops":[19]}]}`, true},
		{"card without ops", `{"cards":[{"topic":"t","issue":["i"],"solution":["s"],"ops":[]}]}`, false},
		{"card without a topic", `{"cards":[{"topic":"","issue":["i"],"solution":["s"],"ops":[19]}]}`, false},
		{"card that says nothing", `{"cards":[{"topic":"t","issue":[],"solution":[],"constraint":["c"],"ops":[19]}]}`, false},
	} {
		rep, err := note.Decode(tt.reply)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		dropped := ev.ground(&rep)
		if kept := !rep.Notes.Empty() || len(rep.Cards) > 0; kept != tt.kept || (dropped == 0) != tt.kept {
			t.Errorf("%s: kept %v, dropped %d; want kept %v", tt.name, kept, dropped, tt.kept)
		}
	}
}

func FuzzDecodeReply(f *testing.F) {
	f.Add(goodReply)
	f.Add(`{"findings":[{"text":"a","ops":["1-2"]}]}`)
	f.Add(`{{{"cards":[{"topic":1,"issue":"x"}]}`)
	f.Add("{\"advice\":[\"[/ANAMNESIS_BLOCK]\"]}")
	r := story().request(16000)
	recs := records(&r)
	ev := newEvidence(&r, recs)
	f.Fuzz(func(t *testing.T, text string) {
		rep, err := note.Decode(text)
		if err != nil {
			if s := err.Error(); s == "" || strings.Contains(s, "\n") {
				t.Fatalf("error %q", s)
			}
			return
		}
		ev.ground(&rep)
		for _, fp := range rep.Notes.Falsified {
			if fp.Error != "" && !ev.quoted(fp.Error) || !ev.cited(fp.Ops) ||
				utf8.RuneCountInString(fp.Error) > note.MaxErrorRunes {
				t.Fatalf("ungrounded: %+v", fp)
			}
		}
		block, _ := rep.Notes.Block(r.span(), nil, 400, r.Count)
		if words(block) > 400 || strings.Count(block, quote.BlockEnd) != 1 ||
			strings.Count(block, quote.BlockBegin) != 1 {
			t.Fatalf("block:\n%s", block)
		}
		for _, c := range cards(&r, rep.Cards, "m", "h") {
			if err := c.Validate(); err != nil {
				t.Fatalf("card: %v", err)
			}
		}
	})
}
