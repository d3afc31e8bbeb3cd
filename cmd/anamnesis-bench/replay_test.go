package bench

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/facts"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/pair"
	"anamnesis/anamnesis/shell"
)

// question is one recorded failed call.
type question struct {
	ID     string    `json:"id"`
	Run    string    `json:"run"`
	Call   int       `json:"call"`
	First  bool      `json:"first"`  // of a chain of nearly equal failing calls
	Repair *struct{} `json:"repair"` // whether the call succeeded later
}

// BenchmarkReplay answers recorded failures from what earlier recorded runs of the same repository did about the same
// failure. Each run's failures are asked first, and the run is learned from afterwards. The data's judge scores the
// answers in -out: score.py eval.
func BenchmarkReplay(b *testing.B) {
	name, _, _ := strings.Cut(*source, "@")
	asked, runs := map[string][]question{}, readRuns(b, *source)
	write := judged(b)
	eachLine(b, "questions/dev_"+name+".jsonl.gz", func(line []byte) error {
		var q question
		err := json.Unmarshal(line, &q)
		if q.First {
			asked[q.Run] = append(asked[q.Run], q)
		}
		return err
	})
	var counts replayed
	var answers []any
	for b.Loop() {
		answers = nil
		counts = replay(runs, asked, func(id string, shown []string) {
			answers = append(answers, map[string]any{"source": name, "id": id, "suggestions": shown})
		})
	}
	for _, a := range answers {
		write(a)
	}
	b.ReportMetric(float64(counts.asked), "asked")
	b.ReportMetric(float64(counts.answered), "answered")
	b.ReportMetric(float64(counts.pairs), "pairs")
	b.ReportMetric(float64(counts.unrepaired), "unrepaired")
	b.ReportMetric(float64(counts.spoken), "unrepaired-answered")
}

// replayed counts a replay: failures asked and answered, pairs of different failures after the last run, failures that
// never succeeded in their run, and those of them that have an answer.
type replayed struct{ asked, answered, pairs, unrepaired, spoken int }

func replay(runs []*recorded, asked map[string][]question, answer func(id string, shown []string)) (out replayed) {
	pairs := earlierPairs{}
	for _, r := range runs {
		for _, q := range asked[r.ID] {
			shown := pairs.answer(q, r)
			if q.Repair == nil {
				out.unrepaired++
				out.spoken += len(shown)
				continue
			}
			out.asked++
			out.answered += len(shown)
			answer(q.ID, shown)
		}
		pairs.learn(r)
	}
	out.pairs = len(pairs)
	return out
}

// earlierPairs holds what pairs say of each repository and failure.
type earlierPairs map[string]earlier

type earlier struct {
	text string // the latest pair, in words
	runs int    // that had one
}

// learn adds the pairs that the product finds in a run.
func (e earlierPairs) learn(r *recorded) {
	here := map[string]string{}
	for _, p := range pair.Find(r.Calls) {
		here[r.Repo+"\n"+p.Failure.Signature] = strings.Join(
			slices.Concat(p.Ran, p.Files, []string{pair.Main(r.Calls[p.Fixed].Command)}), "\n")
	}
	for key, text := range here {
		e[key] = earlier{text, e[key].runs + 1}
	}
}

// answer is at most one text. It is empty where a lesson would not be shown: a failure of a program that the run itself
// wrote is answered once the lesson held in a second run.
func (e earlierPairs) answer(q question, r *recorded) []string {
	if q.Call >= len(r.Calls) {
		return []string{}
	}
	failed := r.Calls[q.Call].Output
	failed.Error = true // the question is about a failure
	f, _ := failure.Read(failed)
	found := e[r.Repo+"\n"+f.Signature]
	if f.Signature == "" || found.runs == 0 || found.runs == 1 && namesWritten(failed.Command, r.Calls[:q.Call]) {
		return []string{}
	}
	return []string{found.text}
}

// namesWritten reports whether a command names a file that an earlier one wrote.
func namesWritten(command string, earlier []pair.Call) bool {
	words := shell.Words(command)
	return slices.ContainsFunc(earlier, func(c pair.Call) bool {
		return slices.ContainsFunc(shell.Parts(c.Command), func(p shell.Part) bool {
			return slices.ContainsFunc(p.Redirects,
				func(r shell.Redirect) bool { return r.Writes() && slices.Contains(words, r.File.Text) })
		})
	})
}

// TestReplay answers a failure from the latest earlier run of its repository that overcame it, and from no later one.
func TestReplay(t *testing.T) {
	run := func(id, repo, fix string) *recorded {
		failing := recordedOutput("go test ./...", "a_test.go:3: undefined: parse\nFAIL")
		return &recorded{ID: id, Repo: repo, Calls: []pair.Call{{Output: failing},
			{Output: recordedOutput(fix, ""), Step: 1}, {Output: recordedOutput("go test ./...", "ok"), Step: 2}}}
	}
	asked := map[string][]question{}
	for _, id := range []string{"1", "2", "3"} {
		asked[id] = []question{{ID: id, Run: id, Repair: &struct{}{}}, {ID: id + "b", Run: id}}
	}
	var got []string
	counts := replay([]*recorded{run("1", "a", "go generate"), run("2", "b", "make"), run("3", "a", "make gen")}, asked,
		func(id string, shown []string) { got = append(got, id+": "+strings.Join(shown, "; ")) })
	if want := "1: |2: |3: go generate\ngo test ./..."; strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
	if want := (replayed{asked: 3, answered: 1, pairs: 2, unrepaired: 3, spoken: 1}); counts != want {
		t.Errorf("%+v", counts)
	}
}

// told is what a run would be shown of its repository at its start, in the form that the data's judge reads.
type told struct {
	Run    string  `json:"run"`
	Tokens int     `json:"tokens"`
	Text   string  `json:"text"`
	Claims []claim `json:"claims"`
}

type claim struct {
	Kind  facts.Kind `json:"kind"`
	Match string     `json:"match"`
	Seen  int        `json:"seen"`
	Of    int        `json:"of"`
}

// BenchmarkFacts replays the runs of the sources, one source after the other: each run is told what the earlier ones of
// its repository showed, and is counted afterwards. The data's judge reads -out: facts.py eval.
func BenchmarkFacts(b *testing.B) {
	var runs []*recorded
	for name := range strings.SplitSeq(*source, ",") {
		runs = append(runs, readRuns(b, name)...)
	}
	write := judged(b)
	var all []told
	for b.Loop() {
		all = tell(runs)
	}
	spoken := 0
	for _, t := range all {
		if write(t); t.Text != "" {
			spoken++
		}
	}
	b.ReportMetric(float64(len(all)), "runs")
	b.ReportMetric(float64(spoken), "told")
}

func tell(runs []*recorded) (all []told) {
	tasks := map[string][]facts.Task{}
	for _, r := range runs {
		text, shown := facts.Tell(facts.Count(tasks[r.Repo]), facts.World{})
		t := told{Run: r.ID, Text: text, Tokens: len(text) / 4, Claims: []claim{}}
		for _, f := range shown {
			if f.Kind != facts.Works && f.Kind != facts.Never || judgedRunner.MatchString(f.Match) {
				t.Claims = append(t.Claims, claim{f.Kind, f.Match, f.Seen, f.Of})
			}
		}
		all = append(all, t)
		l := facts.Log{Task: facts.Task{ID: r.ID}}
		for _, c := range r.Calls {
			if !edits.MatchString(c.Command) {
				l.Add(facts.Call{Output: c.Output})
			}
		}
		tasks[r.Repo] = append(tasks[r.Repo], l.Task)
	}
	return all
}

// judgedRunner matches the runners that facts.py knows. It counts others by their exit status alone, whatever ran; they
// stand in the text and are not claimed.
var judgedRunner = regexp.MustCompile(`^(?:\S*/)?(?:pytest|py\.test|tox|nosetests|nose2|jest|runtests\.py|bin/test|(?:manage|setup)\.py test|java)$` +
	`|^(?:\S*/)?(?:mvnw?|gradlew?) |^(?:npm|yarn|pnpm|make|go|cargo)(?: \S+)? (?:test|check)$` +
	`|^\S*python[\d.]* (?:-m (?:pytest|unittest|nose|tox)$|\S*(?:runtests\.py|bin/test|(?:manage|setup)\.py test)$)`)

// edits matches SWE-agent's commands that are followed by a text, which is no shell.
var edits = regexp.MustCompile(`^\s*(?:edit|insert|create)\b[^\n]*\n`)

// TestFacts tells each run what earlier runs of its repository showed, in the given order.
func TestFacts(t *testing.T) {
	run := func(id, repo, text string) *recorded {
		return &recorded{ID: id, Repo: repo, Calls: []pair.Call{{Output: recordedOutput("pytest -q", text)}}}
	}
	const gone = "<returncode>127</returncode>\n<output>\nbash: pytest: command not found\n</output>"
	const limit = "The last command <command>pytest -q</command> timed out and has been killed.\nThe output of the command was:\n <output>\n\n</output>"
	var got []string
	for _, told := range tell([]*recorded{run("1", "a", gone), run("2", "a", gone), run("3", "a", gone), run("5", "b", limit), run("6", "b", limit), run("7", "b", limit)}) {
		s := told.Run
		for _, c := range told.Claims {
			s += " " + string(c.Kind) + " " + c.Match
		}
		got = append(got, s)
	}
	if s := strings.Join(got, "|"); s != "1|2|3 missing pytest|5|6|7 timeout pytest -q" {
		t.Error(s)
	}
}
