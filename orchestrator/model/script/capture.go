package script

import (
	"fmt"
	"maps"
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
func captures(form map[string]yaml.Node) (out []capture, err error) {
	for _, name := range slices.Sorted(maps.Keys(form)) {
		n := form[name]
		if n.Kind != yaml.ScalarNode || !captureName.MatchString(name) {
			return nil, fail(n.Line,
				"%q cannot name a capture: lower case letters, digits and _, and an expression", name)
		}
		re, err := regexp.Compile(n.Value)
		switch {
		case err != nil:
			return nil, fail(n.Line, "the capture %q is not a regular expression: %v", name, err)
		case re.NumSubexp() != 1:
			return nil, fail(n.Line, "the capture %q needs one group in parentheses, not %d", name, re.NumSubexp())
		}
		out = append(out, capture{n.Line, name, re})
	}
	return out, nil
}

// fill replaces {{name}} in the answer's text and arguments by what the captures find in the
// request, the last match of each.
func (m *Model) fill(r model.Request, a answer) (answer, error) {
	text := scopeJoined.texts(r)[0]
	var pairs []string
	for _, c := range a.captures {
		found := c.re.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			return a, m.lost(r, c.line, fmt.Sprintf("all-joined to match the capture %q, %q", c.name, c.re),
				sample(r, []string{text}))
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
