package tokens

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	"pgregory.net/rapid"
)

func counter(t testing.TB, name string) *Counter {
	t.Helper()
	c, err := ForEncoding(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestForEncoding(t *testing.T) {
	for _, name := range Encodings() {
		c := counter(t, name)
		if c.Encoding() != name || !IsEncoding(name) {
			t.Errorf("ForEncoding(%q) gives %q, Known %v", name, c.Encoding(), IsEncoding(name))
		}
		if got := c.Count("hello world"); got != 2 {
			t.Errorf("%s: Count(hello world) = %d, want 2", name, got)
		}
	}
	if _, err := ForEncoding("gpt-4o"); err == nil || !strings.Contains(err.Error(), `unknown encoding "gpt-4o"`) {
		t.Errorf("ForEncoding(gpt-4o): %v", err)
	}
}

var nightly = flag.Bool("nightly", false, "test all encodings")

// tested are the encodings of the slow tests: all of them in the nightly run, in CI one with
// the oldest pattern and the newest.
func tested() []string {
	switch {
	case *nightly:
		return Encodings()
	case testing.Short(), os.Getenv("ANAMNESIS_CI") == "":
		return []string{"r50k_base"}
	}
	return []string{"r50k_base", "o200k_base"}
}

// TestAgreesWithTokenizer compares with the plain tokenizer on text whose
// runs are all short: there the cuts must not be seen at all.
func TestAgreesWithTokenizer(t *testing.T) {
	texts := []string{
		"", "a", " ", "\n", "<|endoftext|>", "don't  stop\n\n  now\t\t", "日本語のテキスト。你好，世界！", "naïve café ÄÖÜ",
		"\xff\xfe bytes", "a/b/c\r\n/d\n", "e\u0301e\u0301 x",
	}
	sources, _ := filepath.Glob("*.go")
	for _, path := range sources {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Long enough to be counted in several chunks.
		texts = append(texts, strings.Repeat(string(data), 1+3*chunkBytes/len(data)))
	}
	for _, name := range tested() {
		c := counter(t, name)
		plain, err := tiktoken.GetEncoding(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if got, want := c.Count(text), len(plain.EncodeOrdinary(text)); got != want {
				t.Errorf("%s: Count(%.40q…, %d bytes) = %d, the tokenizer says %d", name, text, len(text), got, want)
			}
		}
	}
}

// TestLongRuns: what is quadratic in the tokenizer is cut into short pieces
// here. Without the cuts each of these takes seconds, and all of them together
// longer than a test may; BenchmarkCount shows the ratio.
func TestLongRuns(t *testing.T) {
	for name, text := range map[string]string{
		"letters":   strings.Repeat("a", 100_000),
		"digits":    strings.Repeat("7", 100_000),
		"spaces":    strings.Repeat(" ", 100_000),
		"dashes":    strings.Repeat("-", 100_000),
		"marks":     strings.Repeat("e\u0301", 50_000),
		"punctuate": strings.Repeat("!\u0301", 50_000),
		"slashes":   "!" + strings.Repeat("/\n", 50_000),
		"binary":    strings.Repeat("\x00\xff", 50_000),
		"chinese":   strings.Repeat("中", 100_000),
	} {
		for _, enc := range tested() {
			c := counter(t, enc)
			n := c.Count(text)
			for rest := text; rest != ""; {
				cut := nextCut(rest)
				if runes := utf8.RuneCountInString(rest[:cut]); runes > RunLimitRunes+1 {
					t.Fatalf("%s: a piece of %d characters goes to the tokenizer whole", name, runes)
				}
				rest = rest[cut:]
			}
			if n == 0 || n > len(text) {
				t.Errorf("%s in %s: %d tokens of %d bytes", name, enc, n, len(text))
			}
		}
	}
}

func TestNextCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringN(1, 40, -1).Draw(t, "text"), rapid.IntRange(1, 2000).Draw(t, "times"))
		total := 0
		for rest := text; rest != ""; {
			cut := nextCut(rest)
			if cut <= 0 || cut > len(rest) {
				t.Fatalf("nextCut gave %d of %d bytes", cut, len(rest))
			}
			total += cut
			rest = rest[cut:]
		}
		if total != len(text) {
			t.Fatalf("the parts have %d bytes, the text %d", total, len(text))
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	c := counter(t, "o200k_base")
	want := c.Count("the quick brown fox")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if got := c.Count("the quick brown fox"); got != want {
					t.Errorf("Count = %d, want %d", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestEncodingFor(t *testing.T) {
	for _, tt := range []struct {
		model, want string
		exact       bool
	}{
		{"gpt-4o", "o200k_base", true},
		{"openai/gpt-4o-mini", "o200k_base", true},
		{"GPT-4.1-nano", "o200k_base", true},
		{"gpt-5.2-codex", "o200k_base", true},
		{"gpt-4o2026", "o200k_base", true},
		{"o3-mini", "o200k_base", true},
		{"gpt-4-0613", "cl100k_base", true},
		{"gpt-3.5-turbo", "cl100k_base", true},
		{"text-davinci-003", "p50k_base", true},
		{"script:demo/gpt-4o.yaml", "r50k_base", false},
		{"claude-sonnet-4", Fallback, false},
		{"qwen3:235b", Fallback, false},
		{"o1000", Fallback, false},
		{"", Fallback, false},
	} {
		if got := EncodingFor(tt.model); got != tt.want {
			t.Errorf("EncodingFor(%q) = %q, want %q", tt.model, got, tt.want)
		}
		if got := Exact(tt.model); got != tt.exact {
			t.Errorf("Exact(%q) = %v, want %v", tt.model, got, tt.exact)
		}
		if !IsEncoding(EncodingFor(tt.model)) {
			t.Errorf("EncodingFor(%q) is not an encoding", tt.model)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	c := counter(b, "o200k_base")
	data, err := os.ReadFile("tokens.go")
	if err != nil {
		b.Fatal(err)
	}
	text := string(data)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		c.Count(text)
	}
}

// TestHasPrefix: a family's name ends where its number does.
func TestHasPrefix(t *testing.T) {
	for _, tt := range []struct {
		name, prefix string
		want         bool
	}{
		{"o1", "o1", true}, {"o1-mini", "o1", true}, {"o1000", "o1", false}, {"o10", "o1", false}, {"o19", "o1", false}, {"o1:latest", "o1", true}, {"o1/x", "o1", true},
		{"gpt-4o", "gpt-4", true}, {"gpt-4.1", "gpt-4", true}, {"gpt-40", "gpt-4", false}, {"x0", "x0", true}, {"x01", "x0", false}, {"x9a", "x9", true}, {"x99", "x9", false},
		{"llama3", "llama", true}, {"llama0", "llama", true}, {"llama9", "llama", true}, {"a:1", "a:", true}, {"a/1", "a/", true}, {"llam", "llama", false}, {"", "o1", false},
	} {
		if got := hasPrefix(tt.name, tt.prefix); got != tt.want {
			t.Errorf("%s begins with %s: %v", tt.name, tt.prefix, got)
		}
	}
}

// TestCutPlaces: a text is cut within a long run of one class, and, once it is long, after a line's end that no space
// precedes and a letter or digit follows.
func TestCutPlaces(t *testing.T) {
	for name, s := range map[string]string{
		"letters": strings.Repeat("a", RunLimitRunes), "digits": strings.Repeat("1", RunLimitRunes),
		"marks": strings.Repeat("-", RunLimitRunes),
		"words": strings.Repeat("word ", RunLimitRunes), "mixed": strings.Repeat("a1", RunLimitRunes),
		"letters behind a mark": "-" + strings.Repeat("a", RunLimitRunes),
	} {
		if got := nextCut(s); got != len(s) {
			t.Errorf("%s are cut at %d of %d", name, got, len(s))
		}
	}
	for _, c := range []string{"a", "1", "-", " "} {
		if got := nextCut(strings.Repeat(c, RunLimitRunes+1)); got != RunLimitRunes {
			t.Errorf("a run of %q is cut at %d", c, got)
		}
	}
	for _, c := range []string{"/\n", "/\r", "\r\n"} { // a token of some encodings holds both
		if got := nextCut(strings.Repeat(c, RunLimitRunes)); got != RunLimitRunes {
			t.Errorf("a run of %q is cut at %d", c, got)
		}
	}
	line := func(n int) string { return strings.Repeat("word ", n)[:n-2] + ".\n" } // of n bytes
	for _, tt := range []struct {
		text string
		want int // 0: not cut
	}{
		{line(chunkBytes) + "a", chunkBytes}, {line(chunkBytes) + "1", chunkBytes}, {line(chunkBytes) + "-", 0},
		{line(chunkBytes) + "\na", 0},
		{line(chunkBytes-1) + "ab", 0}, {line(chunkBytes-1) + "a\nb", chunkBytes + 1},
		{line(chunkBytes)[:chunkBytes-2] + " \na", 0}, {line(chunkBytes-2) + "  a", 0},
	} {
		if got := nextCut(tt.text); got != tt.want && (tt.want != 0 || got != len(tt.text)) {
			t.Errorf("%q: cut at %d, want %d", tt.text[chunkBytes-4:], got, tt.want)
		}
	}
}

// TestEstimate: the estimate of a text is a token for every four bytes begun.
func TestEstimate(t *testing.T) {
	c, err := ForEncoding(Estimate)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"": 0, "a": 1, "abcd": 1, "abcde": 2, "äöü": 2} {
		if got := c.Count(text); got != want {
			t.Errorf("%q: %d tokens", text, got)
		}
	}
}
