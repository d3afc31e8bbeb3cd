// Package research finds the subjects of a call that should be researched before it runs: a
// package it installs, a host it reaches, a model it names. It decides nothing; the gate asks
// the agent to investigate first.
//
// This is an aid, not a barrier: a command that hides what it does (a variable as the
// program's name, a script file, another language) is not recognised. Approvals and the
// sandbox prevent what must not happen.
package research

import (
	"encoding/json"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// Kind is the kind of a subject.
type Kind string

// The kinds.
const (
	Package Kind = "package"
	Host    Kind = "host"
	Model   Kind = "model"
	Pattern Kind = "pattern" // a call that the task's own patterns name
)

// Subject is one thing to research first.
type Subject struct {
	Kind Kind
	// ID identifies it: npm:left-pad, host:example.com, model:gpt-9, or a pattern as
	// Tool:command.
	ID string
	// Look is a command that looks it up and changes nothing; may be empty.
	Look string
}

// String describes the subject.
func (s Subject) String() string {
	switch s.Kind {
	case Package:
		manager, name, _ := strings.Cut(s.ID, ":")
		return "the " + manager + " package " + name
	case Host:
		return "the host " + Bare(s.ID)
	case Model:
		return "the model name " + Bare(s.ID)
	}
	return "calls that look like " + s.ID
}

// Bare returns a subject's ID without its kind, as users write it.
func Bare(id string) string {
	if _, name, ok := strings.Cut(id, ":"); ok {
		return name
	}
	return id
}

// Normal returns the canonical form of a subject's spelling.
func Normal(subject string) string {
	return strings.ToLower(strings.Join(strings.Fields(subject), " "))
}

// Rules decide which calls have subjects to research.
type Rules struct {
	// Patterns are calls to research, beside the built-in kinds.
	Patterns []loop.Pattern
	// KnownHost and KnownModel report what needs no research; nil: nothing is known.
	KnownHost  func(host string) bool
	KnownModel func(name string) bool
	// Listed reports that the world's files list a package of a kind, so that running it (npx)
	// brings nothing new; nil: nothing is listed.
	Listed func(kind, name string) bool
}

// maxSubjects bounds the subjects of one call.
const maxSubjects = 20

// Subjects returns what a call needs researched, each once, in the order of the call. args is
// the call's JSON.
func (r Rules) Subjects(tool, args string) []Subject {
	f := finder{rules: r}
	type edit struct {
		Old string `json:"old"`
		New string `json:"new"`
	}
	var a struct {
		Command string `json:"command"`
		Content string `json:"content"`
		edit
		Edit  json.RawMessage `json:"edit"` // one, or a list
		Edits []edit          `json:"edits"`
	}
	_ = json.Unmarshal([]byte(args), &a) // another tool's arguments: only patterns apply
	var simple []shell.Simple
	if op.Acts(tool) == op.RunsShell {
		// A malformed line is examined as far as a shell would run it.
		simple, _ = shell.Parse(a.Command)
	}
	for _, p := range r.Patterns {
		hit := p.Match(tool, args)
		for _, s := range simple {
			hit = hit || p.MatchCommand(tool, s.String())
		}
		if hit {
			f.add(Subject{Kind: Pattern, ID: patternID(p)})
		}
	}
	for _, s := range simple {
		f.packages(s)
		f.hosts(s)
		f.models(s)
	}
	f.modelsIn(a.Content, "")
	edits, single := append(a.Edits, a.edit), edit{}
	if json.Unmarshal(a.Edit, &single) == nil {
		edits = append(edits, single)
	} else if list := []edit(nil); json.Unmarshal(a.Edit, &list) == nil {
		edits = append(edits, list...)
	}
	for _, e := range edits {
		f.modelsIn(e.New, e.Old)
	}
	return f.out
}

func patternID(p loop.Pattern) string {
	if p.Command == "" {
		return p.Tool
	}
	return p.Tool + ":" + p.Command
}

// finder collects subjects.
type finder struct {
	rules Rules
	out   []Subject
}

func (f *finder) add(s Subject) {
	same := func(o Subject) bool { return Normal(o.ID) == Normal(s.ID) }
	if len(f.out) < maxSubjects && !slices.ContainsFunc(f.out, same) {
		f.out = append(f.out, s)
	}
}
