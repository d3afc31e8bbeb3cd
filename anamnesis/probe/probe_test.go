package probe_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/probe"
	"anamnesis/anamnesis/probe/probetest"
	"anamnesis/opstream/op"
)

// words is a token counter for tests whose subject is not counting.
func words(s string) int { return len(strings.Fields(s)) }

// TestPrompt compares what is sent with its golden file; UPDATE_GOLDEN=1 rewrites it.
func TestPrompt(t *testing.T) {
	it := probe.Build(7, 400, 3, words)
	got := fmt.Sprintf("== system\n%s\n== text\n%s\n== answers %s\n", it.System, it.Text, it.Answers)
	const path = "testdata/prompt.txt"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		t.Errorf("%v: %s differs; rewrite it with UPDATE_GOLDEN=1 and read the difference. Got:\n%s", err, path, got)
	}
}

// TestBuild checks that whoever reads a text can answer its questions, that the length is that
// asked for, that indexes give different texts and that what is told lies everywhere in them.
func TestBuild(t *testing.T) {
	m := probetest.Model{EAS: 1e9, Count: words}
	seen, first, second, full := make(map[string]bool), 0, 0, 0
	for i := range 40 {
		length := 700 + 100*i
		it := probe.Build(5, length, i, words)
		if again := probe.Build(5, length, i, words); again.Text != it.Text {
			t.Fatalf("text %d differs when it is built again", i)
		}
		if seen[it.Text] || it.Tokens > length || it.Tokens < length-40 {
			t.Errorf("text %d has %d tokens of %d, or was built before", i, it.Tokens, length)
		}
		if seen[it.Text] = true; it.Tokens == length {
			full++
		}
		c, err := m.Complete(t.Context(), it.System, it.Text)
		if err != nil || it.Correct(c.Text) != len(it.Answers) {
			t.Errorf("text %d: %v: %q, want %q", i, err, c.Text, it.Answers)
		}
		body, _, _ := strings.Cut(it.Text, "</text>")
		for _, name := range it.Answers {
			if strings.Index(body, name) < len(body)/2 {
				first++
			} else {
				second++
			}
		}
	}
	if full == 0 {
		t.Error("no text has as many tokens as it may")
	}
	if first < 55 || second < 55 { // of 160
		t.Errorf("%d people in the first halves of the texts, %d in the second", first, second)
	}
}

func TestCorrect(t *testing.T) {
	it := probe.Build(1, 1000, 0, words)
	a := it.Answers
	other := probe.Build(1, 1000, 0, words).Answers[1] // the text tells of them, too
	for reply, want := range map[string]int{
		"":                      0,
		a[0]:                    0,
		"ANSWER 1: " + a[0]:     1,
		"**Answer 1**: " + a[0]: 1,
		"answer 1 : " + strings.ToUpper(a[0]) + ".":       1,
		"ANSWER 1: " + a[0] + "na":                        0,
		"ANSWER 1: " + a[0] + " or " + other:              0,
		"ANSWER 2: " + a[0]:                               0,
		"ANSWER 9: " + a[0]:                               0,
		"ANSWER 5: " + a[0]:                               0,
		"ANSWER 0: " + a[0]:                               0,
		"ANSWER 1: " + other + "\nNo.\nANSWER 1: " + a[0]: 1,
		"ANSWER 1: " + a[0] + " ANSWER 2: " + a[1] + "\nANSWER 3: " + a[2] + "\nANSWER 4: " + a[3]: 4,
		"ANSWER 1: " + a[0] + "\nThat is not " + other:                                             1,
	} {
		if got := it.Correct(reply); got != want {
			t.Errorf("%q: %d right, want %d", reply, got, want)
		}
	}
}

// scripted answers as many of the four questions as it says for a length, from the solved text.
type scripted struct {
	right func(tokens int) int
	err   func(tokens int) error
	mu    sync.Mutex
	asked []int // tokens of the prompts
}

func (m *scripted) Complete(ctx context.Context, system, text string) (consult.Completion, error) {
	n := words(system) + words(text)
	m.mu.Lock()
	m.asked = append(m.asked, n)
	m.mu.Unlock()
	if m.err != nil {
		if err := m.err(n); err != nil {
			return consult.Completion{}, fmt.Errorf("told: %w", err)
		}
	}
	c, err := probetest.Model{EAS: 1e9, Count: words}.Complete(ctx, system, text)
	lines := strings.SplitAfter(c.Text, "\n")
	return consult.Completion{Text: strings.Join(lines[:m.right(n)], ""), Usage: op.Usage{Prompt: n}}, err
}

func below(limit, over int) func(int) int {
	return func(tokens int) int {
		if tokens <= limit {
			return 4
		}
		return over
	}
}

// TestRun: the longest of four lengths that keeps 85% of the short one, and no longer text is
// asked about than the first that does not.
func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name         string
		model        *scripted
		o            probe.Options
		eas, failsAt int
		lengths      []int
		source       string
	}{
		{"all lengths", &scripted{right: below(64_000, 0)}, probe.Options{}, 64_000, 0, []int{1000, 4000, 16_000, 64_000},
			"probe: at least that: 48 of 48 right at 64000 tokens, 48 of 48 at 1000, no longer text was asked; seed 0"},
		{"three of four are too few", &scripted{right: below(4000, 3)}, probe.Options{}, 4000, 16_000, []int{1000, 4000, 16_000},
			"probe: 48 of 48 right at 4000 tokens, 48 of 48 at 1000, 36 of 48 right at 16000 tokens; seed 0"},
		{"a model that is not perfect over short texts either", &scripted{right: func(int) int { return 3 }}, probe.Options{Longest: 8000}, 8000, 0, []int{1000, 2000, 8000},
			"probe: at least that: 36 of 48 right at 8000 tokens, 36 of 48 at 1000, no longer text was asked; seed 0"},
		{"a sixteenth that is the short text", &scripted{right: below(64_000, 0)}, probe.Options{Longest: 16_000},
			16_000, 0, []int{1000, 4000, 16_000},
			"probe: at least that: 48 of 48 right at 16000 tokens, 48 of 48 at 1000, no longer text was asked; seed 0"},
		{"only the short text", &scripted{right: below(1000, 0)}, probe.Options{Longest: 3000, Seed: 2}, 1000, 3000, []int{1000, 3000},
			"probe: 48 of 48 right at 1000 tokens, 48 of 48 at 1000, 0 of 48 right at 3000 tokens; seed 2"},
		{"nothing longer than the window with a reply", &scripted{right: below(64_000, 0)}, probe.Options{Window: 9000, ReplyTokens: 1000}, 8000, 0, []int{1000, 2000, 8000},
			"probe: at least that: 48 of 48 right at 8000 tokens, 48 of 48 at 1000, no longer text was asked; seed 0"},
		{"the provider refuses a length", &scripted{right: below(64_000, 0), err: func(n int) error {
			if n > 10_000 {
				return probe.ErrTooLong
			}
			return nil
		}}, probe.Options{}, 4000, 16_000, []int{1000, 4000, 16_000},
			"probe: 48 of 48 right at 4000 tokens, 48 of 48 at 1000, refused as too long at 16000; seed 0"},
		{"replies that end at their limit are wrong", &scripted{right: below(64_000, 0), err: func(n int) error {
			if n > 3000 {
				return probe.ErrCut
			}
			return nil
		}}, probe.Options{}, 1000, 4000, []int{1000, 4000},
			"probe: 48 of 48 right at 1000 tokens, 48 of 48 at 1000, 0 of 48 right at 4000 tokens; seed 0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var last probe.Progress
			tt.o.Count, tt.o.Progress = words, func(p probe.Progress) {
				if p.Done > p.Most || p.Right > p.Asked || p.Calls <= last.Calls {
					t.Errorf("progress %+v after %+v", p, last)
				}
				last = p
			}
			calls, tokens := tt.o.Cost()
			res, err := probe.Run(t.Context(), tt.model, tt.o)
			if err != nil || !res.Done || res.EAS != tt.eas || res.FailsAt != tt.failsAt {
				t.Fatalf("%v: eas %d, fails at %d, done %v", err, res.EAS, res.FailsAt, res.Done)
			}
			if got := lengthsOf(res.Tests); !slices.Equal(got, tt.lengths) {
				t.Errorf("lengths %d, want %d", got, tt.lengths)
			}
			if res.Source() != tt.source {
				t.Errorf("source %q, want %q", res.Source(), tt.source)
			}
			if res.Calls > calls || res.Tokens > tokens {
				t.Errorf("%d texts and %d tokens, announced were %d and %d", res.Calls, res.Tokens, calls, tokens)
			}
			res.Model = "m"
			row := res.Row(attention.EAS{Advertised: 128_000, Encoding: "o200k_base"},
				time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
			if _, err := attention.PutRow(attention.Overlay{Name: "o"}, row); err != nil || row.EAS != tt.eas ||
				row.By != "probe" {
				t.Errorf("the proposal is no row: %v: %+v", err, row)
			}
		})
	}
}

func lengthsOf(tests []probe.Test) (out []int) {
	for _, test := range tests {
		out = append(out, test.Length)
	}
	return out
}

// TestStopped: a run that ends early has the lengths it measured.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, want := range []error{errors.New("503"), context.Canceled} {
		m := &scripted{right: below(64_000, 0), err: func(n int) error {
			if n < 10_000 {
				return nil
			}
			if want == context.Canceled {
				cancel()
			}
			return want
		}}
		res, err := probe.Run(ctx, m, probe.Options{Count: words})
		if !errors.Is(err, want) || res.Done || res.Stopped == "" ||
			!slices.Equal(lengthsOf(res.Tests), []int{1000, 4000}) {
			t.Fatalf("%v: %v: %+v", want, err, res)
		}
	}
}

func TestNoBase(t *testing.T) {
	res, err := probe.Run(t.Context(), &scripted{right: func(int) int { return 2 }}, probe.Options{Count: words})
	if !errors.Is(err, probe.ErrNoBase) || res.Done || res.Calls != 12 || !strings.Contains(err.Error(), "24 of 48") {
		t.Errorf("%v: %+v", err, res)
	}
}
