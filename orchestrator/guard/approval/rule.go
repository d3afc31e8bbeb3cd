package approval

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// Rule is a user's verdict on some tools, or on some commands of a tool that runs commands.
type Rule struct {
	// Tool is a tool's name or a shell pattern over names, as in path.Match:
	// "Bash", "mcp__github__*".
	Tool string
	// Command is a pattern for commands; empty: the rule is about every call of the tool. Its
	// words are compared one by one: * and ? match characters of a word, a last word * any
	// words or none. "> FILE" is about writing files by redirection.
	Command string
	Verdict Verdict
	// From is where the rule is written, for users; may be empty.
	From string
}

// String returns the rule as it is written.
func (r Rule) String() string {
	if r.Command == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Command + ")"
}

// Texts returns the rules of one verdict as they are written.
func Texts(rules []Rule, v Verdict) []string {
	var out []string
	for _, r := range rules {
		if r.Verdict == v {
			out = append(out, r.String())
		}
	}
	return out
}

// ParseRules reads the rules of one place.
func ParseRules(from string, allow, ask, deny []string) ([]Rule, error) {
	var out []Rule
	for i, texts := range [][]string{allow, ask, deny} {
		for _, text := range texts {
			r, err := ParseRule(text, []Verdict{Allow, Ask, Refuse}[i])
			if err != nil {
				return nil, err
			}
			r.From = from
			out = append(out, r)
		}
	}
	return out, nil
}

// commandTool is the tool whose calls are commands.
const commandTool = "Bash"

// ruleText matches a rule: Tool or Tool(command).
var ruleText = shell.Pattern(`(?s)^([A-Za-z0-9_*?\[\]-]{1,80})(?:\((.*)\))?$`)

// ParseRule reads a rule such as Bash(git diff *), WriteFile or mcp__github__*.
func ParseRule(text string, v Verdict) (Rule, error) {
	m := ruleText().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Rule{}, fmt.Errorf("rule %q: want a tool's name, or Tool(command), such as Bash(git diff *)", text)
	}
	r := Rule{Tool: m[1], Command: strings.Join(strings.Fields(m[2]), " "), Verdict: v}
	if _, err := path.Match(r.Tool, ""); err != nil {
		return Rule{}, fmt.Errorf("rule %q: the tool's name is not a valid pattern: %w", text, err)
	}
	if r.Command != "" && !r.about(commandTool) {
		return Rule{}, fmt.Errorf("rule %q: only %s has commands; write %s for every call of the tool", text,
			commandTool, r.Tool)
	}
	if r.Command == "" && strings.HasSuffix(m[0], ")") {
		return Rule{}, fmt.Errorf("rule %q: there is no command between the parentheses; write %s for all of them",
			text, r.Tool)
	}
	f := strings.Fields(r.Command)
	if len(f) > 0 && strings.Contains("<>", f[0][:1]) && (len(f) != 2 || len(f[0]) > 1) {
		return Rule{}, fmt.Errorf("rule %q: want > or < and one file, such as %s(> out/*)", text, commandTool)
	}
	return r, nil
}

// about reports whether a rule is about a tool. A malformed pattern matches the tool of
// exactly that name only.
func (r Rule) about(tool string) bool {
	match, err := path.Match(r.Tool, tool)
	if err != nil {
		return strings.EqualFold(r.Tool, tool)
	}
	return match
}

// rank orders verdicts from the mildest to the strictest; an unknown one is
// the strictest.
func (v Verdict) rank() int { return -max(0, slices.Index([]Verdict{Refuse, Ask, Allow}, v)) }

func strictest(rules []Rule, match func(Rule) bool) (Rule, bool) {
	var best Rule
	found := false
	for _, r := range rules {
		if match(r) && (!found || r.Verdict.rank() > best.Verdict.rank()) {
			best, found = r, true
		}
	}
	return best, found
}

// Tightening returns the rules that allow nothing: a project may bring them without approval.
func Tightening(rules []Rule) []Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Verdict == Allow })
}
