package card

import (
	"slices"
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
		{"zeros", deep("0. ", most+1), 1},
		{"nines", deep("9. ", most+1), 1},
		{"brackets", deep("1) ", most), 0},
		{"a bracket more", deep("1) ", most+1), 1},
		{"points behind quotes", deep(">.", most), 0},
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

// TestBodyItems: what is a bullet, and where it ends.
func TestBodyItems(t *testing.T) {
	for _, tt := range []struct {
		body string
		want []string // label and text
	}{
		{"", nil},
		{"- **Issue**: a\nlazy\n- **Solution**: b\n", []string{"Issue a\nlazy", "Solution b"}},
		{"- **Issue**: a\n\n\n- **Issue:** b\n\n", []string{"Issue a", "Issue b"}},
		{"> > **Issue**: x\n", nil},
		{"> - **Issue**: x\n", nil},
		{"-\n  **Issue**: x\n", nil},
		{"-\n- **Issue**: x\n", []string{"Issue x"}},
		{"- ```\n  **Issue**: x\n  ```\n- **Issue**: y", []string{"Issue y"}},
		{"- **Issue: x\n- Issue**: y\n- *Issue*: z\n- **Issues**: a\n", nil},
		{"1) __CONSTRAINT：__ x\n\n   y\n", []string{"Constraint x\n\ny"}},
		{"- **Issue**:\n  1. one\n  2. two\n\nprose\n", []string{"Issue 1. one\n2. two"}},
	} {
		c, err := Parse([]byte(head + "---\n" + tt.body))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for label, text := range c.Bullets() {
			got = append(got, label+" "+text)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.body, got, tt.want)
		}
		for range c.Bullets() { // a reader may stop
			break
		}
	}
}

// TestBulletsAdded: a bullet goes behind those of its kind or before it, and otherwise to the end with a blank line
// before.
func TestBulletsAdded(t *testing.T) {
	for _, tt := range []struct{ body, text, want string }{
		{"", "x", "- **Issue**: x\n"},
		{"prose", "x", "prose\n\n- **Issue**: x\n"},
		{"prose\n", "x", "prose\n\n- **Issue**: x\n"},
		{"prose\n\n", "x", "prose\n\n- **Issue**: x\n"},
		{"* **Issue**: a\n\nprose\n", "x", "* **Issue**: a\n* **Issue**: x\n\nprose\n"},
		{"* **Issue**: a", "x", "* **Issue**: a\n* **Issue**: x\n"},
		{"", "1. a\n2. b", "- **Issue**:\n  1. a\n  2. b\n"},
		{"", "1) a", "- **Issue**:\n  1) a\n"},
		{"", "1 a\n\nb", "- **Issue**: 1 a\n\n  b\n"},
		{"", ". a", "- **Issue**: . a\n"},
		{"", "> a", "- **Issue**:\n  > a\n"},
	} {
		c, err := Parse([]byte(head + "---\n" + tt.body))
		if err != nil {
			t.Fatal(err)
		}
		c.Issue = append(c.Issue, tt.text)
		if got := string(c.Body()); got != tt.want {
			t.Errorf("%q and %q: %q, want %q", tt.body, tt.text, got, tt.want)
		}
	}
	c, err := Parse([]byte(head + "---\n- **Issue**: a\n\nprose\n"))
	if err != nil {
		t.Fatal(err)
	}
	c.Solution = []string{"b"}
	if got, want := string(c.Body()), "- **Issue**: a\n- **Solution**: b\n\nprose\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
