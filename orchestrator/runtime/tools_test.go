package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/orchestrator/tool"
)

// offered is a source whose offers are set by hand.
type offered struct {
	tool.Offer
	asked int
}

func (o *offered) Tools(context.Context) tool.Offer {
	o.asked++
	out := o.Offer
	o.News = nil
	return out
}

// named is a tool that says its name.
type named struct{ name, about string }

func (n named) Spec() tool.Spec {
	return tool.Spec{Name: n.name, Description: n.about, Schema: tool.Params()}
}

func (n named) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	return tool.Textf("%s", n.name), nil
}

// What sources offer comes after the built-in tools, cannot take their names,
// and changes are said; nothing is said while nothing changes.
func TestRefreshTools(t *testing.T) {
	src := &offered{Offer: tool.Offer{
		Version: 1, Tools: []tool.Tool{named{"a", "x"}, named{"Bash", "not the real one"}},
		News: []string{"One is missing."},
	}}
	task, _ := newTask(t, "turns: []", Options{Sources: []tool.Source{src}})
	told := func() string {
		t.Helper()
		if err := task.refreshTools(t.Context(), t.Context()); err != nil {
			t.Fatal(err)
		}
		all := task.Ledger.State().Context.Chat()
		if len(all) == 0 {
			return ""
		}
		last := strings.ReplaceAll(all[len(all)-1].Text, "[tools "+task.Ledger.State().Opened.Mark+"]", "[tools]")
		return last[strings.LastIndex(last, "\n\n")+1:]
	}
	first := told()
	if !strings.Contains(first, "[tools] One is missing.") ||
		!strings.Contains(first, "register tool Bash: the name is taken") || strings.Contains(first, "New tools") {
		t.Errorf("first: %q", first)
	}
	if n := len(task.tools.Specs); task.tools.Specs[n-1].Name != "a" || task.tools.Tokens == 0 {
		t.Errorf("offered: %v", task.tools.Specs[n-1])
	}
	last := task.Ledger.State().Last
	told()
	if task.Ledger.State().Last != last {
		t.Error("something is recorded though nothing changed")
	}
	src.Offer = tool.Offer{Version: 2, Tools: []tool.Tool{named{"b", "y"}}}
	if got := told(); !strings.Contains(got, "[tools] New tools: b.\n[tools] Tools that are gone: a.") {
		t.Errorf("then: %q", got)
	}
	src.Offer = tool.Offer{Version: 3, Tools: []tool.Tool{named{"b", "z"}}}
	if got := told(); !strings.Contains(got, "[tools] Tools with another description: b.") {
		t.Errorf("at last: %q", got)
	}
}

// What a server says of its tools enters each request and is redacted as results are.
func TestToolsRedacted(t *testing.T) {
	key := "ghp_" + "1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R"
	about := named{"a", "Reads with " + key}
	schema := tool.Params(tool.Param{Name: "p", Schema: tool.String("By default " + key)})
	src := &offered{Offer: tool.Offer{Version: 1, Tools: []tool.Tool{about, schemed{named{"b", ""}, schema}}}}
	task, _ := newTask(t, "turns: []", Options{Sources: []tool.Source{src}})
	if err := task.refreshTools(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
	marked := 0
	for _, s := range task.tools.Specs {
		text := s.Description + string(s.Schema)
		if strings.Contains(text, key) {
			t.Errorf("%s is offered with the key: %s", s.Name, text)
		}
		marked += strings.Count(text, "[redacted:github-token:")
	}
	if marked != 2 {
		t.Errorf("%d markers, want 2", marked)
	}
}

// schemed is a named tool with parameters.
type schemed struct {
	named
	schema *jsonschema.Schema
}

func (s schemed) Spec() tool.Spec {
	return tool.Spec{Name: s.name, Schema: s.schema}
}
