package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Vars are the values that the program fills into prompts.
type Vars struct {
	Now time.Time // ${DATE}: its day
	Dir string    // ${WORK_DIR}
	// Listing is ${WORK_DIR_LS}: what is in the directory; see Listing.
	Listing string
	// Instructions is ${AGENTS_MD}: see Instructions.
	Instructions string
}

// builtinArgs are the names of Vars' values.
func builtinArgs() []string { return []string{"DATE", "WORK_DIR", "WORK_DIR_LS", "AGENTS_MD"} }

// placeholder is ${NAME}; $${NAME} is the literal text ${NAME}.
var placeholder = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// checkPrompt finds names in a prompt that have no value.
func checkPrompt(file, text string, args map[string]string) error {
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[2]:m[3]]
		if _, ok := args[name]; ok || text[m[0]:m[0]+2] == "$$" || slices.Contains(builtinArgs(), name) {
			continue
		}
		line := 1 + strings.Count(text[:m[0]], "\n")
		return &Error{file, line, fmt.Sprintf("no argument ${%s}: give it in %s, or write $${%s} for the text "+
			"itself; the program fills in ${%s}",
			name, keyArgs, name, strings.Join(builtinArgs(), "}, ${"))}
	}
	return nil
}

// Render replaces the variables of a spec's system prompt. Replaced text is not searched for
// variables. An unknown variable is left unchanged; loading a spec refuses it.
func Render(s *Spec, v Vars) string {
	values := map[string]string{
		"DATE": v.Now.Format(time.DateOnly), "WORK_DIR": v.Dir, "WORK_DIR_LS": v.Listing, "AGENTS_MD": v.Instructions,
	}
	text := placeholder.ReplaceAllStringFunc(s.Prompt, func(m string) string {
		if rest, ok := strings.CutPrefix(m, "$$"); ok {
			return "$" + rest
		}
		name := m[2 : len(m)-1]
		if value, ok := values[name]; ok {
			return value
		}
		if value, ok := s.Args[name]; ok {
			return value
		}
		return m
	})
	return strings.TrimSpace(text)
}
