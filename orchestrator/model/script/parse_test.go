package script

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"anamnesis/orchestrator/model"
)

func TestSyntaxErrors(t *testing.T) {
	tests := []struct{ yaml, want string }{
		{"", "script:1: the file is empty"},
		{"# nothing\n", "script:1: "},
		{"a: [", "script:"},
		{"turns: []\n---\nturns: []\n", "script:1: expected single document"},
		{"- a\n", "script:1: a list where a group of keys"},
		{"name: x\n", "script:1: the script has no `turns`"},
		{"turns: []\nturn: []\n", `script:2: unknown key "turn"`},
		{"turns: []\nsubagents:\n  - turns: [{reply: a}]\n", "script:3: a subagent needs `agent`"},
		{"turns: []\nsubagents:\n  - agent: a\n", "script:3: a subagent needs `turns`"},
		{"turns: []\nturns: []\n", `script:2: key "turns" is given twice`},
		{"turns: {}\n", "script:1: keys with values where a list is wanted"},
		{"turns:\n  - reply: a\n    replies: b\n", `script:3: unknown key "replies"`},
		{"turns:\n  - reply: [a]\n", "script:2: a list where a text is wanted"},
		{"turns:\n  - reply: a\n  - expect: []\n", "script:3: an answer needs `reply`, `calls` or `fault`"},
		{"turns:\n  - {reply: a, choose: [{reply: b}]}\n", "script:2: a turn has either"},
		{"turns:\n  - choose: []\n", "script:2: `choose` has no alternatives"},
		{"turns:\n  - reply: a\n    expect:\n      - {on: first, contains: x}\n", "script:4: `on` must be any, last, all-joined, system or result"},
		{"turns:\n  - reply: a\n    expect:\n      - {on: any}\n", "script:4: a condition demands nothing"},
		{"turns:\n  - reply: a\n    expect:\n      - {contains: ''}\n", "script:4: a text of a condition must not be empty"},
		{"turns:\n  - reply: a\n    expect:\n      - {contains: []}\n", "script:4: a text of a condition must not be empty"},
		{"turns:\n  - reply: a\n    expect:\n      - {matches: '('}\n", "script:4: `matches` is not a regular expression"},
		{"turns:\n  - calls:\n      - arguments: {}\n", "script:3: a call needs a `name`"},
		{"turns:\n  - calls:\n      - {name: a, arguments: [1]}\n", "script:3: `arguments` must be a mapping"},
		{"turns:\n  - calls:\n      - {name: a, arguments: {x: .inf}}\n", "script:3: `arguments` has a value that JSON cannot hold"},
		{"turns:\n  - calls:\n      - {name: a, arguments: {x: 1, x: 2}}\n", "script:3: key \"x\" is given twice"},
		{"turns:\n  - calls:\n      - {name: a, arguments: {}, raw_arguments: ''}\n", "script:3: a call has either"},
		{"turns:\n  - calls:\n      - {name: a, id: x}\n      - {name: a, id: x}\n", `script:4: the id "x" occurs twice`},
		{"turns:\n  - calls:\n      - {name: a, arguments: {x: {1: 2}}}\n", "script:3: `arguments` has a value"},
		{"turns:\n  - {reply: a, usage: {prompt: -1}}\n", "script:2: `prompt` must be a whole number from 0"},
		{"turns:\n  - {reply: a, finish: ''}\n", "script:2: `finish` must not be empty"},
		{"turns:\n  - {reply: a, capture: {A: (x)}}\n", "script:2: \"A\" cannot name a capture"},
		{"turns:\n  - {reply: a, capture: {a: [x]}}\n", "script:2: \"a\" cannot name a capture"},
		{"turns:\n  - {reply: a, capture: {a: x}}\n", "script:2: the capture \"a\" needs one group"},
		{"turns:\n  - {fault: {status: 399}}\n", "script:2: `status` must be"},
		{"turns:\n  - {fault: {status: 600}}\n", "script:2: `status` must be"},
		{"turns:\n  - {fault: {status: 400, times: 0}}\n", "script:2: `times` must be"},
		{"turns:\n  - {fault: {status: 400, times: 1001}}\n", "script:2: `times` must be"},
		{"turns:\n  - {fault: {delay: -1s}}\n", "script:2: \"-1s\": want a time"},
		{"turns:\n  - {fault: {}}\n", "script:2: `fault` needs exactly one"},
		{"turns:\n  - {fault: {status: 429, cut: 1}}\n", "script:2: `fault` needs exactly one"},
		{"turns:\n  - {fault: {status: 200}}\n", "script:2: `status` must be a whole number from 400 to 599"},
		{"turns:\n  - {fault: {cut: 1, body: x}}\n", "script:2: `retry_after` and `body` belong to a `status`"},
		{"turns:\n  - {fault: {delay: 5}}\n", "script:2: \"5\": want a time"},
		{"turns:\n  - {fault: {delay: 2h}}\n", "script:2: \"2h\": want a time from 0s to 1h0m0s"},
		{"turns:\n  - {until: {contains: x}, reply: a}\n", "script:2: a turn with `until` must make calls"},
		{"turns:\n  - {until: {contains: x}, calls: [{name: a, id: b}]}\n", "script:2: a turn with `until` must make calls, without an `id`"},
		{"turns:\n  - until: {contains: x}\n    choose:\n      - {when: {contains: y}, calls: [{name: a}]}\n      - reply: b\n", "script:5: a turn with `until`"},
		{"turns:\n  - until: {on: any, contains: x}\n    calls: [{name: a}]\n", "script:2: `until` examines the last result only"},
		{"turns:\n  - until: {tools: x}\n    calls: [{name: a}]\n", "script:2: `until` examines the last result only"},
	}
	for _, tt := range tests {
		m, err := Parse([]byte(tt.yaml))
		var syntax *SyntaxError
		if m != nil || !errors.As(err, &syntax) || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q\ngives %v\nwant  %s", tt.yaml, err, tt.want)
		}
	}
	for _, text := range []string{
		"turns: [{fault: {status: 400}}, {fault: {status: 599, times: 1000}}, {fault: {cut: 0, times: 1}, reply: x}]",
		"turns: [{reply: x, fault: {delay: 0s}}, {reply: x, fault: {delay: 1h}}]",
		"turns: [] #" + strings.Repeat("x", MaxFileBytes-len("turns: [] #")),
	} {
		if _, err := Parse([]byte(text)); err != nil {
			t.Errorf("%.80s: %v", text, err)
		}
	}
	if _, err := Parse(make([]byte, MaxFileBytes+1)); err == nil ||
		!strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("a file that is too large: %v", err)
	}
}

// Every example of the documentation is a script.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "script-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(examples) < 3 {
		t.Fatalf("%d examples found", len(examples))
	}
	for _, e := range examples {
		if _, err := Parse(e[1]); err != nil {
			t.Errorf("%v in\n%s", err, e[1])
		}
	}
}

// FuzzParse reads any file without failing otherwise than by a SyntaxError,
// and what it accepts can be asked.
func FuzzParse(f *testing.F) {
	for _, yaml := range situations() {
		f.Add([]byte(yaml))
	}
	f.Add([]byte(looped))
	f.Add([]byte("turns: [{choose: [{when: {matches: a}, reply: b}]}]\npasses: [{reply: c}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.What == "" {
				t.Errorf("error %#v", err)
			}
			return
		}
		for _, purpose := range []string{model.PurposeStep, model.PurposePass} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			reply, err := m.Ask(ctx, model.Request{Purpose: purpose}, nil)
			cancel()
			if err == nil && reply.Finish == "" || err != nil && model.AsFault(err).Err == nil {
				t.Errorf("%s: %+v, %v", purpose, reply, err)
			}
		}
	})
}
