package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"

	"anamnesis/opstream/op"
)

// Spec is a resolved spec, as a task records it.
type Spec = op.Agent

// Default is the agent that runs if none is named.
const Default = "default"

// Offers reports whether an agent is offered the tool of a name; looks reports that the tool
// changes nothing here.
func Offers(s *Spec, name string, looks bool) bool {
	fits := func(pattern string) bool { return matches(pattern, name) }
	if s.ReadOnly && !looks || slices.ContainsFunc(s.ExcludeTools, fits) {
		return false
	}
	return len(s.Tools) == 0 || slices.ContainsFunc(s.Tools, fits)
}

// matches reports whether a tool's name fits a name or a pattern.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

// over applies a file's layer to what it extends. A list replaces the inherited one; arguments
// and rules are joined.
func (l *layer) over(base Spec) Spec {
	out := base
	out.Description = cmp.Or(l.Description.text, base.Description)
	out.Model = cmp.Or(l.Model.text, base.Model)
	out.Approval = cmp.Or(l.Approval.text, base.Approval)
	out.Sandbox = cmp.Or(l.Sandbox.text, base.Sandbox)
	if l.Tools != nil {
		out.Tools = texts(l.Tools)
	}
	if l.ExcludeTools != nil {
		out.ExcludeTools = texts(l.ExcludeTools)
	}
	if l.Guarded != nil {
		out.Guarded = l.guarded
	}
	if l.ReadOnly != nil {
		out.ReadOnly = *l.ReadOnly
	}
	out.Args = maps.Clone(base.Args)
	for name, text := range l.Args {
		if out.Args == nil {
			out.Args = make(map[string]string)
		}
		out.Args[name.text] = text
	}
	out.Allow = slices.Concat(base.Allow, texts(l.Rules.Allow))
	out.Ask = slices.Concat(base.Ask, texts(l.Rules.Ask))
	out.Deny = slices.Concat(base.Deny, texts(l.Rules.Deny))
	return out
}

func texts(values []value) []string {
	var out []string
	for _, v := range values {
		out = append(out, v.text)
	}
	return out
}

// hash fills in the hash of the whole spec, including its subagents'.
func hash(s *Spec) error {
	bare := *s
	bare.From, bare.Hash, bare.Subagents = "", "", slices.Clone(s.Subagents)
	for i := range bare.Subagents {
		bare.Subagents[i].From = ""
	}
	data, err := json.Marshal(bare)
	if err != nil {
		return fmt.Errorf("agent %s: %w", s.Name, err)
	}
	sum := sha256.Sum256(data)
	s.Hash = hex.EncodeToString(sum[:])
	return nil
}
