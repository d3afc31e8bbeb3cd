package redact

import (
	"strings"
	"testing"
)

// TestCommandEnds: the options of a command are searched up to its end, and no further.
func TestCommandEnds(t *testing.T) {
	find := commandForm{flag: "-p", attached: true}.command("mysql")
	const secret = "9Qz7secret4K"
	for _, tt := range []struct {
		in    string
		found bool
		open  bool // more text may change the answer; of a value, too
	}{
		{"mysql -p" + secret + " db", true, false},
		{"mysql -u root -p" + secret + "\n", true, false},
		{"mysql -u a \\\n -p" + secret + " db", true, false},
		{`mysql -u a\t -p` + secret + " db", true, false},
		{"mysql -u a\n -p" + secret + " db", false, false},
		{"mysql -u a | x -p" + secret + " db", false, false},
		{"mysql -u a; x -p" + secret + " db", false, false},
		{`mysql -u a\n x -p` + secret + " db", false, false},
		{`mysql -u a\r x -p` + secret + " db", false, false},
		{"mysql -u mysql -p" + secret + " db", false, false}, // the second one finds it
		{"mysql -u a-p" + secret + " db", false, true},
		{"mysqldump -p" + secret + " db", false, false},
		{"mysql -u a", false, true},
		{`mysql -u a\`, false, true},
		{"mysql", false, true},
		{"mysql " + strings.Repeat("x", maxCommandBytes-2) + " -p" + secret + " db", true, false},
		{"mysql " + strings.Repeat("x", maxCommandBytes-1) + " -p" + secret + " db", false, false},
	} {
		m, ok := find(tt.in, 0, len("mysql"))
		if ok != tt.found || m.open != tt.open || ok && tt.in[m.start:m.end] != secret {
			t.Errorf("%.40q: %+v, %v", tt.in, m, ok)
		}
	}
	if _, ok := find("xmysql -p"+secret+" db", 1, 6); ok {
		t.Error("the end of another word is taken for the command")
	}
}
