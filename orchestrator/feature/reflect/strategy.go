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

//go:embed prompt/goal.md
var goalPrompt string

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

func askText(r request) string {
	prompt := askPrompt
	if r.Checks != nil {
		prompt = goalPrompt
	}
	return consult.Fill(prompt,
		"task", clip(r.Task, maxReasonRunes), "goal",
		"| "+strings.ReplaceAll(quote.ClipMarked(r.Goal, maxGoalRunes), "\n", "\n| "),
		"to", fmt.Sprint(r.To), "jumps", fmt.Sprint(r.Jumps), "reasons", quoted(r.Reasons), "checks", quoted(r.Checks),
		"outline", strings.TrimRight(r.Outline, "\n"), "looks", fmt.Sprint(maxLookups))
}

func quoted(texts []string) string {
	lines := []string{}
	for _, text := range texts {
		lines = append(lines, "| "+clip(text, maxReasonRunes))
	}
	if len(lines) == 0 {
		return "| none"
	}
	return strings.Join(lines, "\n")
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
func (s Strategy) Text(r request) string {
	var sb strings.Builder
	why := fmt.Sprintf("You went back to step %d %d times without getting further", r.To, r.Jumps)
	if r.Checks != nil {
		why = fmt.Sprintf("The check of the goal got no better in %d runs", r.Jumps)
	}
	fmt.Fprintf(&sb, "[STRATEGY] %s. A look at the whole record says:\nDiagnosis: %s", why, s.Diagnosis)
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
	switch {
	case len(s.Plan) > 0:
	case r.Checks != nil:
		sb.WriteString("\nOnly the user can answer this, and may not be there. Go on without it as far as you can, " +
			"and ask it at the end: " + s.Question)
	default:
		sb.WriteString("\nThe user is asked: " + s.Question)
	}
	return sb.String()
}
