package reflect

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
)

var update = flag.Bool("update", false, "rewrite golden files")

// replies is a model that says one thing after another.
type replies struct {
	t     *testing.T
	list  []model.Reply
	asked []model.Request
}

func (m *replies) Name() string { return "replies" }

func (m *replies) Ask(_ context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	r.Messages = slices.Clone(r.Messages)
	m.asked = append(m.asked, r)
	if r.Purpose != model.PurposeReflect || r.Turn != 5+len(m.asked)-1 {
		m.t.Errorf("request %d: purpose %q, turn %d", len(m.asked), r.Purpose, r.Turn)
	}
	if len(m.list) == 0 {
		return model.Reply{}, &model.Fault{Kind: model.FaultNetwork, Tries: 1, Err: errors.New("down")}
	}
	next := m.list[0]
	m.list = m.list[1:]
	return next, nil
}

type fakeRecord struct{}

func (fakeRecord) Outline(from int) string { return fmt.Sprintf("| steps from %d", from) }

func (fakeRecord) Open(seq uint64, from int) (string, error) {
	if seq > 100 {
		return "", errors.New("there is no such op")
	}
	return fmt.Sprintf("| op %d from %d", seq, from), nil
}

func (fakeRecord) Cards(_ context.Context, query string) (string, error) {
	return "cards about " + query, nil
}

func loop() request {
	return request{
		Task: "task_7_fix", Goal: "Make the tests pass.\nMind the tabs.", To: 3, Jumps: 3, Turn: 5,
		Reasons: []string{"The parser is wrong.", "The lexer\nis wrong."},
		Outline: "| step 3 (ops 20-26), after step 2: Bash\n| step 4 (ops 27-40), after step 3: WriteFile, Bash (1 of 2 failed); left by a jump: The parser is wrong.\n",
	}
}

const good = `{"diagnosis":"All attempts edit generated code (op 31).","abandon":["editing parser.go: it is written anew"],"plan":["read the generate line","edit parser.y"],"question":""}`

func says(text string) model.Reply {
	return model.Reply{Text: text, Finish: "stop", Usage: op.Usage{Prompt: 100, Completion: 10}}
}

func calls(n int, name, args string) model.Reply {
	var r model.Reply
	for i := range n {
		r.Calls = append(r.Calls, op.Call{ID: fmt.Sprintf("%s%d", name, i), Name: name, Args: args})
	}
	return r
}

func TestAsk(t *testing.T) {
	tests := []struct {
		name    string
		list    []model.Reply
		want    string // the diagnosis
		err     string
		looked  int
		asked   int
		results []string // of look-ups, among the last request's messages
	}{
		{name: "at once", list: []model.Reply{says(good)}, want: "All attempts", asked: 1},
		{name: "in a fence", list: []model.Reply{says("Here:\n```json\n" + good + "\n```")}, want: "All attempts", asked: 1},
		{name: "after looking", list: []model.Reply{calls(1, "open_op", `{"op":31,"from":7}`), calls(1, "search_cards", `{"query":"generated"}`), calls(1, "outline", `{"from":2}`), says(good)},
			want: "All attempts", looked: 3, asked: 4,
			results: []string{"| op 31 from 7", "cards about generated", "| steps from 2"}},
		{name: "looks that find nothing", list: []model.Reply{calls(1, "open_op", `{"op":999}`), calls(1, "Bash", `{}`), calls(1, "outline", `[]`), calls(1, "outline", `{"from":-1}`), says(good)},
			want: "All attempts", looked: 4, asked: 5, results: []string{
				"Not looked up: from must not be negative.", "Not found: there is no such op.", "There is no Bash.",
				"the arguments are not what outline takes",
			}},
		{name: "too many looks", list: []model.Reply{calls(maxLookups+2, "outline", `{"from":0}`), says(good)}, want: "All attempts", looked: maxLookups, asked: 2, results: []string{"Not looked up: 8 look-ups are the most"}},
		{name: "repaired", list: []model.Reply{says("You should try harder."), says(good)}, want: "All attempts", asked: 2, results: []string{"could not be used: the reply holds no JSON object"}},
		{name: "rubbish twice", list: []model.Reply{says("No."), says(`{"diagnosis":"x"`)}, err: "the answer is not a strategy: the reply is not the JSON object", asked: 2},
		{name: "neither plan nor question", list: []model.Reply{says(`{"diagnosis":"x","abandon":[],"plan":[" "],"question":""}`), says(`{"diagnosis":"","abandon":[],"plan":["y"],"question":""}`)}, err: "diagnosis", asked: 2},
		{name: "not of the schema", list: []model.Reply{says(`{"diagnosis":7}`), says(`{"plan":"no list"}`)}, err: "not the JSON object asked for", asked: 2},
		{name: "down", err: "down", asked: 1},
		{name: "looks for ever", list: slices.Repeat([]model.Reply{calls(1, "outline", `{"from":0}`)}, maxRequests+3), err: "12 replies and none was one", looked: maxLookups, asked: maxRequests},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &replies{t: t, list: tt.list}
			res, err := ask(t.Context(), m, fakeRecord{}, loop())
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("err = %v, want %q", err, tt.err)
			}
			if !strings.HasPrefix(res.Strategy.Diagnosis, tt.want) || len(res.Looked) != tt.looked ||
				len(m.asked) != tt.asked {
				t.Errorf("diagnosis %q, %d looks, %d requests; want %q, %d, %d", res.Strategy.Diagnosis,
					len(res.Looked), len(m.asked), tt.want, tt.looked, tt.asked)
			}
			var text strings.Builder
			for _, msg := range m.asked[len(m.asked)-1].Messages {
				text.WriteString(msg.Text + "\n")
			}
			for _, want := range tt.results {
				if !strings.Contains(text.String(), want) {
					t.Errorf("the model was not told %q:\n%s", want, text.String())
				}
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	m := &replies{t: t, list: []model.Reply{says(good)}}
	res, err := ask(t.Context(), m, fakeRecord{}, loop())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "system.txt", m.asked[0].Messages[0].Text)
	golden(t, "ask.txt", m.asked[0].Messages[1].Text)
	golden(t, "strategy.txt", res.Strategy.Text(loop()))
	golden(t, "question.txt",
		Strategy{Diagnosis: "Two servers answer to that name.", Question: "Which of them is meant?"}.Text(loop()))
	stuck := loop()
	stuck.Jumps, stuck.Checks = 12, []string{
		"▁▅▃ 0 of 5 passed at step 0, best 3 of 5 passed at step 3, last 2 of 5 passed at step 9",
		"step 9 (op 90): 2 of 5 passed",
	}
	stuck.Reasons = []string{"from step 4 on: The parser is wrong."}
	golden(t, "goal.txt", askText(stuck)+"\n\n"+res.Strategy.Text(stuck)+"\n\n"+
		Strategy{Diagnosis: "Two servers answer to that name.", Question: "Which of them is meant?"}.Text(stuck))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != string(want) {
		t.Errorf("%s differs; -update rewrites it if this is right:\n%s", path, got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("```json\n{}\n```")
	f.Add(`{"diagnosis":"x","plan":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parse(text)
		if err == nil && (s.Diagnosis == "" || len(s.Plan) == 0 && s.Question == "" || len(s.Plan) > maxItems) {
			t.Errorf("%q was taken for a strategy: %+v", text, s)
		}
	})
}

// TestParseLimits: lists are cut, empty items left out.
func TestParseLimits(t *testing.T) {
	var plan []string
	for i := range maxItems + 2 {
		plan = append(plan, fmt.Sprintf(`"step %d"`, i), `" "`)
	}
	s, err := parse(`{"diagnosis":"d","plan":[` + strings.Join(plan, ",") + `]}`)
	if err != nil || len(s.Plan) != maxItems || s.Plan[maxItems-1] != fmt.Sprintf("step %d", maxItems-1) {
		t.Errorf("%q, %v", s.Plan, err)
	}
}

// TestReflect: what a reflection records: a strategy, why there is none, or the wait for the model.
func TestReflect(t *testing.T) {
	wait := &op.Wait{Tries: 2}
	down := []model.Reply{}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		goal  bool
		list  []model.Reply // nil: no model is configured
		wait  *op.Wait
		want  string
		about string // op.ByGoal, or empty
	}{
		{"a strategy", t.Context(), false, []model.Reply{says(good)}, nil, "strategy.given", ""},
		{"about the goal", t.Context(), true, []model.Reply{says(good)}, nil, "strategy.given", op.ByGoal},
		{"no model", t.Context(), false, nil, nil, "reflect.failed", ""},
		{"no model, about the goal", t.Context(), true, nil, nil, "reflect.failed", op.ByGoal},
		{"the model is down", t.Context(), false, down, nil, "reflect.failed", ""},
		{"and is waited for", t.Context(), false, down, wait, "model.failed", ""},
		{"an answer of no use", t.Context(), true, []model.Reply{says("no"), says("no")}, wait, "reflect.failed", op.ByGoal},
		{"interrupted", ended, false, down, nil, "reflect.asked", ""},
	} {
		place := gatetest.Place(t, op.TaskOpened{})
		if err := place.Record(t.Context(), &op.JumpRequested{To: 0, By: op.ByAgent, Reason: "again"}); err != nil {
			t.Fatal(err)
		}
		place.State().Totals.Reflections = 5 // the turn of the first request
		var m model.Model
		if tt.list != nil {
			m = &replies{t: t, list: tt.list}
		}
		act := state.Action{Step: 0}
		if tt.goal {
			act.Reason = op.ByGoal
		}
		if err := New(place.Ledger, nil, m).Reflect(tt.ctx, t.Context(), act, func(*model.Fault) *op.Wait { return tt.wait }); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		o, err := place.Ledger.Op(place.State().Last)
		if err != nil {
			t.Fatal(err)
		}
		by := ""
		switch b := o.Body.(type) {
		case *op.StrategyGiven:
			by = b.By
		case *op.ReflectFailed:
			by = b.By
		case *op.ReflectAsked:
			by = b.By
		}
		if string(o.Body.Kind()) != tt.want || by != tt.about {
			t.Errorf("%s: %s by %q, want %s by %q", tt.name, o.Body.Kind(), by, tt.want, tt.about)
		}
	}
}
