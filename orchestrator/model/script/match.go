package script

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"anamnesis/orchestrator/model"
)

// scope is the part of a request that a condition examines.
type scope string

const (
	scopeAny    scope = "any"        // each message by itself
	scopeLast   scope = "last"       // the last message
	scopeJoined scope = "all-joined" // all messages as one text
	scopeSystem scope = "system"     // the system messages as one text
	scopeResult scope = "result"     // the last tool result
)

// texts returns the texts of a scope: of each message its text and then each call on a line of
// its own.
func (s scope) texts(r model.Request) []string {
	switch s {
	case scopeLast:
		if n := len(r.Messages); n > 0 {
			return []string{visible(r.Messages[n-1])}
		}
		return []string{""}
	case scopeResult:
		return []string{lastResult(r)}
	}
	var all []string
	for _, m := range r.Messages {
		if s != scopeSystem || m.Role == model.RoleSystem {
			all = append(all, visible(m))
		}
	}
	if s == scopeAny {
		return all
	}
	return []string{strings.Join(all, "\n")}
}

func visible(m model.Message) string {
	lines := []string{}
	if m.Text != "" {
		lines = append(lines, m.Text)
	}
	for _, c := range m.Calls {
		lines = append(lines, c.Name+" "+c.Args)
	}
	return strings.Join(lines, "\n")
}

// lastResult returns the text of the last tool message, empty if there is none.
func lastResult(r model.Request) string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == model.RoleTool {
			return m.Text
		}
	}
	return ""
}

// condition is a set of demands on a request; all must hold. The zero condition always holds.
type condition struct {
	line     int
	on       scope // the texts that are examined; empty: those that the condition's place implies
	contains []string
	lacks    []string
	matches  []*regexp.Regexp
	tools    []string // names that must be offered
}

// holds reports whether all demands are satisfied. Without a scope of its own, the condition
// examines on.
func (c condition) holds(r model.Request, on scope) bool {
	want, _ := c.failure(r, on)
	return want == ""
}

// failure returns the first demand that is not met, and what was there; both are empty if all
// are.
func (c condition) failure(r model.Request, on scope) (want, got string) {
	on = cmp.Or(c.on, on)
	texts := on.texts(r)
	for _, s := range c.contains {
		if !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, s) }) {
			return fmt.Sprintf("%s to contain %q", on, s), sample(r, texts)
		}
	}
	for _, s := range c.lacks {
		for _, t := range texts {
			if i := strings.Index(t, s); i >= 0 {
				return fmt.Sprintf("%s to lack %q", on, s), fmt.Sprintf("it in %q", around(t, i, len(s)))
			}
		}
	}
	for _, re := range c.matches {
		if !slices.ContainsFunc(texts, re.MatchString) {
			return fmt.Sprintf("%s to match %q", on, re), sample(r, texts)
		}
	}
	for _, name := range c.tools {
		if !slices.ContainsFunc(r.Tools, func(t model.ToolSpec) bool { return t.Name == name }) {
			return fmt.Sprintf("the tool %q to be offered", name), fmt.Sprintf("the tools %q", toolNames(r))
		}
	}
	return "", ""
}

func toolNames(r model.Request) []string {
	names := make([]string, 0, len(r.Tools))
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// sampleChars is how many characters of a request an error shows.
const sampleChars = 300

// sample shows the end of the examined text, which is the newest.
func sample(r model.Request, texts []string) string {
	if len(texts) == 0 {
		return fmt.Sprintf("%d messages, none of that kind", len(r.Messages))
	}
	last := []rune(texts[len(texts)-1])
	dots := ""
	if len(last) > sampleChars {
		last, dots = last[len(last)-sampleChars:], "…"
	}
	return fmt.Sprintf("%d messages, at the end %q", len(r.Messages), dots+string(last))
}

func around(t string, at, length int) string {
	const margin = 60
	from, to := max(0, at-margin), min(len(t), at+length+margin)
	return strings.ToValidUTF8(t[from:to], "")
}

// rule is an answer to some requests: an alternative of a turn, or one of a purpose without turns.
type rule struct {
	when   condition
	expect []condition // what else the request must be
	answer answer
}

// turn is one reply of the agent loop.
type turn struct {
	line    int
	expect  []condition
	choices []rule     // never empty
	until   *condition // the turn is repeated until the last result meets it; nil: it is not
}

func pick(rules []rule, r model.Request, on scope) (rule, int) {
	i := slices.IndexFunc(rules, func(rule rule) bool { return rule.when.holds(r, on) })
	if i < 0 {
		return rule{}, i
	}
	return rules[i], i
}
