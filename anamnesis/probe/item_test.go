package probe_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"anamnesis/anamnesis/probe"
	"anamnesis/anamnesis/probe/probetest"
	"anamnesis/anamnesis/tokens"
)

var (
	update  = flag.Bool("update", false, "write the golden files anew")
	nightly = flag.Bool("nightly", false, "run with the full counts")
)

// amount picks how much of something a test takes.
func amount(ci, full int) int {
	if *nightly {
		return full
	}
	return ci
}

// words is a token counter for tests whose subject is not counting.
func words(s string) int { return len(strings.Fields(s)) }

// TestPrompts: what is sent, one golden file a family.
func TestPrompts(t *testing.T) {
	for _, f := range probe.Families() {
		it := probe.Build(7, probe.Trial{Family: f, Length: 700, Index: 3}, words)
		got := fmt.Sprintf("== system\n%s\n== text\n%s\n== answer %s, decoys %v\n", it.System, it.Text, it.Answer, it.Decoys)
		path := filepath.Join("testdata", "golden", string(f)+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; run with -update and read the difference. Got:\n%s", path, got)
		}
	}
}

// TestItems: whoever reads a text can answer its question, no decoy is the
// answer, the length is kept, and each index gives another item.
func TestItems(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range probe.Families() {
		for i := range amount(6, 200) {
			for _, length := range []int{probe.MinLength, 2000} {
				trial := probe.Trial{Family: f, Length: length, Index: i}
				it := probe.Build(1, trial, words)
				if again := probe.Build(1, trial, words); again.Text != it.Text {
					t.Fatalf("%v: built twice, and the texts differ", trial)
				}
				if seen[it.Text] || strings.Contains(it.System+it.Text, "{{") {
					t.Fatalf("%v: the text is another item's, or a template is left in it:\n%s", trial, it.Text)
				}
				seen[it.Text] = true
				if it.Tokens > length || it.Tokens < length-max(60, length/50) {
					t.Errorf("%v: %d tokens", trial, it.Tokens)
				}
				answer, err := probetest.Solve(it.Text)
				if err != nil || !it.Right("ANSWER: "+answer) {
					t.Fatalf("%v: %v; read %q, want %q:\n%s", trial, err, answer, it.Answer, it.Text)
				}
				for _, d := range it.Decoys {
					if it.Right("ANSWER: "+d) || it.Right(it.Answer+" or "+d) {
						t.Errorf("%v: %q passes for %q", trial, d, it.Answer)
					}
				}
			}
		}
	}
}

// TestLatentSharesNoWord: between a clue and its question no word is shared
// but the little ones.
func TestLatentSharesNoWord(t *testing.T) {
	little := strings.Fields("who is a an the of in at to has")
	word := regexp.MustCompile(`[a-z]+`)
	for _, f := range probe.Facts() {
		clue := word.FindAllString(strings.ToLower(strings.ReplaceAll(f.Clue, "{{name}}", "")), -1)
		for _, w := range word.FindAllString(strings.ToLower(f.Question), -1) {
			for _, c := range clue {
				if w == c && !strings.Contains(" "+strings.Join(little, " ")+" ", " "+w+" ") {
					t.Errorf("%q and %q share %q", f.Clue, f.Question, w)
				}
			}
		}
	}
}

// TestExactLength: with a real tokenizer a prompt comes close to its length
// and never over it.
func TestExactLength(t *testing.T) {
	c, err := tokens.ForEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{1000, 8000} {
		for i, f := range probe.Families() {
			it := probe.Build(2, probe.Trial{Family: f, Length: length, Index: i}, c.Count)
			if it.Tokens > length || it.Tokens < length-max(60, length/200) {
				t.Errorf("%s: %d tokens, want just under %d", f, it.Tokens, length)
			}
		}
	}
}

func TestRight(t *testing.T) {
	it := probe.Item{Answer: "4837261", Decoys: []string{"1234567"}}
	for reply, want := range map[string]bool{
		"ANSWER: 4837261": true, "4837261": true, "**Answer:** 4,837,261.": true, "answer: 4 837 261": true, "The answer: 4.837.261": true,
		"First 1234567, no.\nANSWER: 4837261": true, "ANSWER: 1234567\nWait.\nANSWER: 4837261": true,
		"ANSWER: 4837261 or 1234567": false, "ANSWER: 1234567": false, "ANSWER: 48372610": false, "ANSWER: 14837261": false,
		"": false, "ANSWER:": false, "4837261\nANSWER: I am not sure": false,
	} {
		if it.Right(reply) != want {
			t.Errorf("Right(%q) = %v", reply, !want)
		}
	}
	named := probe.Item{Answer: "Kofi", Decoys: []string{"Anouk"}}
	for reply, want := range map[string]bool{"ANSWER: Kofi": true, "ANSWER: kofi.": true, "ANSWER: Kofiana": false, "ANSWER: Kofi, not Anouk": false} {
		if named.Right(reply) != want {
			t.Errorf("Right(%q) = %v", reply, !want)
		}
	}
}

// FuzzRight: no reply breaks the reading of it, and one that does not hold the
// answer is never right.
func FuzzRight(f *testing.F) {
	f.Add("ANSWER: amber-417")
	f.Add("answer\xff: 1,2,3")
	f.Fuzz(func(t *testing.T, reply string) {
		it := probe.Item{Answer: "amber-417", Decoys: []string{"linen-200"}}
		if it.Right(reply) && !strings.Contains(strings.ToLower(reply), "417") {
			t.Fatalf("%q is right", reply)
		}
	})
}
