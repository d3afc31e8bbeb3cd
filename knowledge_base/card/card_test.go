package card

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var day = time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)

func fullCard() *Card {
	expires := day.AddDate(1, 0, 0)
	return &Card{
		Topic: "go test: results are cached", SourceTask: "task_123_fix_auth", ID: "4yq2m5pkd3c7xw6a", State: Draft,
		Created: day, Expires: &expires,
		Scope: Scope{Repo: "shop", Language: "go", Tool: "go test", Version: "1.20"},
		Provenance: Provenance{Task: "task_123_fix_auth", JumpOp: 48, Ranges: []Range{{12, 47}, {60, 61}},
			Model: "extractor", EvidenceHash: "ab12", Tainted: true},
		Supersedes: []string{"oldcard"}, Contradicts: []string{"no", "3"}, Tags: []string{"testing", "缓存"},
		Issue: []string{
			"a test keeps passing after its fixture changed",
			"second issue:\n\n```go\nfunc f() {\n\treturn\n}\n```\nand prose",
		},
		Solution:   []string{"run with `-count=1`"},
		Constraint: []string{"- only for tests that read files\n- outside the module"},
	}
}

// fields is a copy of the card without where it came from.
func (c *Card) fields() Card {
	f := c.Clone()
	f.origin = nil
	return *f
}

func TestCardGolden(t *testing.T) {
	c := fullCard()
	text := c.Markdown()
	want, err := os.ReadFile("testdata/card.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("testdata/card.md differs; got:\n%s", text)
	}
	back, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := back.fields(); !reflect.DeepEqual(got, c.fields()) {
		t.Errorf("read back:\n got %+v\nwant %+v", got, c.fields())
	}
	if !bytes.Equal(back.Markdown(), text) {
		t.Error("parse and print changed the bytes")
	}
	if back.Hash() != c.Hash() {
		t.Error("parse changed the hash")
	}
}

// handWritten is a card as people leave them: comments, unknown keys, other
// order and spacing, prose around the bullets.
const handWritten = "---\n" +
	"# kept by the storage team\n" +
	"type: knowledge_card\n" +
	"topic:   'locks'   # short on purpose\n" +
	"source_task: manual\n" +
	"\n" +
	"owner: Kim\n" +
	"scope:\n" +
	"    language: go   # any version\n" +
	"    team: storage\n" +
	"# the rest is for the program\n" +
	"tags:\n" +
	"  - a # first\n" +
	"  - b\n" +
	"id: hand1\n" +
	"---\n" +
	"# Locks\n\nSome prose.\n\n" +
	"* **issue:** two writers\nlazy line\n\n  second paragraph\n" +
	"* a bullet of another kind\n" +
	"* **Solution** one writer\n\n" +
	"More prose.\n\n1. __Constraint__: only one host\n"

func TestParseHandWritten(t *testing.T) {
	c, err := Parse([]byte(handWritten))
	if err != nil {
		t.Fatal(err)
	}
	want := Card{Topic: "locks", SourceTask: "manual", ID: "hand1", State: Draft, Scope: Scope{Language: "go"},
		Tags:  []string{"a", "b"},
		Issue: []string{"two writers\nlazy line\n\nsecond paragraph"}, Solution: []string{"one writer"},
		Constraint: []string{"only one host"}}
	if got := c.fields(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if string(c.Markdown()) != handWritten {
		t.Error("printing an unchanged card changed it")
	}
}

// TestEditKeepsEverythingElse: an edit of the front matter lays it out anew and loses none of it, and an edit of the
// bullets changes nothing else.
func TestEditKeepsEverythingElse(t *testing.T) {
	laidOut := strings.NewReplacer("topic:   'locks'   #", "topic: 'locks' #", "\n\nowner", "\nowner",
		"    language: go   #", "  language: go #",
		"    team", "  team").Replace(handWritten)
	for _, tt := range []struct {
		name     string
		edit     func(c *Card)
		old, new string // the one replacement
	}{
		{"topic", func(c *Card) { c.Topic = "file locks" }, "topic: 'locks' # short on purpose\n", "topic: file locks # short on purpose\n"},
		{"new key", func(c *Card) { c.State = Reviewed }, "id: hand1\n", "id: hand1\nstate: reviewed\n"},
		{"list", func(c *Card) { c.Tags = []string{"a", "c"} }, "  - a # first\n  - b\n", "  - a # first\n  - c\n"},
		{"list gone", func(c *Card) { c.Tags = nil }, "# the rest is for the program\ntags:\n  - a # first\n  - b\n", ""},
		{"group", func(c *Card) { c.Scope.Tool = "bbolt" }, "  team: storage\n", "  team: storage\n  tool: bbolt\n"},
		{"bullet", func(c *Card) { c.Issue[0] = "three writers" }, "* **issue:** two writers\nlazy line\n\n  second paragraph\n", "* **Issue**: three writers\n"},
		{"bullet added", func(c *Card) { c.Solution = append(c.Solution, "or none") }, "one writer\n", "one writer\n* **Solution**: or none\n"},
		{"bullet gone", func(c *Card) { c.Solution = nil }, "* **Solution** one writer\n", ""},
		{"last bullet", func(c *Card) { c.Constraint[0] = "two hosts" }, "1. __Constraint__: only one host\n", "1. **Constraint**: two hosts\n"},
	} {
		for _, eol := range []string{"\n", "\r\n"} {
			c, err := Parse([]byte(strings.ReplaceAll(handWritten, "\n", eol)))
			if err != nil {
				t.Fatal(err)
			}
			tt.edit(c)
			from := handWritten
			if !strings.Contains(tt.name, "bullet") {
				from = laidOut
			}
			want := strings.ReplaceAll(strings.Replace(from, tt.old, tt.new, 1), "\n", eol)
			got := string(c.Markdown())
			if got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, want)
			}
			back, err := Parse([]byte(got))
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if !reflect.DeepEqual(back.fields(), c.fields()) {
				t.Errorf("%s: read back %+v, want %+v", tt.name, back.fields(), c.fields())
			}
		}
	}
}

// TestEditOfAnyOrder: keys go and come whatever the order of a file is.
func TestEditOfAnyOrder(t *testing.T) {
	c,
		err := Parse([]byte("---\nverified_at: 2026-01-31\nexpires: 2026-02-01\ntags: [a]\nid: a1\nsource_task: s\ntopic: t\ntype: knowledge_card\nstate: retired\n---\n- **Issue**: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	c.VerifiedAt, c.Expires, c.Tags, c.State, c.Scope.Tool, c.Supersedes = nil, nil, nil, Draft, "go", []string{"b"}
	const want = "---\nid: a1\nsource_task: s\ntopic: t\ntype: knowledge_card\nstate: draft\nscope:\n  tool: go\nsupersedes: [b]\n---\n- **Issue**: x\n"
	if got := string(c.Markdown()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEditKeepsComments: wherever a comment stands, an edit of the front matter keeps it.
func TestEditKeepsComments(t *testing.T) {
	const text = "---\n# 1\n\n# 2\ntype: knowledge_card # 3\ntopic: t\n# 4\nsource_task: s\n# 5\n\n# 6\nid: a1 # 7\nscope: # 8\n  # 9\n  repo: r # 10\n  # 11\n" +
		"tags: # 12\n  # 13\n  - a # 14\n  # 15\nmine: [a, # 16\n  b] # 17\n# 18\n\n# 19\n---\n- **Issue**: x\n"
	for _, eol := range []string{"\n", "\r\n"} {
		c, err := Parse([]byte(strings.ReplaceAll(text, "\n", eol)))
		if err != nil {
			t.Fatal(err)
		}
		c.State, c.Scope.Tool, c.Tags = Reviewed, "go", append(c.Tags, "new")
		got := string(c.Markdown())
		for n := 1; n <= 19; n++ {
			if !strings.Contains(got, fmt.Sprintf("# %d%s", n, eol)) {
				t.Errorf("%q: comment %d is gone:\n%s", eol, n, got)
			}
		}
		if back, err := Parse([]byte(got)); err != nil || back.State != Reviewed || back.Scope.Tool != "go" ||
			len(back.Tags) != 2 {
			t.Errorf("read back %+v, %v", back, err)
		}
	}
}

const head = "---\ntype: knowledge_card\ntopic: t\nsource_task: s\n"

// Each hostile card is one clear error naming the line, and quickly so.
func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(c *Card)
		want string // "": valid
	}{
		{"good", func(*Card) {}, ""},
		{"no id", func(c *Card) { c.ID = "" }, "not a card id"},
		{"id is a path", func(c *Card) { c.ID = "../x" }, "not a card id"},
		{"topic lines", func(c *Card) { c.Topic = "a\nb" }, "line break"},
		{"long topic", func(c *Card) { c.Topic = strings.Repeat("字", MaxTopicRunes+1) }, "at most"},
		{"state", func(c *Card) { c.State = "x" }, "unknown"},
		{"no state", func(c *Card) { c.State = "" }, ""},
		{"longest id", func(c *Card) { c.ID = strings.Repeat("a", 64) }, ""},
		{"id of 65", func(c *Card) { c.ID = strings.Repeat("a", 65) }, "not a card id"},
		{"longest topic", func(c *Card) { c.Topic = strings.Repeat("字", MaxTopicRunes) }, ""},
		{"task", func(c *Card) { c.SourceTask = "a\nb" }, "source_task holds a line break"},
		{"not UTF-8", func(c *Card) { c.Provenance.Model = "\xff" }, "provenance holds a line break"},
		{"ranges", func(c *Card) { c.Provenance.Ranges = make([]Range, MaxListItems) }, ""},
		{"more ranges", func(c *Card) { c.Provenance.Ranges = make([]Range, MaxListItems+1) }, "ranges has 201 entries"},
		{"range", func(c *Card) { c.Provenance.Ranges = []Range{{5, 3}} }, "not a range"},
		{"bullets", func(c *Card) { c.Issue = slices.Repeat([]string{"x"}, MaxBullets-2) }, ""},
		{"more bullets", func(c *Card) { c.Issue = slices.Repeat([]string{"x"}, MaxBullets-1) }, "the card has 201 bullets"},
		{"tags", func(c *Card) { c.Tags = slices.Repeat([]string{"x"}, MaxListItems) }, ""},
		{"more tags", func(c *Card) { c.Tags = slices.Repeat([]string{"x"}, MaxListItems+1) }, "tags has 201 entries"},
		{"blank tag", func(c *Card) { c.Tags = []string{" "} }, "tags has an empty entry"},
		{"no bullets", func(c *Card) { c.Issue, c.Solution, c.Constraint = nil, nil, nil }, "says nothing"},
		{"empty bullet", func(c *Card) { c.Issue = []string{" \n "} }, "empty **Issue**"},
		{"tag", func(c *Card) { c.Tags = []string{"a\nb"} }, "tags has an empty entry"},
		{"model", func(c *Card) { c.Provenance.Model = "a\x1b[31m" }, "provenance"},
		{"huge", func(c *Card) { c.Issue = []string{strings.Repeat("x", MaxBytes)} }, "at most"},
		{"too deep to read", func(c *Card) { c.Issue = []string{"x\n" + strings.Repeat("> ", 200) + "y"} }, "nested deeper"},
		{"YAML words", func(c *Card) {
			c.Topic, c.SourceTask, c.Tags = "null", "~", []string{"true", "1.0", "- x", "a: b", "#c"}
		}, ""},
	} {
		c := fullCard()
		tt.edit(c)
		err := c.Validate()
		var ce *Error
		switch {
		case tt.want == "" && err != nil,
			tt.want != "" && (!errors.As(err, &ce) || !strings.Contains(ce.What, tt.want)):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Of several faults, each run reports the same one, the first in the order of the fields.
func TestValidateReportsTheFirstFault(t *testing.T) {
	for range 50 {
		c := fullCard()
		c.Tags, c.Supersedes, c.Contradicts = []string{" "}, []string{" "}, []string{" "}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "tags has an empty entry") {
			t.Fatalf("three faulty lists: %v", err)
		}
		c.SourceTask, c.Scope.Tool, c.Provenance.Model = "a\nb", "a\nb", "a\nb"
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "source_task holds a line break") {
			t.Fatalf("three faulty texts: %v", err)
		}
	}
}

// Whatever a pass puts into the fields of a valid card is read back the same.
func TestCardRoundTripProperty(t *testing.T) {
	line := rapid.StringMatching(`[ a-zA-Z0-9'":#&*!|>%@{}\[\],?~一-三\-]{1,40}`)
	block := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(line, rapid.SampledFrom([]string{
			"", "```", "    code", "- item", "> quote", "# head", "---", "===", "<!--", "**Issue**: x",
			"- **Solution**: y", "\ttab", "1. one", "~~~", "`",
		})), 1, 6).Draw(t, "lines"), "\n")
	})
	rapid.Check(t, func(rt *rapid.T) {
		c := &Card{
			Topic: line.Draw(rt, "topic"), SourceTask: line.Draw(rt, "task"), ID: NewID(line.Draw(rt, "id")),
			State: Draft, Created: day,
			Tags:     rapid.SliceOfN(line, 0, 3).Draw(rt, "tags"),
			Scope:    Scope{Repo: line.Draw(rt, "repo")},
			Issue:    rapid.SliceOfN(block, 0, 3).Draw(rt, "issue"),
			Solution: rapid.SliceOfN(block, 1, 3).Draw(rt, "solution"),
		}
		if c.Validate() != nil {
			rt.Skip("not a card")
		}
		text := c.Markdown()
		back, err := Parse(text)
		if err != nil {
			rt.Fatal(err)
		}
		if !bytes.Equal(back.Markdown(), text) || back.Hash() != c.Hash() {
			rt.Fatalf("changed by reading:\n%s", text)
		}
		back.Solution = append(back.Solution, "one more")
		back.State = Reviewed
		again, err := Parse(back.Markdown())
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(again.Solution, back.Solution) || !reflect.DeepEqual(again.Issue, back.Issue) ||
			again.State != Reviewed || again.Topic != back.Topic {
			rt.Fatalf("edit read back as %+v, want %+v\n%s", again.fields(), back.fields(), back.Markdown())
		}
	})
}

// The bullets refused for not reading back should be rare oddities.
func TestOrdinaryBulletsAreAccepted(t *testing.T) {
	for _, text := range []string{
		"plain", "# not a heading", "- item\n- item", "```sh\nrm -rf x\n```", "text\n```\ncode\n\n\nmore\n```", "a\n\nb\n\n    indented code",
		"ends with colon:", "| a | b |\n|---|---|", "<div>\nhtml\n</div>", "> quote\n> more", "x\n---\ny", "**bold** start", "`code` start", "*em*",
		"1. one\n2. two", "[link]: http://x", "中文：说明", "a\r\nb", "tab\tinside", "\\*escaped", "**Issue**: nested label",
	} {
		c := &Card{
			ID: "a1", Topic: "t", SourceTask: "task_1", State: Draft, Created: day,
			Issue: []string{text, "second " + text},
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestValuesAsWritten: a value may be absent, alone or not of its usual form, and an edit of it is written.
func TestValuesAsWritten(t *testing.T) {
	c,
		err := Parse([]byte(head +
		"id: a1\nverified_at: 2026-01-31\ntags: one\nsupersedes: ''\nprovenance:\n  model: ~\n  ranges: 12-47\n---\n- **Issue**: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Provenance.Model != "" || len(c.Supersedes) != 0 ||
		fmt.Sprint(c.Tags, c.Provenance.Ranges) != "[one] [12-47]" || c.ParsedID() != "a1" {
		t.Errorf("%+v", c)
	}
	c.VerifiedAt, c.Scope.Tool, c.Provenance.Ranges, c.ID = nil, "go", []Range{{7, 7}}, "a2"
	const want = head +
		"id: a2\nscope:\n  tool: go\ntags: one\nsupersedes: ''\nprovenance:\n  ranges: [7-7]\n  tainted: false\n---\n- **Issue**: x\n"
	if got := string(c.Markdown()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if c.ParsedID() != "a1" || !strings.Contains(string(c.Source()), "a1") {
		t.Errorf("it was %s: %s", c.ParsedID(), c.Source())
	}
	made := &Card{Topic: "t", SourceTask: "s", Issue: []string{"x"}}
	if text := string(made.Markdown()); strings.Contains(text, "id:") || made.Source() != nil || made.ParsedID() != "" {
		t.Errorf("made: %q, %q, %q", text, made.Source(), made.ParsedID())
	}
	if made.Expired(day) {
		t.Error("a card without a date has expired")
	}
	if made.Expires = &day; made.Expired(day) || !made.Expired(day.Add(1)) {
		t.Error("a card expires behind its date")
	}
}

// TestOneLine: an error and a title are one line.
func TestOneLine(t *testing.T) {
	if got := OneLine("a\nb\u2028c\u2029d\te\x7ff g"); got != "a b c d e f g" {
		t.Errorf("%q", got)
	}
	for want, err := range map[string]*Error{"a b": Errorf(0, "a\nb"), "line 3: a": Errorf(3, "a")} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
	}
}

func TestNewID(t *testing.T) {
	if a, b := NewID("ab", "c"), NewID("a", "bc"); a == b {
		t.Error("different parts, same id")
	}
	if a := NewID("task", "1", "0"); a != NewID("task", "1", "0") || len(a) != 16 || !validID(a) {
		t.Errorf("id %q", a)
	}
}

func TestHashIsOfTheLesson(t *testing.T) {
	a, b := fullCard(), fullCard()
	b.State, b.Tags, b.Created = Reviewed, nil, day.AddDate(0, 1, 0)
	if a.Hash() != b.Hash() {
		t.Error("a review changed the hash")
	}
	b.Issue[0] += "!"
	if a.Hash() == b.Hash() {
		t.Error("another lesson has the same hash")
	}
	b = fullCard()
	b.Solution, b.Constraint = append(b.Solution, b.Constraint...), nil
	if a.Hash() == b.Hash() {
		t.Error("a constraint that became a solution has the same hash")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(handWritten))
	f.Add([]byte(head + "---\n- **Issue**: x\n"))
	f.Add([]byte("---\r\ntype: knowledge_card\r\ntopic: t\r\nsource_task: s\r\n---\r\n* __Solution__ y\r\n"))
	f.Add([]byte(head + "scope: {repo: a, x: [1]}\ntags:\n- a\n---\n1) **Constraint:** z\n\n   w\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, err := Parse(src)
		if err != nil {
			var ce *Error
			if !errors.As(err, &ce) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("not one clear error: %q", err)
			}
			return
		}
		if !bytes.Equal(c.Markdown(), src) {
			t.Fatal("printing an unchanged card changed it")
		}
		if c.ID == "" {
			c.ID = "x1"
		}
		if c.Validate() != nil {
			return
		}
		c.State = Reviewed
		c.Tags = append(c.Tags, "fuzz")
		if c.Validate() != nil {
			return // refused, not written wrongly
		}
		back, err := Parse(c.Markdown())
		if err != nil {
			t.Fatalf("edit made it unreadable: %v\n%s", err, c.Markdown())
		}
		if back.State != Reviewed || back.Topic != c.Topic || !reflect.DeepEqual(back.Issue, c.Issue) {
			t.Fatalf("edit changed the rest:\n%s", c.Markdown())
		}
	})
}
