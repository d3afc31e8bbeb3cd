package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// judged returns the line that the data set's judge prints for suggestions.
func judged(j *Judge, suggestions map[string][]string) string {
	var rows []row
	for _, q := range j.Asked {
		rows = append(rows, row{q: q, Verdict: j.Judge(q.ID, suggestions[q.ID])})
	}
	f := figures("eval", rows)
	var withWrong []row
	for _, r := range rows {
		if len(j.targets[r.q.ID].wrong) > 0 {
			withWrong = append(withWrong, r)
		}
	}
	return fmt.Sprintf("%-22s n=%d answered %.0f%%  hit@1 %.1f%%  hit@3 %.1f%%  hit@3|answered %.1f%%  harm@3 %.1f%% (of %d with a failing attempt: %.1f%%)",
		f.Arm, len(rows), 100*f.Answered, 100*f.Hit1, 100*f.Hit3,
		100*f.Right, 100*f.Harm3, len(withWrong), 100*share(withWrong, func(r row) bool { return r.Harm }))
}

// A small set made by hand; the expected line is what score.py prints for it.
func TestJudge(t *testing.T) {
	questions, err := readQuestions("testdata/questions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	suggestions := map[string][]string{}
	err = eachLine("testdata/suggestions.jsonl", func(line []byte) error {
		var s Answer
		err := json.Unmarshal(line, &s)
		suggestions[s.Question] = s.Shown
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = "eval                   n=7 answered 86%  hit@1 0.0%  hit@3 57.1%  hit@3|answered 66.7%  harm@3 42.9% (of 3 with a failing attempt: 100.0%)"
	if got := judged(NewJudge(questions), suggestions); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestAgreesWithScore compares this judge with score.py on the recorded
// repairs and on random suggestions.
func TestAgreesWithScore(t *testing.T) {
	data := os.Getenv("ANAMNESIS_BENCH_DATA")
	if data == "" && os.Getenv("ANAMNESIS_CI") == "" {
		t.Skip("NOT RUN: heavy; ANAMNESIS_BENCH_DATA=DIR runs it over DIR/runs, and .ci/run does")
	}
	dir := filepath.Join(cmp.Or(data, filepath.Join("..", "..", "..", "..", "..", "shared", "data")), "runs")
	names, err := Sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file := filepath.Join(dir, "questions", "dev_"+name+".jsonl.gz")
		questions, err := readQuestions(file)
		if err != nil {
			t.Fatal(err)
		}
		j := NewJudge(questions)
		for kind, suggest := range suggesters(questions) {
			t.Run(name+"/"+kind, func(t *testing.T) {
				all := map[string][]string{}
				var lines bytes.Buffer
				for _, q := range j.Asked {
					if all[q.ID] = suggest(q); len(all[q.ID]) > 0 {
						if err := json.NewEncoder(&lines).Encode(Answer{Question: q.ID, Shown: all[q.ID]}); err != nil {
							t.Fatal(err)
						}
					}
				}
				path := filepath.Join(t.TempDir(), "suggestions.jsonl")
				if err := os.WriteFile(path, lines.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
				out, err := exec.Command("python3", filepath.Join(dir, "score.py"), "eval", path, file).CombinedOutput()
				if err != nil {
					t.Fatalf("score.py: %v\n%s", err, out)
				}
				if got, want := judged(j, all), intervals.ReplaceAllString(strings.TrimSpace(string(out)), ""); got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
			})
		}
	}
}

// intervals are printed by score.py only.
var intervals = regexp.MustCompile(` \[repo CI [^]]*\]`)

func suggesters(questions []*Question) map[string]func(*Question) []string {
	rnd := rand.New(rand.NewPCG(3, 0))
	return map[string]func(*Question) []string{
		"repairs": func(q *Question) []string { return []string{q.Repair.text()} },
		"random": func(q *Question) (out []string) {
			for range rnd.IntN(5) {
				other := questions[rnd.IntN(len(questions))]
				ws := strings.Fields(other.Repair.text() + " " + q.Repair.text() + " " + strings.Join(q.Wrong, " "))
				rnd.Shuffle(len(ws), func(i, j int) { ws[i], ws[j] = ws[j], ws[i] })
				out = append(out, strings.Join(ws[:len(ws)*(1+rnd.IntN(10))/10], " "))
			}
			return out
		},
	}
}
