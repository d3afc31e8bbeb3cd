// Package toolset holds the tools that a task's agent is offered: the program's own, and those
// of sources, which come and go while the task runs.
package toolset

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool"
)

type Options struct {
	Own     *tool.Registry // nil: none
	Sources []tool.Source  // tools that come and go, after Own
	Agent   *op.Agent      // determines the offered tools; nil: all
	Asked   []string       // tools that are offered whatever Agent says
	// Count returns the tokens of a text.
	Count func(text string) int
	// Redactor finds secrets in what servers say of their tools.
	Redactor *redact.Redactor
	// Sandbox returns the confinement of programs that a source starts; nil: there is none. It
	// is called only if a source starts some.
	Sandbox func(ctx context.Context) (*guard.Sandbox, error)
}

// Set is the tools of one task. Only the goroutine that runs the task may refresh it, while no
// call runs; otherwise it may be read from any.
type Set struct {
	Registry *tool.Registry   // nil: no tool
	Specs    []model.ToolSpec // of Registry, in its order, as the model gets them
	Tokens   int              // of Specs
	o        Options
	versions []uint64 // of the sources' tools; nil: not asked yet
}

// New returns the set without the sources' tools.
func New(o Options) (*Set, error) {
	s := &Set{o: o}
	if o.Own == nil {
		return s, nil
	}
	s.o.Own = o.Own.Only(s.offers)
	return s, s.describe(s.o.Own)
}

// Bind puts tools at the place of the program's own of the same names. They know the task that the
// set is for; those that the set began with only describe themselves.
func (s *Set) Bind(tools ...tool.Tool) {
	if s.o.Own != nil {
		s.o.Own = s.o.Own.Bind(tools...)
		s.Registry = s.o.Own
	}
}

func (s *Set) Asked() bool { return s.versions != nil }

func (s *Set) offers(t tool.Spec) bool {
	return s.o.Agent == nil || agent.Offers(s.o.Agent, t.Name, t.Looks()) || slices.Contains(s.o.Asked, t.Name)
}

// Refresh asks the sources for their current tools. It returns lines for the model about what
// has changed since the last time; the first time, only about failures.
func (s *Set) Refresh(ctx context.Context) (news []string, err error) {
	if len(s.o.Sources) == 0 {
		return nil, nil
	}
	first := !s.Asked()
	var versions []uint64
	var tools []tool.Tool
	for _, src := range s.o.Sources {
		if h, ok := src.(tool.Held); ok && first { // before its first program starts
			box, err := s.o.Sandbox(ctx)
			if err != nil {
				return nil, err
			}
			h.Hold(box)
		}
		o := src.Tools(ctx)
		versions, news = append(versions, o.Version), append(news, o.News...)
		for _, t := range o.Tools {
			if s.offers(t.Spec()) {
				tools = append(tools, t)
			}
		}
	}
	if first || !slices.Equal(versions, s.versions) {
		r, errs := cmp.Or(s.o.Own, new(tool.Registry)).With(tools...)
		for _, err := range errs {
			news = append(news, "A tool is left out: "+err.Error()+".")
		}
		before := s.Specs
		if len(tools) > 0 || !first || s.o.Own == nil { // else New described the same tools
			if err := s.describe(r); err != nil {
				return nil, err
			}
		}
		s.versions = versions
		if !first {
			news = append(news, notice.ToolChanges(before, s.Specs)...)
		}
	}
	for i := range news {
		news[i] = strings.Join(strings.Fields(news[i]), " ") // a server's words stay within their line of the notice
	}
	return news, nil
}

func (s *Set) describe(r *tool.Registry) error {
	var specs []model.ToolSpec
	sum := 0
	for _, t := range r.Specs() {
		schema, err := json.Marshal(t.Schema)
		if err != nil {
			return fmt.Errorf("schema of tool %s: %w", t.Name, err)
		}
		if schema, _, err = s.o.Redactor.JSON(schema, &redact.JSONOptions{Valid: true}); err != nil {
			return fmt.Errorf("schema of tool %s: %w", t.Name, err)
		}
		description, _ := s.o.Redactor.Text(t.Description)
		specs = append(specs, model.ToolSpec{Name: t.Name, Description: description, Schema: schema})
		sum += s.o.Count(t.Name + " " + description + " " + string(schema))
	}
	s.Registry, s.Specs, s.Tokens = r, specs, sum
	return nil
}
