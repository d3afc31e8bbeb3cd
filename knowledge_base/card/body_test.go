package card

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestTooDeepMarkdown: as many quotes and lists as the limit says may stand in one another.
func TestTooDeepMarkdown(t *testing.T) {
	const most = maxMarkdownDepth
	deep := func(marker string, n int) string { return strings.Repeat(marker, n) }
	for _, tt := range []struct {
		name, text string
		line       int
	}{
		{"nothing", "", 0},
		{"quotes", deep(">", most), 0},
		{"a quote too many", deep(">", most+1), 1},
		{"with blanks", deep("> ", most+1), 1},
		{"lists", deep("- ", most), 0},
		{"a list too many", deep("- ", most+1), 1},
		{"behind tabs", deep("*\t", most+1), 1},
		{"with plus", deep("+ ", most+1), 1},
		{"numbers", deep("1. ", most), 0},
		{"a number too many", deep("1. ", most+1), 1},
		{"with brackets", deep("23) ", most+1), 1},
		{"of each", deep("> - 1. ", most/3+1), 1},
		{"the last without a blank", deep("- ", most) + "-", 0},
		{"a rule", deep("-", 2*most), 0},
		{"points", deep(".", 2*most), 0},
		{"points behind blanks", deep(" .", 2*most), 0},
		{"behind a word", "x" + deep(">", 2*most), 0},
		{"each on its line", deep(">\n", 2*most), 0},
		{"the third line", "a\n\n" + deep(">", most+1) + "\nb", 3},
	} {
		if got := tooDeepMarkdown([]byte(tt.text)); got != tt.line {
			t.Errorf("%s: line %d, want %d", tt.name, got, tt.line)
		}
	}
}

// TestGroupOfKeys: a group keeps the keys of others, and the comments of values that are replaced; a
// value that stays keeps how it was written.
func TestGroupOfKeys(t *testing.T) {
	for _, tt := range []struct {
		name, old string
		text      string
		flag      bool
		want      string
	}{
		{"nothing", "", "", false, ""},
		{"a false alone", "flag: false\n", "", false, ""},
		{"a false beside a text", "", "x", false, "text: x\nflag: false\n"},
		{"a true alone", "", "", true, "flag: true\n"},
		{"another's key", "more: 1\n", "x", true, "more: 1\ntext: x\nflag: true\n"},
		{"it stays", "text: \"x\" # why\nflag: false\n", "x", false, "text: \"x\" # why\nflag: false\n"},
		{"it changes", "text: \"x\" # why\nflag: false\n", "y", true, "text: y # why\nflag: true\n"},
		{"a list becomes a text", "text: [x]\n", "x", true, "text: x\nflag: true\n"},
		{"it goes", "text: x\nflag: true\nmore: 1\n", "", false, "more: 1\n"},
		{"the last one goes", "text: x\n", "", false, ""},
	} {
		var old yaml.Node
		if err := yaml.Load([]byte(tt.old), &old); tt.old != "" && err != nil {
			t.Fatal(err)
		}
		before := &old
		if old.Kind == yaml.DocumentNode {
			before = old.Content[0]
		}
		n := mapNode([]keyed{{key: "text", field: &tt.text}, {key: "flag", field: &tt.flag}}, before)
		got := ""
		if n != nil {
			out, err := yaml.Dump(n, yaml.WithLineWidth(-1), yaml.WithIndent(2))
			if err != nil {
				t.Fatal(err)
			}
			got = string(out)
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
