package ignore

import (
	"regexp"
	"strings"
	"testing"
)

func TestWildmatch(t *testing.T) {
	for _, c := range []struct {
		pat, name string
		want      bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"*", "abc", true}, {"*", "a/b", false},
		{"a*c", "abbc", true}, {"a?c", "a/c", false}, {"**/b", "b", true}, {"**/b", "x/y/b", true},
		{"a/**", "a/b/c", true}, {"a/**", "a", false}, {"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true},
		{"a**b", "a/b", false}, {"a**b", "axxb", true}, {"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false},
		{"[^a]", "/", false}, {"[]]", "]", true}, {"[]-a]", "^", true}, {"[[:digit:]]", "5", true},
		{"[[:nope:]]", "n", false}, {"[a", "a", false}, {`\*`, "*", true}, {`\*`, "x", false}, {`a\`, "a", false},
		{"[--0]", ".", true}, {`[\]]`, "]", true}, {"***/x", "q/x", true}, {"*/b", "a/b", true}, {"*/b", "a/c/b", false},
		{"é", "é", true}, {"?", "é", false}, {"??", "é", true}, {"??", "\u0080", true}, {"[!a]", "!", true}, {"[", "[", false}, {"[!", "!", false},
		{`[\`, "x", false}, {"[a-", "a", false}, {"[a-]", "-", true}, {"[a-]", "b", false}, {"[[:a]", ":", true}, {"[a:]", "a", true},
		{"[a[:nope:]]", "a", false}, {"[[:digit:", "5", false}, {"a[/]b", "a/b", false}, {"a[.-0]b", "a/b", false}, {"[.-0]", ".", true},
		{"[.-0]", "0", true}, {"[.-0]", "1", false}, {"[+-9]", ",", true}, {"[+-9]", "5", true}, {"[+-9]", ":", false}, {"a[/-5]b", "a/b", false},
		{"[/-5]", "3", true}, {"[/-5]", ".", false}, {"a[+-/]b", "a/b", false}, {"[+-/]", "-", true}, {"[+-/]", "0", false}, {"[/a]", "a", true},
	} {
		if got := wildmatch(globOf(c.pat), c.name); got != c.want {
			t.Errorf("wildmatch(%q, %q) = %v", c.pat, c.name, got)
		}
	}
	// The characters from the tab to ÿ that each POSIX class matches, as git's wildmatch has them.
	for class, want := range map[string]string{
		"alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": "\t ", "cntrl": "\t\r\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z",
		"print": " -~", "punct": "!-/:-@[-`{-~", "space": "\t\r ", "upper": "A-Z", "xdigit": "0-9A-Fa-f",
	} {
		set := regexp.MustCompile("^[" + strings.NewReplacer("[-`", `\[-`+"`").Replace(want) + "]$")
		for _, c := range []byte("\t\r !/09:@AFGZ[`afgz{~\x7f") {
			if got := wildmatch(globOf("[[:"+class+":]]"), string(c)); got != set.MatchString(string(c)) && c != '/' {
				t.Errorf("%s matches %q: %v", class, c, got)
			}
		}
	}
	// Many stars must not take for ever.
	if wildmatch(globOf(strings.Repeat("*a", 40)+"b"), strings.Repeat("a", 200)) {
		t.Error("matched")
	}
}

func TestPatternLine(t *testing.T) {
	for _, line := range []string{"a", "!a", "/a", "a/", "!/a/b/", "a/b", `\#x`, `\!x`, `a\ `, `a \`, "!!x", "**/x", "a\r\r"} {
		p, ok := ParsePattern(line)
		if !ok {
			t.Fatalf("%q is no pattern", line)
		}
		again, ok := ParsePattern(p.String())
		if !ok || again != p {
			t.Errorf("%q became %q", line, p.String())
		}
	}
	for _, line := range []string{"", "#x", "   ", "/", "\r", "!"} {
		if p, ok := ParsePattern(line); ok && p.text != "" {
			t.Errorf("%q is a pattern: %+v", line, p)
		}
	}
}

// TestChain: the deepest file decides, the root's is above, and rules say
// nothing of what lies beside their directory.
func TestChain(t *testing.T) {
	var none Chain
	top := none.With(Parse("", "", []byte("*.o\n/build\nlogs/\n")))
	deep := top.With(Parse("a/b", "", []byte("!keep.o\n/only\n")))
	above := none.With(Parse("", "sub/dir", []byte("/sub/dir/x\ny\n/z\n")))
	for _, tt := range []struct {
		name  string
		chain Chain
		path  string
		isDir bool
		want  bool
	}{
		{"no rules", none, "x.o", false, false},
		{"by name at any depth", top, "a/b/x.o", false, true},
		{"anchored", top, "build", true, true},
		{"anchored, deeper", top, "a/build", true, false},
		{"directories only", top, "logs", false, false},
		{"a directory", top, "a/logs", true, true},
		{"brought back below", deep, "a/b/keep.o", false, false},
		{"not brought back beside", deep, "a/keep.o", false, true},
		{"not brought back where the name only begins alike", deep, "a/bc/keep.o", false, true},
		{"anchored to its directory", deep, "a/b/only", false, true},
		{"anchored to its directory, deeper", deep, "a/b/c/only", false, false},
		{"its directory itself", deep, "a/b", true, false},
		{"the shorter chain is as it was", top, "a/b/keep.o", false, true},
		{"from above, anchored", above, "x", false, true},
		{"from above, by name", above, "q/y", false, true},
		{"from above, anchored elsewhere", above, "z", false, false},
	} {
		if got := tt.chain.Ignored(tt.path, tt.isDir); got != tt.want {
			t.Errorf("%s: %q is ignored: %v", tt.name, tt.path, got)
		}
	}
	if again := top.With(Parse("a", "", []byte("# nothing\n\n"))); len(again) != len(top) {
		t.Errorf("a file without patterns makes the chain %d long", len(again))
	}
}

// FuzzParse: any content parses, returns lines that mean the same again, and
// matches in bounded time.
func FuzzParse(f *testing.F) {
	f.Add([]byte("*.o\n!/a/**/b\n[!a-]/\n\\#x \\ \r\n"), "a/b.o")
	f.Add([]byte("\xef\xbb\xbf[[:alpha:]]*\n[[:x\n**/***"), "é/x")
	f.Fuzz(func(t *testing.T, content []byte, path string) {
		if len(content) > 1<<10 || len(path) > 1<<8 {
			return
		}
		r := Parse("", "", content)
		for _, p := range r.Patterns {
			if again, ok := ParsePattern(p.String()); !ok || again != p {
				t.Errorf("%+v became %+v by %q", p, again, p.String())
			}
		}
		Chain{}.With(r).Ignored(path, true)
	})
}
