package script

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"anamnesis/orchestrator/model"
)

// capture extracts a piece of the request for use in the answer: numbers of operations, for
// example, which differ from run to run.
type capture struct {
	line int
	name string
	re   *regexp.Regexp
}

var captureName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// captures reads `capture`: names, each with an expression of one group.
func (r *reader) captures(n *yaml.Node) []capture {
	var out []capture
	if n.Kind != yaml.MappingNode {
		r.fail(n.Line, "`capture` must be a mapping of names to regular expressions")
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		c := capture{line: key.Line, name: key.Value}
		if !captureName.MatchString(c.name) {
			r.fail(key.Line, "%q cannot name a capture: lower case letters, digits and _", c.name)
		}
		if slices.ContainsFunc(out, func(o capture) bool { return o.name == c.name }) {
			r.fail(key.Line, "the capture %q occurs twice", c.name)
		}
		re, err := regexp.Compile(r.str(value, "a capture"))
		switch {
		case err != nil:
			r.fail(value.Line, "the capture %q is not a regular expression: %v", c.name, err)
		case re.NumSubexp() != 1:
			r.fail(value.Line, "the capture %q needs one group in parentheses, not %d", c.name, re.NumSubexp())
		default:
			c.re = re
			out = append(out, c)
		}
	}
	return out
}

// fill replaces {{name}} in the answer's text and arguments by what the captures find in the
// request, the last match of each.
func (a answer) fill(r model.Request) (answer, *Mismatch) {
	if len(a.captures) == 0 {
		return a, nil
	}
	text := scopeJoined.texts(r)[0]
	var pairs []string
	for _, c := range a.captures {
		found := c.re.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			return a, &Mismatch{Line: c.line, Purpose: r.Purpose, Turn: r.Turn,
				Expected: fmt.Sprintf("all-joined to match the capture %q, %q", c.name, c.re), Got: sample(r, []string{text})}
		}
		pairs = append(pairs, "{{"+c.name+"}}", found[len(found)-1][1])
	}
	put := strings.NewReplacer(pairs...)
	a.text = put.Replace(a.text)
	a.calls = slices.Clone(a.calls)
	for i := range a.calls {
		a.calls[i].args = put.Replace(a.calls[i].args)
	}
	return a, nil
}
