package edit_test

import (
	"strings"
	"testing"

	"anamnesis/anamnesis/edit"
)

// TestSed: what an edit by sed says that it changed.
func TestSed(t *testing.T) {
	for command, want := range map[string]string{
		`sed -i 's/a.b/c.d/' x.py`:                                        "x.py: a.b → c.d",
		`sed -i "12s/'r'/'r', 'utf-8'/" x.py`:                             "x.py: 'r' → 'r', 'utf-8'",
		`sed -i '72a\    return total' sum.py`:                            "sum.py: return total",
		`sed -i '/DEBUG: total/d' x.py`:                                   "x.py: DEBUG: total → ",
		`sed -i '12d' x.py`:                                               "",
		`sed -i "s/open(p, 'r')/open(p, 'r', encoding='utf-8')/" x.py`:    "x.py: open(p, 'r') → open(p, 'r', encoding='utf-8')",
		`sed -i 's/total != \[\]/total == []/' x.py`:                      "x.py: total != [] → total == []",
		`sed -i "s/'NAME': 'm',/'NAME': 'm',\n    KEY='secret',/" x.py`:   "x.py:     KEY='secret',",
		`sed -i 's/lines\x27: 10-11/lines\x27: 9-10/' x.py`:               "x.py: lines': 10-11 → lines': 9-10",
		`sed -i 's/return total.*/return total(a)/' x.py`:                 ": sed -i 's/return total.*/return total(a)/' x.py",
		`sed -i 's/return total/return total/' x.py`:                      "",
		`sed -i '/def total/,/return/c\def total(a):\n    return 0' x.py`: "x.py: def total(a):|    return 0",
	} {
		got := ""
		for _, c := range edit.Of(command) {
			got += c.Path + ": " + strings.Join(c.Added, "|")
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", command, got, want)
		}
	}
}

// TestWidened: a substitution of a part is shown with its line if the file is known to have one
// such line, as it was printed and changed before.
func TestWidened(t *testing.T) {
	f := edit.Files{}
	f.Printed("cat app.py", "", "def run():\n    total = sum(rows)\n    last = max(rows)")
	for _, tt := range []struct{ command, want string }{
		{`sed -i 's/sum(rows)/round(sum(rows))/' app.py`, "    total = sum(rows) →     total = round(sum(rows))"},
		{`sed -i 's/round(sum/ceil(sum/' app.py`, "    total = round(sum(rows)) →     total = ceil(sum(rows))"},
		{`sed -i 's/(rows)/(lines)/' app.py`, "(rows) → (lines)"}, // of two lines
	} {
		c := edit.Of(tt.command)[0]
		f.Wrote(&c)
		if got := strings.Join(c.Added, "|"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.command, got, tt.want)
		}
	}
}
