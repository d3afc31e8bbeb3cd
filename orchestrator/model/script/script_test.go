package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/model/modeltest"
)

func situations() map[modeltest.Situation]string {
	usage := `usage: {prompt: 120, cached: 100, completion: 20, reasoning: 5}`
	return map[modeltest.Situation]string{
		modeltest.Speaks: fmt.Sprintf("turns:\n  - reply: %q\n    reasoning: %q\n    %s\n", modeltest.Text,
			modeltest.Thought, usage),
		modeltest.Calls: `
turns:
  - calls:
      - {name: Bash, arguments: {command: ls}}
      - {name: ReadFile, raw_arguments: '{"path":"a.go"}'}
`,
		modeltest.Breaks: fmt.Sprintf("turns:\n  - reply: %q\n    fault: {cut: %d, times: 100}\n", modeltest.Text,
			len(modeltest.PartialText)),
		modeltest.Busy:      "turns:\n  - fault: {status: 429, retry_after: 7s, times: 100}\n",
		modeltest.Overflows: "turns:\n  - fault: {status: 400, body: context_length_exceeded, times: 100}\n",
		modeltest.Hangs:     "turns:\n  - reply: late\n    fault: {delay: 1h}\n",
	}
}

func TestConformance(t *testing.T) {
	modeltest.Run(t, func(t *testing.T, s modeltest.Situation) model.Model {
		return mustParse(t, situations()[s])
	})
}

// Retry is a model, too.
func TestConformanceOfRetry(t *testing.T) {
	modeltest.Run(t, func(t *testing.T, s modeltest.Situation) model.Model {
		return model.Retry(mustParse(t, situations()[s]), &model.RetryOptions{
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		})
	})
}

func mustParse(t *testing.T, yaml string) *Model {
	t.Helper()
	m, err := Parse([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func user(s string) model.Message   { return model.Message{Role: model.RoleUser, Text: s} }
func result(s string) model.Message { return model.Message{Role: model.RoleTool, Text: s} }

func TestExpectations(t *testing.T) {
	r := model.Request{
		Messages: []model.Message{
			{Role: model.RoleSystem, Text: "You repair programs."},
			user("Fix the parser."),
			{Role: model.RoleAssistant, Calls: []op.Call{{ID: "a", Name: "Bash", Args: `{"command":"go test"}`}}},
			result("FAIL: TestParse"),
			user("Go on."),
		},
		Tools: []model.ToolSpec{{Name: "Bash"}, {Name: "recall"}},
	}
	tests := []struct {
		expect string
		fails  string // empty: holds
	}{
		{`{contains: parser}`, ""},
		{`{on: any, contains: [parser, FAIL]}`, ""},
		{`{contains: "parser.\nBash"}`, "any to contain"},
		{`{on: all-joined, contains: "parser.\nBash {"}`, ""},
		{`{contains: '"command":"go test"'}`, ""},
		{`{contains: lexer}`, `got 5 messages, at the end "Go on."`},
		{`{lacks: lexer}`, ""},
		{`{lacks: FAIL}`, `got it in "FAIL: TestParse"`},
		{`{on: last, contains: Go on}`, ""},
		{`{on: last, contains: FAIL}`, "last to contain"},
		{`{on: last, lacks: FAIL}`, ""},
		{`{on: system, matches: "^You .* programs[.]$"}`, ""},
		{`{on: system, contains: parser}`, "system to contain"},
		{`{on: result, matches: "FAIL: Test[A-Z]"}`, ""},
		{`{on: result, contains: Go on}`, "result to contain"},
		{`{matches: "^Go on[.]$"}`, ""},
		{`{on: all-joined, matches: "^Go on[.]$"}`, "all-joined to match"},
		{`{contains: parser, lacks: FAIL}`, "any to lack"},
		{`{tools: [recall, Bash]}`, ""},
		{`{tools: jump_to_step}`, `the tools ["Bash" "recall"]`},
	}
	for _, tt := range tests {
		t.Run(tt.expect, func(t *testing.T) {
			m := mustParse(t, "turns:\n  - expect:\n      - "+tt.expect+"\n    reply: ok\n")
			_, err := m.Ask(t.Context(), r, nil)
			if tt.fails == "" {
				if err != nil {
					t.Errorf("fails: %v", err)
				}
				return
			}
			var mis *Mismatch
			if !errors.As(err, &mis) || mis.Line != 3 || mis.File != "script" || mis.Turn != 0 ||
				!strings.Contains(err.Error(), tt.fails) {
				t.Fatalf("error %v; want a mismatch on line 3 that says %q", err, tt.fails)
			}
			if f := model.AsFault(err); f.Kind != model.FaultScript || f.Retryable {
				t.Errorf("fault %+v; want kind script, not retryable", f)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	m := mustParse(t, `
turns:
  - reply: |
      Zwei Zeilen
      über Bäume
    reasoning: hm
  - reply: look
    calls:
      - {name: Bash, arguments: {command: "a < b && c", n: 3, f: 1.50, deep: [true, null, {x: "1"}], when: 2026-01-02}}
      - {name: Think}
      - {name: Bash, raw_arguments: '{oops', id: mine}
    finish: length
    usage: {prompt: 10, completion: 2}
`)
	first, err := m.Ask(t.Context(), model.Request{Messages: []model.Message{user("12345")}}, nil)
	if err != nil || first.Text != "Zwei Zeilen\nüber Bäume\n" || first.Finish != "stop" ||
		first.Usage != (op.Usage{Prompt: 2, Completion: 7, Reasoning: 1, Priced: 9}) {
		t.Errorf("%+v, %v", first, err)
	}
	second, err := m.Ask(t.Context(), model.Request{Turn: 1}, nil)
	want := model.Reply{
		Text: "look",
		Calls: []op.Call{
			{ID: "call_1_1_1", Name: "Bash", Args: `{"command":"a < b && c","deep":[true,null,{"x":"1"}],"f":1.5,"n":3,"when":"2026-01-02"}`},
			{ID: "call_1_1_2", Name: "Think", Args: "{}"},
			{ID: "mine", Name: "Bash", Args: "{oops"},
		},
		Finish: "length",
		Usage:  op.Usage{Prompt: 10, Completion: 2},
		Model:  "script:script",
	}
	if err != nil || !reflect.DeepEqual(second, want) {
		t.Errorf("%+v, %v", second, err)
	}
	if !second.Calls[0].ValidArgs() {
		t.Error("the arguments are not a JSON object")
	}
	var mis *Mismatch
	if _, err := m.Ask(t.Context(), model.Request{Turn: 2}, nil); !errors.As(err, &mis) ||
		!strings.Contains(err.Error(), "no further request") {
		t.Errorf("after the last turn: %v", err)
	}
	if _, err := m.Ask(t.Context(), model.Request{Purpose: "sing"}, nil); !errors.As(err, &mis) {
		t.Errorf("unknown purpose: %v", err)
	}
}

func TestChoose(t *testing.T) {
	m := mustParse(t, `
turns:
  - choose:
      - when: {contains: PASS}
        reply: done
      - when: {on: any, contains: please}
        reply: gladly
      - when: {matches: 'exit [1-9]'}
        calls: [{name: Bash}]
`)
	for last, want := range map[string]string{"ok PASS": "done", "exit 2": ""} {
		reply, err := m.Ask(t.Context(),
			model.Request{Messages: []model.Message{result("old exit 0"), result(last), user("PASS")}}, nil)
		if err != nil || reply.Text != want || (want == "") != (len(reply.Calls) == 1) {
			t.Errorf("%q: %+v, %v", last, reply, err)
		}
	}
	if reply, err := m.Ask(t.Context(), model.Request{Messages: []model.Message{user("please"), result("?")}}, nil); err != nil || reply.Text != "gladly" {
		t.Errorf("%+v, %v", reply, err)
	}
	_, err := m.Ask(t.Context(), model.Request{Messages: []model.Message{result("exit 0")}}, nil)
	var mis *Mismatch
	if !errors.As(err, &mis) || mis.Line != 3 || mis.Got != "exit 0" {
		t.Errorf("no alternative: %v", err)
	}
}

func TestPasses(t *testing.T) {
	m := mustParse(t, `
turns: []
passes:
  - when: {contains: merge}
    reply: '{"advice":["merged"]}'
  - when: {contains: parser}
    expect: [{on: system, contains: JSON}]
    reply: '{"advice":["rewrite"]}'
reflections:
  - reply: stop digging
probes:
  - capture: {number: 'number is (\d+)'}
    reply: 'ANSWER: {{number}}'
`)
	ask := func(purpose string, texts ...string) (model.Reply, error) {
		r := model.Request{Purpose: purpose, Turn: 9}
		for i, s := range texts {
			r.Messages = append(r.Messages,
				model.Message{Role: []model.Role{model.RoleSystem, model.RoleUser}[i], Text: s})
		}
		return m.Ask(t.Context(), r, nil)
	}
	if reply, err := ask(model.PurposePass, "Answer in JSON.", "the parser failed"); err != nil ||
		!strings.Contains(reply.Text, "rewrite") {
		t.Errorf("%+v, %v", reply, err)
	}
	for expected, texts := range map[string][]string{
		"script:1: pass turn 9: expected a rule of `passes` to match":   {"Answer in JSON.", "nothing known"},
		`script:7: pass turn 9: expected system to contain "JSON"; got`: {"Answer.", "parser"},
	} {
		reply, err := ask(model.PurposePass, texts...)
		if f := model.AsFault(err); f == nil || f.Kind != model.FaultScript || f.Retryable ||
			!strings.Contains(err.Error(), expected) || reply.Text != "" {
			t.Errorf("%q: %+v, %v; want a fault of kind script that says %q", texts, reply, err, expected)
		}
	}
	if reply, err := ask(model.PurposeProbe, "Answer.", "The number is 17."); err != nil || reply.Text != "ANSWER: 17" {
		t.Errorf("%+v, %v", reply, err)
	}
	if reply, err := ask(model.PurposeReflect); err != nil || reply.Text != "stop digging" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestFaultsComeFirstAndOnce(t *testing.T) {
	const text = `
turns:
  - {reply: hello, fault: {status: 503, retry_after: 2s, body: warming up}}
  - {reply: "12345", fault: {cut: 3, times: 2}}
`
	m := mustParse(t, text)
	_, err := m.Ask(t.Context(), model.Request{}, nil)
	if f := model.AsFault(err); f == nil {
		t.Error("the fault did not come")
	} else {
		if f.Kind != model.FaultHTTP || f.Status != 503 || f.RetryAfter != 2*time.Second || !f.Retryable ||
			f.Err.Error() != "warming up" {
			t.Errorf("fault %+v", f)
		}
	}
	// The same turn again is a retry.
	if reply, err := m.Ask(t.Context(), model.Request{}, nil); err != nil || reply.Text != "hello" {
		t.Errorf("second try: %+v, %v", reply, err)
	}
	var errs, streamed []string
	for range 3 {
		var got string
		reply, err := m.Ask(t.Context(), model.Request{Turn: 1}, func(d model.Delta) { got += d.Text })
		streamed = append(streamed, got)
		errs = append(errs, fmt.Sprintf("%v %s", err != nil, reply.Text))
	}
	if !reflect.DeepEqual(errs, []string{"true ", "true ", "false 12345"}) ||
		!reflect.DeepEqual(streamed, []string{"123", "123", "12345"}) {
		t.Errorf("%q, streamed %q", errs, streamed)
	}
	// Another process meets the fault again, and a retry gets the reply.
	reply, err := model.Retry(mustParse(t, text), &model.RetryOptions{
		Sleep: func(context.Context, time.Duration) error { return nil },
	}).Ask(t.Context(), model.Request{}, nil)
	if err != nil || reply.Text != "hello" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mustParse(t, "turns: [{reply: late, fault: {delay: 200ms}}]")
		for _, want := range []time.Duration{200 * time.Millisecond, 0} {
			start := time.Now()
			reply, err := m.Ask(t.Context(), model.Request{}, nil)
			if took := time.Since(start); err != nil || reply.Text != "late" || took != want {
				t.Errorf("%+v, %v after %v; want after %v", reply, err, took, want)
			}
		}
	})
}

func TestNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "wrong-path.yaml")
	if err := os.WriteFile(path, []byte("model: gpt-4o\nturns: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name() != "script:wrong-path" || m.EASModel() != "gpt-4o" || !strings.Contains(m.Banner(), "recording") ||
		!strings.Contains(m.Banner(), path) {
		t.Errorf("%q, %q, %q", m.Name(), m.EASModel(), m.Banner())
	}
	if m := mustParse(t, "name: the demo\nturns: []"); m.Name() != "script:the demo" || m.EASModel() != "" {
		t.Errorf("%q, %q", m.Name(), m.EASModel())
	}
	if _, err := Load(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

// An alternative has expectations of its own, and may be chosen by the tools that are offered.
func TestAlternativeExpects(t *testing.T) {
	m := mustParse(t, `
turns:
  - choose:
      - {when: {tools: Bash}, expect: [{contains: hello}], reply: with tools}
      - reply: without
`)
	for _, tt := range []struct {
		tools []model.ToolSpec
		words string
		want  string
	}{
		{nil, "hi", "without"}, {[]model.ToolSpec{{Name: "Bash"}}, "hello", "with tools"},
		{[]model.ToolSpec{{Name: "Bash"}}, "hi", ""},
	} {
		reply, err := m.Ask(t.Context(), model.Request{Messages: []model.Message{user(tt.words)}, Tools: tt.tools}, nil)
		if reply.Text != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%d tools, %q: %q, %v", len(tt.tools), tt.words, reply.Text, err)
		}
	}
}

// TestNothingToExamine: a condition on what the request does not have is not met, and the error says how much there
// was.
func TestNothingToExamine(t *testing.T) {
	long := strings.Repeat("x", sampleChars)
	for _, tt := range []struct {
		expect   string
		messages []model.Message
		want     string
	}{
		{"{on: last, contains: a}", nil, `0 messages, at the end ""`},
		{"{on: any, contains: a}", nil, "0 messages, none of that kind"},
		{"{on: result, contains: a}", []model.Message{user("a")}, `1 messages, at the end ""`},
		{"{contains: a}", []model.Message{user(long)}, `1 messages, at the end "` + long + `"`},
		{"{contains: a}", []model.Message{user("y" + long)}, `1 messages, at the end "…` + long + `"`},
	} {
		_, err := mustParse(t, "turns:\n  - {reply: ok, expect: ["+tt.expect+"]}\n").Ask(t.Context(),
			model.Request{Messages: tt.messages}, nil)
		if m := (*Mismatch)(nil); !errors.As(err, &m) || m.Got != tt.want {
			t.Errorf("%s: %v, want %s", tt.expect, err, tt.want)
		}
	}
	_, err := mustParse(t, "turns:\n  - {reply: '{{n}}', capture: {n: 'op ([0-9]+)'}}\n").Ask(t.Context(),
		model.Request{}, nil)
	if m := (*Mismatch)(nil); !errors.As(err, &m) || !strings.Contains(m.Expected, `to match the capture "n"`) {
		t.Errorf("a capture that finds nothing: %v", err)
	}
}

// TestSubagents: a subagent's turns are those of the first entry for its agent whose condition holds.
func TestSubagents(t *testing.T) {
	m := mustParse(t, `
turns: [{reply: main}]
subagents:
  - {agent: coder, when: {contains: tests}, turns: [{reply: tests}, {reply: more}]}
  - {agent: coder, turns: [{reply: code}]}
  - {agent: reviewer, turns: [{reply: review}]}
passes:
  - {reply: pass}
`)
	for _, tt := range []struct {
		agent, purpose, words string
		turn                  int
		want                  string
	}{
		{"", "", "write tests", 0, "main"},
		{"coder", "", "write tests", 0, "tests"},
		{"coder", "", "write tests", 1, "more"},
		{"coder", "", "write code", 0, "code"},
		{"reviewer", "", "write tests", 0, "review"},
		{"reviewer", model.PurposePass, "write tests", 0, "pass"},
		{"tester", "", "write tests", 0, ""},
	} {
		r := model.Request{Agent: tt.agent, Purpose: tt.purpose, Turn: tt.turn,
			Messages: []model.Message{user(tt.words)}}
		reply, err := m.Ask(t.Context(), r, nil)
		if reply.Text != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%+v: %q, %v", tt, reply.Text, err)
		}
		if mis := (*Mismatch)(nil); tt.want == "" &&
			(!errors.As(err, &mis) || mis.Expected != "an entry of `subagents` to match") {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// TestStatus: an endpoint's statuses are faults of a kind, some of which pass.
func TestStatus(t *testing.T) {
	for status, want := range map[int]struct {
		kind      model.FaultKind
		retryable bool
	}{
		400: {model.FaultHTTP, false}, 401: {model.FaultRefused, false}, 404: {model.FaultRefused, false},
		405: {model.FaultHTTP, false}, 408: {model.FaultHTTP, true},
		409: {model.FaultHTTP, true}, 410: {model.FaultHTTP, false}, 413: {model.FaultOverflow, false},
		425: {model.FaultHTTP, true}, 429: {model.FaultHTTP, true},
		499: {model.FaultHTTP, false}, 500: {model.FaultHTTP, true}, 529: {model.FaultHTTP, true},
	} {
		_, err := mustParse(t, fmt.Sprintf("turns: [{fault: {status: %d}}]", status)).Ask(t.Context(),
			model.Request{}, nil)
		if f := model.AsFault(err); f == nil || f.Kind != want.kind || f.Retryable != want.retryable {
			t.Errorf("status %d: %+v, want %+v", status, f, want)
		}
	}
	for body, want := range map[string]model.FaultKind{"400, body: context_length_exceeded": model.FaultOverflow, "422, body: context_length_exceeded": model.FaultHTTP} {
		_, err := mustParse(t, "turns: [{fault: {status: "+body+"}}]").Ask(t.Context(), model.Request{}, nil)
		if f := model.AsFault(err); f == nil || f.Kind != want {
			t.Errorf("status %s: %+v, want %s", body, f, want)
		}
	}
}
