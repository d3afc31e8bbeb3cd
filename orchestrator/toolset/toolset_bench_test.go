package toolset

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"anamnesis/anamnesis/tokens"
	"anamnesis/orchestrator/tool"
)

// named is a tool that has a description.
type named struct{ name, about string }

func (n named) Spec() tool.Spec {
	return tool.Spec{Name: n.name, Description: n.about, Schema: tool.Params()}
}

func (n named) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	return tool.Textf("%s", n.name), nil
}

// source has another offer each time.
type source struct{ tool.Offer }

func (s *source) Tools(context.Context) tool.Offer { return s.Offer }

// BenchmarkOfferTools makes a thousand tools known to a task: registered,
// described to the model, counted.
func BenchmarkOfferTools(b *testing.B) {
	src := &source{}
	for i := range 1_000 {
		src.Offer.Tools = append(src.Offer.Tools,
			named{fmt.Sprintf("tool_%d", i), "Does one of a thousand things, and says so in a sentence or two."})
	}
	counter, err := tokens.ForEncoding(tokens.Fallback)
	if err != nil {
		b.Fatal(err)
	}
	set, err := New(Options{Sources: []tool.Source{src}, Count: counter.Count})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		src.Version++
		src.Offer.Tools[0] = named{"tool_0", fmt.Sprint("the version ", src.Version)}
		if _, err := set.Refresh(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
