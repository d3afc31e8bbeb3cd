package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
)

// offer makes r the registry of the agent. Only Run's goroutine may call it, while no call
// runs.
func (t *Task) offer(r *tool.Registry) error {
	specs, err := toolSpecs(r)
	if err != nil {
		return err
	}
	counted := make(map[string]int, len(specs))
	sum := 0
	for _, s := range specs {
		text := s.Name + " " + s.Description + " " + string(s.Schema)
		n, known := t.toolTok[text]
		if !known {
			n = t.Counter.Count(text)
		}
		counted[text] = n
		sum += n
	}
	t.tools, t.toolSpecs, t.toolTok, t.toolTokens = r, specs, counted, sum
	return nil
}

// mayUse reports whether the task's agent is offered a tool: by its spec, or because the user
// asked for it when the task was opened.
func (t *Task) mayUse(s tool.Spec) bool {
	return t.spec == nil || agent.Offers(t.spec, s.Name, s.Looks()) || slices.Contains(t.asked, s.Name)
}

// refreshTools asks the sources for their current tools. Changes since the last time are
// recorded as a notice to the model; the first time, only failures are.
func (t *Task) refreshTools(ctx, keep context.Context) error {
	if len(t.opts.Sources) == 0 {
		return nil
	}
	first := t.offers == nil
	var versions []uint64
	var tools []tool.Tool
	var news []string
	for _, s := range t.opts.Sources {
		if h, ok := s.(tool.Held); ok && first {
			box, err := t.Sandbox(ctx)
			if err != nil {
				return err
			}
			h.Hold(box)
		}
		o := s.Tools(ctx)
		versions, news = append(versions, o.Version), append(news, o.News...)
		for _, tl := range o.Tools {
			if t.mayUse(tl.Spec()) {
				tools = append(tools, tl)
			}
		}
	}
	if first || !slices.Equal(versions, t.offers) {
		own := t.opts.Tools
		if own == nil {
			own = new(tool.Registry)
		}
		r, errs := own.With(tools...)
		for _, err := range errs {
			news = append(news, "A tool is left out: "+err.Error()+".")
		}
		before := t.toolSpecs
		if err := t.offer(r); err != nil {
			return err
		}
		t.offers = versions
		if !first {
			news = append(news, notice.ToolChanges(before, t.toolSpecs)...)
		}
	}
	if len(news) == 0 {
		return nil
	}
	for i := range news {
		news[i] = strings.Join(strings.Fields(news[i]), " ")
	}
	return t.Record(keep, &op.NoticeGiven{Text: "[tools] " + strings.Join(news, "\n[tools] ")})
}

// toolSpecs describes the registered tools to the model.
func toolSpecs(r *tool.Registry) ([]model.ToolSpec, error) {
	var out []model.ToolSpec
	for _, s := range r.Specs() {
		schema, err := json.Marshal(s.Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of tool %s: %w", s.Name, err)
		}
		out = append(out, model.ToolSpec{Name: s.Name, Description: s.Description, Schema: schema})
	}
	return out, nil
}
