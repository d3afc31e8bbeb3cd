package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// brought is a tool of a source, with a schema of the usual size.
type brought int

func (b brought) Spec() tool.Spec {
	return tool.Spec{
		Name:        fmt.Sprintf("mcp__server__tool_%d", int(b)),
		Description: "Does one of a thousand things, and says so in a sentence or two.",
		Schema: tool.Params(
			tool.Param{Name: "path", Required: true, Schema: tool.Text("A path.")},
			tool.Param{Name: "mode", Schema: tool.OneOf("A mode.", "one", "two")},
			tool.Param{Name: "count", Schema: tool.Int("A number.", 0, 100)},
		),
	}
}

func (brought) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	return tool.Textf("done"), nil
}

func thousand() []tool.Tool {
	var out []tool.Tool
	for i := range 1_000 {
		out = append(out, brought(i))
	}
	return out
}

// BenchmarkDispatch is a call from its JSON to its result, among a thousand
// tools. The bar is 50 µs.
func BenchmarkDispatch(b *testing.B) {
	own, err := tool.NewRegistry(builtin.Tools(builtin.Options{})...)
	if err != nil {
		b.Fatal(err)
	}
	r, errs := own.With(thousand()...)
	if len(errs) > 0 {
		b.Fatal(errs)
	}
	c := op.Call{ID: "1", Name: "mcp__server__tool_777", Args: `{"path":"a/b.txt","mode":"two","count":7}`}
	env := new(tool.Env)
	for b.Loop() {
		tl, args, err := r.Validate(c)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tl.Call(b.Context(), env, args); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRegister adds a thousand tools to the built-in ones.
func BenchmarkRegister(b *testing.B) {
	own, err := tool.NewRegistry(builtin.Tools(builtin.Options{})...)
	if err != nil {
		b.Fatal(err)
	}
	tools := thousand()
	for b.Loop() {
		if _, errs := own.With(tools...); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}
