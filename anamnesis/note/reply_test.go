package note

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		findings   int
		fails      bool
	}{
		{"plain", `{"findings":[{"text":"a","ops":[1]}]}`, 1, false},
		{"fenced", "```json\n{\"findings\":[{\"text\":\"a\",\"ops\":[1]}]}\n```", 1, false},
		{"prose with braces after", `I think so: {"findings":[{"text":"a","ops":[1]}]} {done}`, 1, false},
		{"a text for a statement", `{"findings":["a","b"]}`, 2, false},
		{"null lists", `{"findings":null,"advice":[]}`, 0, false},
		{"unknown fields", `{"findings":[{"text":"a","ops":[1],"x":1}],"y":2}`, 1, false},
		{"empty text", `{"findings":[{"text":" ","ops":[1]}]}`, 0, false},
		{"text is an object", `{"findings":[{"text":{"a":1}}]}`, 0, true},
		{"list is an object", `{"findings":{"a":1}}`, 0, true},
		{"half", `{"findings":[{"text":"a","ops":[1]}`, 0, true},
		{"only an inner object", `"findings":[{"text":"a","ops":[1]}]`, 0, true},
		{"a list", `[1,2]`, 0, true},
		{"nothing", ``, 0, true},
		{"deep", strings.Repeat(`{"a":`, 20_000), 0, true},
	} {
		rep, err := Decode(tt.text)
		if (err != nil) != tt.fails || len(rep.Notes.Findings) != tt.findings {
			t.Errorf("%s: %d findings, %v; want %d, failing %v", tt.name, len(rep.Notes.Findings), err,
				tt.findings, tt.fails)
		}
	}
	for _, field := range []string{"failure_causes", "falsified", "findings", "verified", "untried", "advice", "cards"} { // each alone is an answer
		if _, err := Decode(`{"` + field + `":[]}`); err != nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := Decode(`{"other":[]}`); err == nil {
		t.Error("an object without any of the fields is an answer")
	}
	rep, err := Decode(
		`{"falsified":[{"action":"a","confidence":0.9,"ops":["12","op 13","14-15","ops 16",17.0,"x",null,-1]}]}`)
	if err != nil || !slices.Equal(rep.Notes.Falsified[0].Ops, []uint64{0, 1, 12, 13, 14, 15, 16, 17}) ||
		rep.Notes.Falsified[0].Confidence != ConfidenceHigh {
		t.Errorf("lenient numbers: %+v, %v", rep.Notes.Falsified, err)
	}
	for text, want := range map[string]uint64{"9007199254740992.0": 1 << 53, "9007199254740994.0": 0, "1.5": 0, "-1.0": 0, "0.0": 0, "2e1": 20, "18446744073709551615": 1<<64 - 1, "": 0} {
		if got := opNumber(text); got != want {
			t.Errorf("operation %q: %d, want %d", text, got, want)
		}
	}
	many := `{"findings":[` + strings.Repeat(`"x",`, 99) + `"x"]}`
	if rep, err := Decode(many); err != nil || len(rep.Notes.Findings) != maxReplyItems {
		t.Errorf("a long list: %d kept, %v", len(rep.Notes.Findings), err)
	}
}

// TestDecodeCard: of a card a text stands for a list, blank entries and those beyond the limits are left out.
func TestDecodeCard(t *testing.T) {
	var bullets, ops []string
	for i := range MaxCardBullets + 1 {
		bullets = append(bullets, fmt.Sprintf("%q", fmt.Sprint("b", i)))
	}
	for i := range maxCitedOps + 1 {
		ops = append(ops, fmt.Sprint(i+1))
	}
	for text, want := range map[string]string{
		`{"topic":"t","issue":"one","solution":"","ops":12}`:       "[one] [] [] [12]",
		`{"topic":"t","issue":["one"," "],"solution":[],"ops":""}`: "[one] [] [] []",
		`{"topic":"t","constraint":["a","b"],"ops":[3,2,3]}`:       "[] [] [a b] [2 3]",
	} {
		rep, err := Decode(`{"cards":[` + text + `]}`)
		if err != nil || len(rep.Cards) != 1 {
			t.Fatalf("%s: %+v, %v", text, rep, err)
		}
		c := rep.Cards[0]
		if got := fmt.Sprint(c.Issue, " ", c.Solution, " ", c.Constraint, " ", c.Ops); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	rep, err := Decode(fmt.Sprintf(`{"cards":[{"topic":"t","issue":[%s],"ops":[%s]}]}`, strings.Join(bullets, ","),
		strings.Join(ops, ",")))
	if err != nil || len(rep.Cards[0].Issue) != MaxCardBullets || len(rep.Cards[0].Ops) != maxCitedOps {
		t.Errorf("%+v, %v", rep.Cards, err)
	}
}

// TestConfidence: words and shares say how sure a model is; what says nothing is low.
func TestConfidence(t *testing.T) {
	for text, want := range map[string]Confidence{
		"high": ConfidenceHigh, " Medium ": ConfidenceMedium, "LOW": ConfidenceLow, "0.8": ConfidenceHigh,
		"1": ConfidenceHigh, "0.79": ConfidenceMedium, "0.4": ConfidenceMedium,
		"0.39": ConfidenceLow, "0": ConfidenceLow, "-1": ConfidenceLow, "": ConfidenceLow, "quite": ConfidenceLow,
		"NaN": ConfidenceLow,
	} {
		if got := confidence(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}
