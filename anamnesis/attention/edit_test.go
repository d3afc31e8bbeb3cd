package attention

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/anamnesis/quote"
)

func newRow(pattern string, eas int) Row {
	return Row{Pattern: pattern, Window: 32000, EAS: eas, Encoding: "o200k_base", Confidence: ConfidenceLow,
		Source: `said "so": a, {b} # [c]`, Updated: "2026-11-21", By: "user"}
}

const newRowLine = `- {pattern: "m", window: 32000, eas: 7, encoding: o200k_base, confidence: low, source: "said \"so\": a, {b} # [c]", updated: 2026-11-21, by: "user"}` + "\n"

// TestPutRow: the values, comments and own fields of a user stay.
func TestPutRow(t *testing.T) {
	const block = `# mine
version: 1
x-team: [a, b] # kept
rows:
  # the first
  - pattern: 'm'   # as it is called
    window: 32_000
    eas: 5 # too much?
    encoding: o200k_base
    x-why: "because"

    confidence: high
    source: "it\u0027s \"old\""
    updated: 2026-01-01
    by: me
# the end
`
	const written = `# mine
version: 1
x-team: [a, b] # kept
rows:
# the first
- pattern: 'm' # as it is called
  window: 32000
  eas: 7 # too much?
  encoding: o200k_base
  x-why: "because"
  confidence: low
  source: "said \"so\": a, {b} # [c]"
  updated: 2026-11-21
  by: "user"
# the end
`
	for _, tt := range []struct{ name, in, out string }{
		{"no file", "", overlayHead + "version: 1\nrows:\n  " + newRowLine},
		{"only comments", "# mine\n", "# mine\nversion: 1\nrows:\n  " + newRowLine},
		{"no rows", "version: 1", "version: 1\nrows:\n" + newRowLine},
		{"empty rows", "version: 1\nrows: # none yet\nx-a: 1\n", "version: 1\nrows: # none yet\n" + newRowLine + "x-a: 1\n"},
		{"an empty list", "version: 1\nrows: [] # c\n", "version: 1\nrows: [" + strings.TrimSpace(newRowLine[2:]) + "] # c\n"},
		{"a row before", "rows:\n- " + row("k", "3")[4:] + "# end\nversion: 1\n", "rows:\n- " + row("k", "3")[4:] + newRowLine + "# end\nversion: 1\n"},
		{"line ends", "version: 1\r\nrows:\r\n", "version: 1\nrows:\n" + newRowLine},
		{"in place", block, written},
		{"in place of single quotes", strings.Replace(block, `"it\u0027s \"old\""`, `'it''s "old"'`, 1), written},
		{"in place before a comment", strings.Replace(block, `"it\u0027s \"old\""`, `'it''s "old"' # c`, 1), strings.Replace(written, `# [c]"`, `# [c]" # c`, 1)},
	} {
		got, err := PutRow(Overlay{Name: "my/eas.yaml", Data: []byte(tt.in)}, newRow("m", 7))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if string(got) != tt.out {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, tt.out)
		}
	}
}

// TestPutRowCase: a row is replaced whatever the case of its pattern, which stays as the file has it.
func TestPutRowCase(t *testing.T) {
	data := []byte("version: 1\nrows:\n  - " + newRow("Big", 5).YAML() + "\n  - " + newRow("Other", 6).YAML() + "\n")
	for pattern, want := range map[string]string{"big": `pattern: "Big"`, "OTHER": `pattern: "Other"`,
		"new": `pattern: "new"`} {
		got, err := PutRow(Overlay{Name: "f", Data: data}, newRow(pattern, 9))
		if err != nil || strings.Count(string(got), want) != 1 || strings.Count(string(got), "eas: 9") != 1 {
			t.Errorf("%s: %v\n%s", pattern, err, got)
		}
	}
}

func TestPutWrongRow(t *testing.T) {
	for name, r := range map[string]Row{"zero": newRow("m", 0), "over the window": newRow("m", 32001), "pattern": newRow("a b", 7), "no source": {Pattern: "m", Window: 9, EAS: 7, Encoding: "o200k_base", Confidence: "low", Updated: "2026-11-21", By: "x"}} {
		var e *TableError
		if _, err := PutRow(Overlay{Name: "o", Data: nil}, r); !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var e *TableError
	if _, err := PutRow(Overlay{Name: "o", Data: []byte("version: 9\n")}, newRow("m", 7)); !errors.As(err, &e) {
		t.Errorf("a broken file: %v", err)
	}
}

// TestPutRows: rows put in any order, over each other, read back as the last
// of each pattern, and a line of comment survives all of it.
func TestPutRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(rapid.SampledFrom([]string{"", "version: 1\nrows:\n# keep me\n",
			"# keep me\nrows:\n" + row("a-*", "9") + "\nversion: 1\n"}).Draw(t, "start"))
		keeps := strings.Contains(string(data), "# keep me")
		last := make(map[string]Row)
		for range rapid.IntRange(1, 8).Draw(t, "puts") {
			r := newRow(rapid.SampledFrom([]string{"a-*", "b", "C{1,2}"}).Draw(t, "pattern"),
				rapid.IntRange(1, 32000).Draw(t, "eas"))
			r.Source = "s" + rapid.StringMatching(`[ -~äé你\n"'#:{}\[\]\\]{0,20}`).Draw(t, "source")
			var err error
			if data, err = PutRow(Overlay{Name: "o", Data: data}, r); err != nil {
				t.Fatalf("%v\n%s", err, data)
			}
			r.Source = quote.Squash(r.Source)
			last[strings.ToLower(r.Pattern)] = r
		}
		rows, err := parseTable(Overlay{Name: "o", Data: data})
		if err != nil || keeps != strings.Contains(string(data), "# keep me") {
			t.Fatalf("%v\n%s", err, data)
		}
		for key, want := range last {
			i := slices.IndexFunc(rows, func(r Row) bool { return strings.ToLower(r.Pattern) == key })
			if i < 0 || rows[i].values() != want.values() {
				t.Fatalf("%s is not %+v:\n%s", key, want, data)
			}
		}
	})
}
