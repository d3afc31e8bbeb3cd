package term

import (
	"strings"
	"testing"
)

// TestGraph: branches in one piece, the newest first, and no lane crosses.
func TestGraph(t *testing.T) {
	node := func(id, parent string) Node { return Node{ID: id, Parent: parent, Text: id, Filled: id == "7"} }
	for _, c := range []struct {
		name  string
		nodes []Node
		want  string
	}{
		{"nothing", nil, ""},
		{"a line", []Node{node("2", "1"), node("1", "")}, "○  2\n○  1"},
		{"branches", []Node{node("7", "2"), node("6", "5"), node("8", "5"), node("5", "4"), node("4", "2"), node("3", "2"), node("2", "1"), node("1", "gone")},
			"●  7\n" +
				"│ ○  6\n" +
				"│ │ ○  8\n" +
				"│ ├─╯\n" +
				"│ ○  5\n" +
				"│ ○  4\n" +
				"├─╯\n" +
				"│ ○  3\n" +
				"├─╯\n" +
				"○  2\n" +
				"○  1"},
		{"two roots", []Node{node("4", "3"), node("2", "1"), node("3", ""), node("1", "")}, "○  4\n○  3\n○  2\n○  1"},
	} {
		if got := strings.Join(Graph(c.nodes, 40), "\n"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	long := Graph([]Node{{ID: "1", Text: strings.Repeat("x", 99) + "\x1b[2J\n"}}, 20)
	if len(long) != 1 || strings.ContainsAny(long[0], "\x1b\n") || len([]rune(long[0])) > 20 {
		t.Errorf("%q", long)
	}
}

// TestEscaper: control bytes never arrive, whatever the pieces they come in.
func TestEscaper(t *testing.T) {
	text := "one\x1b[31m\ntw\xffo\tthree\n" + strings.Repeat("é", maxHeldBytes) + "\nend\x07"
	var b strings.Builder
	e := NewEscaper(&b)
	for i := 0; i < len(text); i += 7 {
		if _, err := e.Write([]byte(text[i:min(i+7, len(text))])); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.HasPrefix(got, "one\\x1b[31m\ntw\\xffo\tthree\né") || !strings.HasSuffix(got, "\nend\\x07") {
		t.Errorf("%.60q…", got)
	}
}
