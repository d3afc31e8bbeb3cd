package reflect

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/quote"
)

//go:embed prompt/system.md
var systemPrompt string

//go:embed prompt/ask.md
var askPrompt string

//go:embed prompt/repair.md
var repairPrompt string

//go:embed prompt/schema.json
var schemaText string

// Limits of what is shown and of what an answer may say.
const (
	maxGoalRunes      = 2000
	maxReasonRunes    = 300
	maxProblemRunes   = 300
	maxDiagnosisRunes = 800
	maxItemRunes      = 400
	maxItems          = 8 // of one list
	maxReplyBytes     = 256 << 10
)

// Strategy is the Reflect-Agent's answer: a plan, or a question to a user.
type Strategy struct {
	Diagnosis string   `json:"diagnosis"`
	Abandon   []string `json:"abandon"`
	Plan      []string `json:"plan"`
	Question  string   `json:"question"`
}

func systemText() string {
	return consult.Fill(systemPrompt, "schema", strings.TrimSpace(schemaText))
}

func askText(r request) string {
	reasons := make([]string, len(r.Reasons))
	for i, why := range r.Reasons {
		reasons[i] = "| " + clip(why, maxReasonRunes)
	}
	return consult.Fill(askPrompt,
		"task", clip(r.Task, maxReasonRunes), "goal", "| "+strings.ReplaceAll(quote.ClipMarked(r.Goal, maxGoalRunes), "\n", "\n| "),
		"to", fmt.Sprint(r.To), "jumps", fmt.Sprint(r.Jumps), "reasons", strings.Join(reasons, "\n"),
		"outline", strings.TrimRight(r.Outline, "\n"), "looks", fmt.Sprint(maxLookups))
}

func repairText(problem error) string {
	return consult.Fill(repairPrompt, "problem", clip(problem.Error(), maxProblemRunes))
}

// parse reads an answer: the JSON object in it. Texts and lists are cut to their limits.
func parse(text string) (Strategy, error) {
	var s Strategy
	if err := consult.Object(text, maxReplyBytes, &s); err != nil {
		return Strategy{}, err
	}
	s.Diagnosis, s.Question = clip(s.Diagnosis, maxDiagnosisRunes), clip(s.Question, maxItemRunes)
	s.Abandon, s.Plan = items(s.Abandon), items(s.Plan)
	switch {
	case s.Diagnosis == "":
		return Strategy{}, errors.New("the diagnosis is empty")
	case len(s.Plan) == 0 && s.Question == "":
		return Strategy{}, errors.New("there is neither a plan nor a question")
	}
	return s, nil
}

// items cleans a list: one line each, no empty ones, at most maxItems.
func items(in []string) []string {
	var out []string
	for _, s := range in {
		if s = clip(s, maxItemRunes); s != "" && len(out) < maxItems {
			out = append(out, s)
		}
	}
	return out
}

// clip puts a text on one line of at most n characters.
func clip(s string, n int) string { return quote.ClipMarked(quote.Squash(s), n) }

// Text renders a strategy as the message to the agent.
func (s Strategy) Text(to, jumps int) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "[STRATEGY] You went back to step %d %d times without getting further. A look at the whole record says:\nDiagnosis: %s", to, jumps, s.Diagnosis)
	if len(s.Abandon) > 0 {
		sb.WriteString("\nGive up, as things stand:")
		for _, a := range s.Abandon {
			sb.WriteString("\n- " + a)
		}
	}
	if len(s.Plan) > 0 {
		sb.WriteString("\nNext:")
		for i, p := range s.Plan {
			fmt.Fprintf(&sb, "\n%d. %s", i+1, p)
		}
	}
	if len(s.Plan) == 0 {
		sb.WriteString("\nThe user is asked: " + s.Question)
	}
	return sb.String()
}
