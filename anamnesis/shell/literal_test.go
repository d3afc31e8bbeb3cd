package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestLiteral: a command is literal if no word of it depends on the run, but for names of files.
func TestLiteral(t *testing.T) {
	for line, want := range map[string][]string{
		"ls":              {"ls"},
		`rm -f 'a b' "$"`: {"rm", "-f", "a b", "$"},
		"rm *.go a?":      {"rm", "*.go", "a?"},
		`echo '$HOME'`:    {"echo", "$HOME"},
		"rm $f":           nil,
		"rm ~/x":          nil,
		"rm {a,b}":        nil,
		"rm $(ls)":        nil,
		"rm `ls`":         nil,
		"$program x":      nil,
	} {
		all, err := Parse(line)
		if err != nil || len(all) == 0 {
			t.Fatalf("%s: %v", line, err)
		}
		i := slices.IndexFunc(all, func(c Simple) bool { return strings.HasPrefix(line, c.Words[0].Text) })
		if words, ok := all[i].literal(); ok != (want != nil) || !slices.Equal(words, want) {
			t.Errorf("%s: %q, %v", line, words, ok)
		}
	}
}
