package card

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// hostile is a text that must be answered with one clear error, fast; or be
// read, where want is empty.
type hostile struct {
	name, src string
	line      int // 0: any
	want      string
}

func many(n int, f string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, f, i)
	}
	return b.String()
}

// growing repeats unit behind ever more of pad.
func growing(n int, pad, unit string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(pad, i) + unit)
	}
	return b.String()
}

// hostileShapes are no cards at all, or broken as a whole.
func hostileShapes() []hostile {
	return []hostile{
		{"empty", "", 1, "no front matter"},
		{"no front matter", "# hello\n", 1, "no front matter"},
		{"open front matter", head, 5, "does not end"},
		{"not YAML", "---\ntype: knowledge_card\ntopic: [a\n---\n", 0, "broken YAML"},
		{"a list", "---\n- a\n---\n", 2, "not a list of 'key: value' lines"},
		{"empty front matter", "---\n---\n", 2, "front matter is empty"},
		{"a comment alone", "---\n# x\n---\n", 2, "front matter is empty"},
		{"a bracket alone", head + "x: [a\n---\n", 6, "broken YAML"},
	}
}

// hostileFields have one field that cannot be meant.
func hostileFields() []hostile {
	return []hostile{
		{"wrong type", "---\ntype: note\ntopic: t\nsource_task: s\n---\n", 2, `type is "note"`},
		{"no type", "---\ntopic: t\nsource_task: s\n---\n", 2, "missing: type; "},
		{"neither", "---\ntype: knowledge_card\n---\n", 2, "missing: topic, source_task; "},
		{"no topic", "---\ntype: knowledge_card\nsource_task: s\n---\n", 2, "missing: topic; "},
		{"empty topic", "---\ntype: knowledge_card\ntopic:\nsource_task: s\n---\n", 3, "topic is empty"},
		{"no source_task", "---\ntype: knowledge_card\ntopic: t\n---\n", 2, "missing: source_task; "},
		{"topic with newline", "---\ntype: knowledge_card\ntopic: \"a\\nb\"\nsource_task: s\n---\n", 3, "line break"},
		{"topic is a map", "---\ntype: knowledge_card\ntopic: {a: b}\nsource_task: s\n---\n", 3, "single value"},
		{"duplicate key", head + "topic: u\n---\n", 5, `"topic" appears twice`},
		{"duplicate inner key", head + "scope:\n  repo: a\n  repo: b\n---\n", 7, "twice"},
		{"bad state", head + "state: maybe\n---\n", 5, `state "maybe"`},
		{"bad id", head + "id: ../../etc\n---\n", 5, "not a card id"},
		{"id with newline", head + "id: \"a\\nb\"\n---\n", 5, "line break"},
		{"bad date", head + "created: yesterday\n---\n", 5, "not a date"},
		{"bad range", head + "provenance:\n  ranges: [9-3]\n---\n", 6, "not a range"},
		{"unclear taint", head + "provenance:\n  tainted: yes\n---\n", 6, "write true or false"},
		{"scope is text", head + "scope: everywhere\n---\n", 5, "not a group"},
		{"bad jump", head + "provenance:\n  jump_op: x\n---\n", 6, "not an operation number"},
		{"a date of two", head + "created: [2026-01-31]\n---\n", 5, "single value"},
		{"half a range", head + "provenance:\n  ranges: [x-3]\n---\n", 6, "not a range"},
		{"the other half", head + "provenance:\n  ranges: [3-x]\n---\n", 6, "not a range"},
		{"tags are a map", head + "tags: {a: b}\n---\n", 5, "tags is not a list"},
		{"a key of two", head + "? [a]\n: b\n---\n", 5, "a key must be a plain word"},
		{"a key of two lines", head + "\"a\\nb\": 1\n---\n", 5, "a key must be a plain word"},
		{"empty values", head + "state:\ncreated:\nscope:\ntags:\nid:\nprovenance:\n  jump_op:\n  tainted:\n  ranges:\n---\n", 0, ""},
		{"as many tags as allowed", head + "tags: [" + many(MaxListItems, "t%d, ") + "]\n---\n", 0, ""},
		{"tags nested", head + "tags: [[a]]\n---\n", 5, "single value"},
		{"too many tags", head + "tags: [" + many(MaxListItems+1, "t%d, ") + "]\n---\n", 5, "at most"},
	}
}

// hostileSizes are bombs: small files that grow when read, and large ones.
func hostileSizes() []hostile {
	return []hostile{
		{"anchor", head + "x: &a 1\n---\n", 5, "anchors"},
		{"alias bomb", head + "a: &a [x,x,x,x,x,x,x,x]\n" + many(30, "b%[1]d: &b%[1]d [*a,*a,*a,*a,*a,*a,*a,*a]\n") + "---\n", 5, "anchors"},
		{"deep flow", head + "x: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n---\n", 5, "brackets nested deeper"},
		{"brackets in words", head + "x: '" + strings.Repeat("[", 4*maxYAMLDepth) + "'\n---\n", 0, ""},
		{"too many in words", head + "x: '" + strings.Repeat("[", 4*maxYAMLDepth+1) + "'\n---\n", 5, "brackets nested deeper"},
		{"brackets that close", head + "x: '" + strings.Repeat("[]", 5*maxYAMLDepth) + "'\n---\n", 0, ""},
		{"as deep as allowed", head + "x: " + strings.Repeat("[", 15) + "1" + strings.Repeat("]", 15) + "\n---\n", 0, ""},
		{"too deep", head + "x: " + strings.Repeat("[", 16) + "1" + strings.Repeat("]", 16) + "\n---\n", 5, "nested deeper than 16"},
		{"deep blocks", head + "x:\n" + growing(60, " ", "-\n") + "---\n", 0, "nested"},
		{"deep dashes", head + "x:\n  " + strings.Repeat("- ", 20000) + "x\n---\n", 0, "depth"},
		{"huge front matter", head + "x: " + strings.Repeat("y", MaxFrontMatterBytes) + "\n---\n", 5, "more than"},
		{"as large as allowed", head + "x: " + strings.Repeat("y", MaxFrontMatterBytes-len(head)) + "\n---\n", 0, ""},
		{"a byte more", head + "x: " + strings.Repeat("y", MaxFrontMatterBytes-len(head)+1) + "\n---\n", 5, "more than"},
		{"a whole MiB", head + "---\n" + strings.Repeat("x", MaxBytes-len(head)-4), 0, ""},
		{"a MiB and a byte", head + "---\n" + strings.Repeat("x", MaxBytes-len(head)-3), 0, "at most 1048576"},
		{"not UTF-8 at all", "\xff", 1, "not UTF-8 at byte 0"},
		{"many keys", head + many(3000, "key%d: v\n") + "---\n", 0, ""},
		{"10 MB", head + "---\n" + strings.Repeat("x", 10<<20), 0, "at most 1048576"},
		{"not UTF-8", head + "---\n- **Issue**: \xff\n", 6, "not UTF-8"},
		{"deep quotes", head + "---\n" + strings.Repeat("> ", 100000) + "x\n", 6, "nested deeper"},
		{"deep lists", head + "---\n" + strings.Repeat("- ", 100000) + "x\n", 6, "nested deeper"},
		{"too many bullets", head + "---\n" + many(MaxBullets+1, "- **Issue**: %d\n"), 6 + MaxBullets, "more than 200 bullets"},
		{"stars", head + "---\n- **Issue**: " + strings.Repeat("*a ", 100000) + "\n", 0, ""},
		{"brackets", head + "---\n- **Issue**: " + strings.Repeat("[", 500000) + "\n", 0, ""},
		{"backticks", head + "---\n- **Issue**: " + growing(1200, "`", " ") + "\n", 0, ""},
		{"plain", head + "---\n- **Issue**: i\n", 0, ""},
	}
}

func TestHostileCards(t *testing.T) {
	for name, list := range map[string][]hostile{"shape": hostileShapes(), "field": hostileFields(), "size": hostileSizes()} {
		for _, h := range list {
			t.Run(name+"/"+h.name, h.check)
		}
	}
}

func (h hostile) check(t *testing.T) {
	_, err := Parse([]byte(h.src))
	if h.want == "" {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	var ce *Error
	if !errors.As(err, &ce) {
		t.Fatalf("got %v, want an *Error with %q", err, h.want)
	}
	if !strings.Contains(ce.What, h.want) || h.line > 0 && ce.Line != h.line {
		t.Errorf("got line %d: %s; want line %d: …%s…", ce.Line, ce.What, h.line, h.want)
	}
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
		t.Errorf("not one clear line: %.600q", err.Error())
	}
}
