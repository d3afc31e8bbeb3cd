package attention

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	assets "anamnesis"
	"anamnesis/anamnesis/tokens"
)

func builtin(t testing.TB, overlays ...Overlay) *Table {
	t.Helper()
	table, err := LoadTable(assets.EAS, overlays...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestLookup(t *testing.T) {
	table := builtin(t)
	for _, tt := range []struct {
		model string
		eas   int
		known bool
	}{
		{"gpt-4o", 8000, true}, {"gpt-4o-2024-08-06", 8000, true}, {"gpt-4o-mini", 1000, true}, {"chatgpt-4o-latest", 8000, true},
		{"gpt-4.1", 8000, true}, {"gpt-4-1106-preview", 4000, true}, {"gpt-4", 4000, true}, {"o1", 8000, true}, {"o1-preview", 8000, true},
		{"o3", 64000, true}, {"o3-mini", 1000, true}, {"o4-mini-high", 4000, true},
		{"gpt-5", 128000, true}, {"gpt-5-mini-2025-08-07", 16000, true}, {"gpt-5-nano", 4000, true}, {"gpt-5.2", 64000, true},
		{"claude-3-5-sonnet-20241022", 4000, true}, {"claude-3.5-sonnet", 4000, true}, {"anthropic/claude-3.7-sonnet:thinking", 16000, true},
		{"claude-sonnet-4-20250514", 2000, true}, {"claude-opus-4", 8000, true}, {"claude-opus-4-5", 64000, true}, {"claude-sonnet-4.5", 64000, true},
		{"gemini-1.5-pro", 4000, true}, {"models/gemini-2.0-flash-001", 4000, true}, {"gemini-2.5-flash", 16000, true}, {"gemini-2.5-pro", 128000, true},
		{"Gemini-3-Pro", 64000, true}, {"google/gemini-3-pro-preview", 64000, true}, {"gemini-3-flash-preview", 8000, true},
		{"kimi-k2-0905-preview", 8000, true}, {"moonshotai/kimi-k2:free", 8000, true}, {"kimi-k2.5", 64000, true},
		{"deepseek-v3", 4000, true}, {"deepseek-chat", 64000, true}, {"deepseek-r1:14b", 16000, true}, {"deepseek-reasoner", 64000, true},
		{"Qwen/Qwen3-235B-A22B", 4000, true}, {"qwen3:235b", 4000, true}, {"qwen3-235b-a22b-thinking-2507", 16000, true}, {"qwen3:32b", 8000, true},
		{"llama3.1:70b", 4000, true}, {"llama3", 4000, true}, {"llama3:8b", 4000, true}, {"meta-llama/Meta-Llama-3.1-70B-Instruct", 4000, true},
		{"meta-llama/llama-4-maverick", 4000, true}, {"llama4:scout", 1000, true}, {"mistral-large-2411", 4000, true},
		{"zai/glm-4.5", 4000, true}, {"MiniMax-M1-80k", 4000, true}, {"grok-4-0709", 128000, true}, {"grok-4-fast", 32000, true},
		// Provider prefixes, tags, dates of snapshots, letter case.
		{"openai/gpt-4.1", 8000, true}, {"OPENROUTER/OpenAI/GPT-4.1", 8000, true}, {"gpt-4.1-2025-04-14", 8000, true}, {"gpt-4-0613", 4000, true},
		{"us.anthropic.claude-3-5-sonnet-20241022-v2:0", 4000, true}, {"claude-3-5-sonnet@20240620", 4000, true}, {"meta.llama3-1-8b-instruct-v1:0", 1000, true},
		{"accounts/fireworks/models/deepseek-r1", 16000, true}, {"deepseek/deepseek-chat-v3-0324:free", 4000, true}, {"openai/o3:online", 64000, true},
		{"gemini-2.5-pro-preview-06-05", 128000, true}, {"qwen2.5-coder", UnknownEAS, false},
		{"nobody/heard-of-it", UnknownEAS, false}, {"", UnknownEAS, false}, {"gpt", UnknownEAS, false},
	} {
		s := table.Lookup(tt.model)
		if s.EAS != tt.eas || s.Known != tt.known || s.Model != tt.model {
			t.Errorf("Lookup(%q): EAS %d, known %v by %q; want %d, %v", tt.model, s.EAS, s.Known, s.Pattern,
				tt.eas, tt.known)
		}
		if !tokens.IsEncoding(s.Encoding) || s.Source == "" ||
			s.Known && (s.Advertised < s.EAS || s.Origin == "" || s.Updated == "") {
			t.Errorf("Lookup(%q) is incomplete: %+v", tt.model, s)
		}
	}
	if s := table.Lookup("gemini-3-pro"); s.Source != "the owner's example" {
		t.Errorf("gemini-3-pro: source %q", s.Source)
	}
}

// TestNewerVersions: a version that no row covers takes its newest sibling's row or
// the default of its vendor's newest models, never what an older version was
// measured at, and the source says so.
func TestNewerVersions(t *testing.T) {
	table := builtin(t)
	for _, tt := range []struct {
		model, pattern string
		said           bool
	}{
		{"claude-opus-4-7", "claude-{sonnet,opus,fable}-{4.6,4-6,4.7,4-7,4.8,4-8,5}*", false},
		{"claude-opus-4-8-20260601", "claude-{sonnet,opus,fable}-{4.6,4-6,4.7,4-7,4.8,4-8,5}*", false},
		{"anthropic/claude-opus-4.9", "claude-{sonnet,opus,fable}-{4.6,4-6,4.7,4-7,4.8,4-8,5}*", true},
		{"claude-haiku-4-9", "claude-{sonnet,opus,haiku}-{4.1,4-1,4.5,4-5}*", true},
		{"claude-sonnet-6", "claude-{sonnet,opus,fable}-{4.6,4-6,4.7,4-7,4.8,4-8,5}*", true},
		{"claude-saga-6", "claude-{sonnet,opus,fable}-{4.6,4-6,4.7,4-7,4.8,4-8,5}*", true},
		{"kimi-k2.6", "kimi-k2.5*", true}, {"kimi-k2-0905-preview", "kimi-k2*", false}, {"kimi-k4", "kimi-k3*", true},
		{"qwen3-coder-480b-a35b-instruct", "qwen{-,}3-coder*", false}, {"qwen4", "qwen{-,}3.*", true},
		{"gpt-6-astra", "gpt-5.*", true}, {"gpt-5.9", "gpt-5.*", false},
		{"grok-4-1-fast", "grok-4.*", true}, {"grok-4.7", "grok-4.*", false}, {"grok-4-0709", "grok-4*", false},
		{"glm-4.5-air", "glm-4.5*", false}, {"glm-6", "glm-5.*", true}, {"deepseek-v5-pro", "deepseek-{v4,chat,reasoner}*", true},
		{"claude-fable-5", "claude-{sonnet,opus,fable}-{4.6,4-6,4.7,4-7,4.8,4-8,5}*", false}, {"claude-3-opus-20240229", "", false}, {"qwen2.5-coder", "", false},
		// No default: the newest sibling's, and not an older default.
		{"llama-5", "{meta-,}llama{-,}4*", true}, {"meta-llama/Llama-5-70B", "{meta-,}llama{-,}4*", true}, {"meta-llama-5", "{meta-,}llama{-,}4*", true},
		{"llama-4.5", "{meta-,}llama{-,}4*", true}, {"llama-3.4-70b", "{meta-,}llama{-,}{3.1,3.2,3.3,3-1-,3-2-,3-3-}*", true},
		{"gemma-4-26b-a4b-it", "gemma{-,}3*", true}, {"jamba-1.6", "*jamba-1.5*", true},
		// Measured by a pattern without a version.
		{"mistral-large-9", "mistral-large{,-3*,-2512*}", true}, {"mistral-large-latest", "mistral-large{,-3*,-2512*}", false},
		{"mistral-large-2610", "mistral-large{,-3*,-2512*}", false}, {"command-r-9", "{c4ai-,}command-r*", true}, {"command-r-plus-08-2024", "{c4ai-,}command-r*", false},
		{"gpt-oss-300b", "gpt-oss*", false}, {"gpt-oss:120b", "gpt-oss{,-120b*}", false},
		// Of its own tier.
		{"gemini-2.6-flash", "gemini-2.5-flash*", true}, {"gemini-2.6-flash-lite", "gemini-2.5-flash-lite*", true}, {"gemini-2.6-pro", "gemini-2.5-pro*", true},
		{"o5", "o3*", true}, {"o5-mini", "o4-mini*", true}, {"gpt-7-mini", "gpt-5.{4,5,6}-{mini,nano}*", true}, {"grok-5-mini", "grok-4.*", true},
	} {
		s := table.Lookup(tt.model)
		if s.Pattern != tt.pattern || strings.HasPrefix(s.Source, "no row for this version") != tt.said {
			t.Errorf("Lookup(%q): by %q, %s; want %q, said %v", tt.model, s.Pattern, s.Source, tt.pattern, tt.said)
		}
		if tt.said && s.Confidence != ConfidenceNone {
			t.Errorf("Lookup(%q): confidence %s", tt.model, s.Confidence)
		}
	}
	for _, r := range table.Rows() {
		for _, name := range Names(r.Pattern) {
			if s := table.Lookup(name + "-90"); r.Confidence != ConfidenceNone && s.Confidence != ConfidenceNone &&
				!inside(name) {
				t.Errorf("Lookup(%q): by %q with confidence %s", s.Model, s.Pattern, s.Confidence)
			}
		}
	}
}

// inside reports whether a model name has its version before its last word.
func inside(name string) bool {
	_, version := modelVersion(name)
	_, appended := modelVersion(name + "-90")
	return slices.Equal(version, appended)
}

// TestEncodings: where a model's own encoding is public, its row must use it.
func TestEncodings(t *testing.T) {
	for _, r := range builtin(t).Rows() {
		for _, g := range r.globs {
			name := strings.TrimSuffix(g.pattern, "*")
			if tokens.Exact(name) && tokens.EncodingFor(name) != r.Encoding {
				t.Errorf("row %q counts in %s, the model's own is %s", r.Pattern, r.Encoding, tokens.EncodingFor(name))
			}
		}
	}
}

func row(pattern, eas string) string {
	return "  - {pattern: \"" + pattern + "\", window: 100000, eas: " + eas +
		", encoding: o200k_base, confidence: low, source: test, updated: 2026-01-02, by: test}\n"
}

func TestOverlays(t *testing.T) {
	user := Overlay{
		Name: "user/eas.yaml",
		Data: []byte("version: 1\nrows:\n" + row("gpt-4o", "5000") + row("my-model*", "3_000")),
	}
	project := Overlay{
		Name: "project/eas.yaml",
		Data: []byte(
			"version: 1\nrows:\n" + row("my-model*", "2000") + row("MY-MODEL-X", "7000") + row("kimi-k2*", "99")),
	}
	table := builtin(t, user, Overlay{Name: "empty", Data: nil}, Overlay{Name: "comment", Data: []byte("# nothing\n")},
		Overlay{Name: "no rows", Data: []byte("version: 1\nrows:\n")}, project)
	for model, want := range map[string]int{"gpt-4o": 5000, "gpt-4o-2024-08-06": 5000, "openai/gpt-4o:free": 5000, "gpt-4o-audio": 8000, "my-model-y": 2000, "my-model-x": 7000, "kimi-k2-0905": 99, "kimi-k2.5": 64000} {
		if s := table.Lookup(model); s.EAS != want {
			t.Errorf("Lookup(%q).EAS = %d by %q of %s, want %d", model, s.EAS, s.Pattern, s.Origin, want)
		}
	}
	if s := table.Lookup("my-model"); s.Origin != "project/eas.yaml" {
		t.Errorf("my-model comes from %q", s.Origin)
	}
	foreign := Overlay{
		Name: "foreign",
		Data: []byte("version: 1\nx-team: [a, b]\nrows:\n" + strings.Replace(row("x", "10"), "by: test",
			"by: test, x-why: mine", 1)),
	}
	if s := builtin(t, foreign).Lookup("x"); s.EAS != 10 {
		t.Errorf("fields of one's own are in the way: %+v", s)
	}
	// as specific as the base's row
	equal := Overlay{Name: "equal", Data: []byte("version: 1\nrows:\n" + row("gpt-4.1{*,}", "77"))}
	if s := builtin(t, equal).Lookup("gpt-4.1"); s.EAS != 77 {
		t.Errorf("the base's row wins over an equally specific overlay: %+v", s)
	}
}

// TestLowers: rows that no user approved make spans and windows smaller, and nothing else.
func TestLowers(t *testing.T) {
	user := Overlay{Name: "user", Data: []byte("version: 1\nrows:\n" + row("mine", "9000") + row("same", "9000"))}
	project := Overlay{
		Name: "project", Lowers: true,
		Data: []byte("version: 1\nrows:\n" + row("mine", "2000") + row("gpt-4o", "90000") + row("same", "9000") +
			strings.ReplaceAll(row("new", "30000"), "o200k", "cl100k")),
	}
	table := builtin(t, user, project)
	base := builtin(t, user)
	if s := table.Lookup("mine"); s.EAS != 2000 || s.Origin != "project" || !s.Known || s.Ignored != 0 {
		t.Errorf("a smaller span does not count: %+v", s)
	}
	if s := table.Lookup("same"); s.EAS != 9000 || s.Ignored != 0 || s.Origin != "user" {
		t.Errorf("an equal span is one that was ignored: %+v", s)
	}
	for model, ignored := range map[string]int{"gpt-4o": 90000, "new": 30000} {
		got, want := table.Lookup(model), base.Lookup(model)
		if model == "gpt-4o" && got.Advertised >= want.Advertised {
			t.Errorf("%s: a smaller window does not count: %+v", model, got)
		}
		if want.Advertised, want.Ignored = got.Advertised, ignored; got != want {
			t.Errorf("%s: a larger span counts: %+v, want %+v", model, got, want)
		}
	}
	project.Lowers = false
	if s := builtin(t, user, project).Lookup("gpt-4o"); s.EAS != 90000 {
		t.Errorf("an approved span does not count: %+v", s)
	}
}

func TestWrongTables(t *testing.T) {
	good := row("x", "10")
	for _, tt := range []struct {
		name, yaml string
		line       int
		what       string
	}{
		{"eas of zero", row("x", "0"), 3, "it must be 1 to"},
		{"negative eas", row("x", "-5"), 3, "it must be 1 to"},
		{"eas over the window", row("x", "100001"), 3, "larger than the window"},
		{"eas not a number", row("x", "8k"), 3, "where a whole number is wanted"},
		{"eas with a fraction", row("x", "8.5"), 3, "where a whole number is wanted"},
		{"huge window", strings.Replace(good, "100000", "99999999999", 1), 3, "it must be 1 to"},
		{"unknown encoding", strings.Replace(good, "o200k_base", "o300k", 1), 3, "unknown encoding"},
		{"unknown confidence", strings.Replace(good, "low", "sure", 1), 3, "unknown confidence"},
		{"bad date", strings.Replace(good, "2026-01-02", "yesterday", 1), 3, "not a date"},
		{"no source", strings.Replace(good, "source: test, ", "", 1), 3, "no source"},
		{"empty source", strings.Replace(good, "source: test", "source: ''", 1), 3, "no source"},
		{"list for a value", strings.Replace(good, "source: test", "source: [a]", 1), 3, "a list where a text"},
		{"unknown field", strings.Replace(good, "by: test", "by: test, colour: red", 1), 3, "unknown field"},
		{"field twice", strings.Replace(good, "by: test", "by: test, by: me", 1), 3, "twice"},
		{"pattern twice", good + good, 4, "is in line 3 already"},
		{"pattern with a space", row("a b", "10"), 3, "bad pattern"},
		{"open brace", row("a{b", "10"), 3, "bad pattern"},
		{"nested braces", row("a{b{c}}", "10"), 3, "bad pattern"},
		{"closing brace", row("a}b", "10"), 3, "bad pattern"},
		{"closing brace first", row("a}b{c,d}", "10"), 3, "bad pattern"},
		{"long pattern", row(strings.Repeat("x", maxPatternBytes+1), "10"), 3, "201 bytes"},
		{"class in a pattern", row("a[b]", "10"), 3, "bad pattern"},
		{"too many alternatives", row("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "10"), 3, "alternatives"},
		{"second line wrong", good + row("y", "0"), 4, "it must be 1 to"},
		{"not a row", "  - just text\n", 3, "where a group of keys with values is wanted"},
	} {
		_, err := LoadTable(assets.EAS, Overlay{Name: "my/eas.yaml", Data: []byte("version: 1\nrows:\n" + tt.yaml)})
		checkTableError(t, tt.name, err, tt.line, tt.what)
	}
	for _, tt := range []struct {
		name, yaml string
		line       int
		what       string
	}{
		{"not YAML", "version: 1\nrows: [\n", 0, "not YAML"},
		{"tab", "version: 1\n\trows:\n", 0, "not YAML"},
		{"other version", "version: 2\nrows: []\n", 1, "version"},
		{"no version", "rows: []\n", 1, "version"},
		{"unknown field", "version: 1\ncolour: red\nrows: []\n", 1, "unknown field"},
		{"too many rows", "version: 1\nrows:\n" + many(maxTableRows+1), 1, "the limit is"},
		{"a list", "- 1\n", 1, "where a group of keys with values is wanted"},
		{"rows is text", "version: 1\nrows: x\n", 2, "where a list is wanted"},
		{"two documents", "version: 1\n---\nversion: 1\n", 0, "found multiple"},
		{"too large", "# " + strings.Repeat("x", maxTableBytes), 1, "the limit is"},
	} {
		_, err := LoadTable(assets.EAS, Overlay{Name: "my/eas.yaml", Data: []byte(tt.yaml)})
		checkTableError(t, tt.name, err, tt.line, tt.what)
	}
	if _, err := LoadTable([]byte("rows: 1")); err == nil || !strings.HasPrefix(err.Error(), "eas.yaml:1: ") {
		t.Errorf("a broken base table: %v", err)
	}
}

func checkTableError(t *testing.T, name string, err error, line int, what string) {
	t.Helper()
	var e *TableError
	switch {
	case !errors.As(err, &e):
		t.Errorf("%s: %v, want a *TableError", name, err)
	case e.File != "my/eas.yaml" || line > 0 && e.Line != line || !strings.Contains(e.What, what) || e.Remedy == "":
		t.Errorf("%s: %v, want line %d and %q", name, err, line, what)
	case strings.ContainsAny(e.Error(), "\n\r"):
		t.Errorf("%s: the error has more than one line: %q", name, e.Error())
	}
}

// FuzzLoadTable: any bytes give a table or one clear line, and what is loaded
// keeps the table's promises.
func FuzzLoadTable(f *testing.F) {
	f.Add([]byte("version: 1\nrows:\n" + row("gpt-{4o,5}*", "10")))
	f.Add([]byte("version: 1\nrows: [{}]\n"))
	f.Add([]byte("version: 1\nrows: &a [*a]\n"))
	f.Add([]byte("%YAML 1.2\n---\n"))
	f.Add([]byte("? [a]\n: b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := LoadTable([]byte("version: 1\n"), Overlay{Name: "f", Data: data})
		var e *TableError
		if err != nil {
			if !errors.As(err, &e) || e.Line < 1 ||
				e.Line > 1+bytes.Count(data, []byte("\n"))+bytes.Count(data, []byte("\r"))+
					bytes.Count(data, []byte("\xc2\x85"))+bytes.Count(data, []byte("\xe2\x80"))+1 {
				t.Fatalf("error %v", err)
			}
			return
		}
		for _, r := range table.Rows() {
			if r.EAS <= 0 || r.EAS > r.Window || !tokens.IsEncoding(r.Encoding) || r.Source == "" || len(r.globs) == 0 {
				t.Fatalf("row %+v", r)
			}
		}
		if s := table.Lookup("gpt-4o"); s.EAS <= 0 {
			t.Fatalf("span %+v", s)
		}
	})
}

// many returns n rows.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(row(fmt.Sprint("m", i), "10"))
	}
	return b.String()
}

// TestFirstFault: of two wrong numbers in a row, each run names the same one.
func TestFirstFault(t *testing.T) {
	text := "version: 1\nrows:\n" + strings.Replace(row("x", "0"), "100000", "0", 1)
	for range 50 {
		_, err := LoadTable([]byte("version: 1\n"), Overlay{Name: "my/eas.yaml", Data: []byte(text)})
		if err == nil || !strings.Contains(err.Error(), "window is 0") {
			t.Fatal(err)
		}
	}
}

// TestTableBounds: what is just as large as it may be is read.
func TestTableBounds(t *testing.T) {
	head, large := "version: 1\nrows:\n", strings.Replace(row("x", "10"), "100000", fmt.Sprint(maxRowTokens), 1)
	for name, yaml := range map[string]string{
		"a file":       head + row("x", "10") + "#" + strings.Repeat("x", maxTableBytes-len(head+row("x", "10"))-1),
		"rows":         head + many(maxTableRows),
		"a pattern":    head + row(strings.Repeat("x", maxPatternBytes), "10"),
		"alternatives": head + row("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", "10"),
		"a window":     head + large,
	} {
		if table, err := LoadTable([]byte("version: 1\n"), Overlay{Name: "my/eas.yaml",
			Data: []byte(yaml)}); err != nil || len(table.Rows()) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s := (&TableError{File: "f", What: "w", Remedy: "r"}).Error(); s != "f: w; r" {
		t.Error(s)
	}
}

// TestLowerWindows: of two windows the smaller one that is known counts.
func TestLowerWindows(t *testing.T) {
	window := func(pattern, n string) string { return strings.Replace(row(pattern, "1000"), "100000", n, 1) }
	user := Overlay{Name: "user", Data: []byte("version: 1\nrows:\n" + window("a", "50000") + window("b", "50000") +
		window("c", "50000"))}
	project := Overlay{Name: "project", Lowers: true, Data: []byte("version: 1\nrows:\n" + window("a", "40000") +
		window("b", "60000") + window("new", "60000"))}
	table := builtin(t, user, project)
	for model, want := range map[string]int{"a": 40000, "b": 50000, "c": 50000, "new": 60000, "/a": 40000, "other": 0} {
		if s := table.Lookup(model); s.Advertised != want {
			t.Errorf("%s: a window of %d, want %d", model, s.Advertised, want)
		}
	}
}

// TestZeroVersion: a version that ends in zeros is the version without them, and not a newer one.
func TestZeroVersion(t *testing.T) {
	table, err := LoadTable([]byte("version: 1\nrows:\n" + row("fam-2*", "10")))
	if err != nil {
		t.Fatal(err)
	}
	for model, covered := range map[string]bool{"fam-2": true, "fam-2.0": true, "fam-2.1": false} {
		s := table.Lookup(model)
		if strings.HasPrefix(s.Source, "no row for this version") == covered || s.Pattern != "fam-2*" {
			t.Errorf("%s: %+v", model, s)
		}
	}
}

// TestVendorDefault: a model of a family without a row takes its vendor's default of the same or an earlier major
// version.
func TestVendorDefault(t *testing.T) {
	data := "version: 1\nrows:\n" + strings.Replace(row("fam-pro-3*", "10"), "confidence: low", "confidence: none", 1)
	table, err := LoadTable([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]bool{"fam-lite-3": true, "fam-lite-4": true, "fam-lite-2": false,
		"other-lite-3": false, "fam-lite": false} {
		if s := table.Lookup(model); s.Known != want || want &&
			!strings.Contains(s.Source, "the default of its vendor's newest models") {
			t.Errorf("%s: %+v", model, s)
		}
	}
}
