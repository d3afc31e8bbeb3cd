package replay

import (
	"context"
	"regexp"
	"strings"

	"anamnesis/anamnesis/facts"
)

// Told is what a run would be shown of its repository at its start, in the form that the data's judge reads.
type Told struct {
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

// Facts replays the runs of the sources, one source after the other: each run is told what the earlier ones of
// its repository showed, and is counted afterwards. SOURCE@NAME keeps the runs of models whose name begins so.
func Facts(ctx context.Context, o Options, write func(Told) error) (*Report, error) {
	tasks, report := map[string][]facts.Task{}, new(Report)
	for _, name := range o.Sources {
		file, model, _ := strings.Cut(name, "@")
		runs, err := readRuns(o.Data, file, model)
		if err != nil {
			return nil, err
		}
		sr := SourceReport{Source: name, Runs: len(runs)}
		for _, r := range runs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			told := Told{Run: r.ID, Claims: []claim{}}
			var shown []facts.Fact
			told.Text, shown = facts.Tell(facts.Count(tasks[r.Repo]), facts.World{})
			for _, f := range shown {
				if (f.Kind == facts.Works || f.Kind == facts.Never) && !judged.MatchString(f.Match) {
					continue
				}
				told.Claims = append(told.Claims, claim{f.Kind, f.Match, f.Seen, f.Of})
			}
			if told.Tokens = len(told.Text) / bytesPerToken; told.Tokens > 0 {
				sr.Answered++
			}
			if err := write(told); err != nil {
				return nil, err
			}
			tasks[r.Repo] = append(tasks[r.Repo], r.counted())
		}
		report.Sources = append(report.Sources, sr)
	}
	return report, nil
}

const bytesPerToken = 4

// judged matches the runners that facts.py knows. It counts others by their exit status alone, whatever ran; they
// stand in the text and are not claimed.
var judged = regexp.MustCompile(`^(?:\S*/)?(?:pytest|py\.test|tox|nosetests|nose2|jest|runtests\.py|bin/test|(?:manage|setup)\.py test|java)$` +
	`|^(?:\S*/)?(?:mvnw?|gradlew?) |^(?:npm|yarn|pnpm|make|go|cargo)(?: \S+)? (?:test|check)$` +
	`|^\S*python[\d.]* (?:-m (?:pytest|unittest|nose|tox)$|\S*(?:runtests\.py|bin/test|(?:manage|setup)\.py test)$)`)

// edits matches SWE-agent's commands that are followed by a text, which is no shell.
var edits = regexp.MustCompile(`^\s*(?:edit|insert|create)\b[^\n]*\n`)

// counted counts a run as the product counts a task.
func (r *recorded) counted() facts.Task {
	l := facts.Log{Task: facts.Task{ID: r.ID}}
	for _, c := range r.Calls {
		if !edits.MatchString(c.Command) {
			l.Add(facts.Call{Output: c.Output})
		}
	}
	return l.Task
}
