package toolset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool"
)

// speaking is a tool that answers with a text of its own.
type speaking struct{ name, about, says string }

func (n speaking) Spec() tool.Spec {
	return tool.Spec{
		Name: n.name, Description: n.about, Schema: &jsonschema.Schema{Type: "object"},
		ReadOnly: strings.HasPrefix(n.name, "Read"),
	}
}

func (n speaking) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	return tool.Textf("%s", n.says), nil
}

// changing is a source of tools that starts programs.
type changing struct {
	offer tool.Offer
	held  int
}

func (s *changing) Tools(context.Context) tool.Offer { return s.offer }

func (s *changing) Hold(*guard.Sandbox) { s.held++ }

func own(t *testing.T, names ...string) *tool.Registry {
	t.Helper()
	var tools []tool.Tool
	for _, n := range names {
		tools = append(tools, speaking{name: n, says: "own"})
	}
	r, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// made returns a set whose sandbox cannot fail and whose tokens are words.
func made(t *testing.T, o Options) *Set {
	t.Helper()
	o.Redactor = redact.New([]byte("key"), nil)
	o.Count = func(text string) int { return len(strings.Fields(text)) }
	if o.Sandbox == nil {
		o.Sandbox = func(context.Context) (*guard.Sandbox, error) { return nil, nil }
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func names(s *Set) string {
	var out []string
	for _, spec := range s.Specs {
		out = append(out, spec.Name)
	}
	return strings.Join(out, " ")
}

// TestOffered: an agent is offered the tools that it names, and those that were asked for.
func TestOffered(t *testing.T) {
	for _, tt := range []struct {
		agent *op.Agent
		asked []string
		want  string
	}{
		{nil, nil, "Bash ReadFile Think"},
		{&op.Agent{}, nil, "Bash ReadFile Think"},
		{&op.Agent{Tools: []string{"Ba*"}}, nil, "Bash"},
		{&op.Agent{Tools: []string{"Ba*"}}, []string{"Think"}, "Bash Think"},
		{&op.Agent{ReadOnly: true}, nil, "ReadFile"},
	} {
		s := made(t, Options{Own: own(t, "Bash", "ReadFile", "Think"), Agent: tt.agent, Asked: tt.asked})
		if got := names(s); got != tt.want || s.Tokens != 2*len(s.Specs) {
			t.Errorf("%+v, asked for %v: %s of %d tokens, want %s", tt.agent, tt.asked, got, s.Tokens, tt.want)
		}
	}
	if s := made(t, Options{}); s.Registry != nil || s.Asked() {
		t.Errorf("no tool: %+v", s)
	} else if s.Bind(speaking{name: "Bash"}); s.Registry != nil {
		t.Error("a tool was bound to none")
	}
	s := made(t, Options{Own: own(t, "Bash", "Think")})
	s.Bind(speaking{name: "Bash", says: "bound"}, speaking{name: "Other"})
	bound, _, err := s.Registry.Validate(op.Call{Name: "Bash", Args: "{}"})
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := bound.Call(t.Context(), nil, nil); r.Text != "bound" || names(s) != "Bash Think" {
		t.Errorf("after Bind %s says %q", names(s), r.Text)
	}
}

// TestRefresh: tools of sources come and go; the model is told of changes but for the first tools.
func TestRefresh(t *testing.T) {
	src := &changing{offer: tool.Offer{
		Version: 1, Tools: []tool.Tool{speaking{name: "mcp__a"}, speaking{name: "Bash"}, speaking{name: "mcp__no"}},
		News: []string{"a \n line"},
	}}
	s := made(t,
		Options{Own: own(t, "Bash"), Sources: []tool.Source{src}, Agent: &op.Agent{ExcludeTools: []string{"*__no"}}})
	refresh := func(when, want, news string) {
		t.Helper()
		lines, err := s.Refresh(t.Context())
		if err != nil || names(s) != want || strings.Join(lines, " ") != news || !s.Asked() || src.held != 1 {
			t.Errorf("%s: %s, %q, %v, held %d times; want %s, %q", when, names(s), lines, err, src.held, want, news)
		}
	}
	refresh("at first", "Bash mcp__a", "a line A tool is left out: register tool Bash: the name is taken.")
	src.offer.News = nil
	src.offer.Tools = []tool.Tool{speaking{name: "mcp__b"}}
	refresh("the same version", "Bash mcp__a", "")
	src.offer.Version = 2
	refresh("another version", "Bash mcp__b", "New tools: mcp__b. Tools that are gone: mcp__a.")
	src.offer = tool.Offer{Version: 3, Tools: []tool.Tool{speaking{name: "mcp__b", about: "more"}}}
	refresh("another description", "Bash mcp__b", "Tools with another description: mcp__b.")

	s = made(t, Options{Sources: []tool.Source{src}})
	if _, err := s.Refresh(t.Context()); err != nil || names(s) != "mcp__b" {
		t.Errorf("without own tools: %s, %v", names(s), err)
	}
	s = made(t, Options{Own: own(t, "Bash")})
	if news, err := s.Refresh(t.Context()); err != nil || news != nil || s.Asked() {
		t.Errorf("without sources: %q, %v", news, err)
	}
	broken := errors.New("no sandbox")
	s = made(t, Options{Sources: []tool.Source{src},
		Sandbox: func(context.Context) (*guard.Sandbox, error) { return nil, broken }})
	if _, err := s.Refresh(t.Context()); !errors.Is(err, broken) || s.Asked() {
		t.Errorf("without a sandbox: %v, %s", err, fmt.Sprint(s.Asked()))
	}
}
