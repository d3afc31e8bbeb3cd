package acp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
)

// maxAnswerBytes is the size of an answer to a slash command.
const maxAnswerBytes = 16 << 10

const width = 120

// verb is a slash command that this program answers itself.
type verb struct{ name, hint, about string }

var verbs = []verb{
	{"jump", "STEP [REASON]", "Anamnesis: files back to the end of a step"},
	{"timeline", "", "Anamnesis: the steps of this session"},
	{"cards", "TEXT", "Anamnesis: lessons of earlier work about an error or a question"},
}

// slash reads a prompt that is one of the verbs.
func slash(text string) (name, rest string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	for _, v := range verbs {
		if word == "/"+v.name {
			return v.name, strings.TrimSpace(rest), true
		}
	}
	return "", "", false
}

// place is a session that verbs are about.
type place struct {
	svc       *session.Service
	task, dir string
}

// answer answers a verb. A mistake is part of the text.
func (p *place) answer(ctx context.Context, name, rest string) string {
	if name != "cards" && !p.svc.Home.HasTask(p.task) {
		return "Nothing of this session is recorded yet: that begins with your first prompt."
	}
	text, err := p.do(ctx, name, rest)
	if err != nil {
		text = strings.TrimSpace(text + "\n" + err.Error())
	}
	return text
}

func (p *place) do(ctx context.Context, name, rest string) (string, error) {
	switch name {
	case "cards":
		if rest == "" {
			return "", errors.New("name an error message or a question: /cards TEXT")
		}
		task := p.task
		if !p.svc.Home.HasTask(task) { // nothing of it is recorded yet
			task = ""
		}
		return beside.Recall(ctx, p.svc, p.dir, task, knowledgebase.Query{Text: rest, K: 5}, maxAnswerBytes)
	case "timeline":
		b := new(timeline.Builder)
		if err := p.svc.Ops(p.task, 0, b.Add); err != nil {
			return "", err
		}
		text := ansi.Strip(view.Draw(b.Timeline(), width))
		if len(text) > maxAnswerBytes {
			text = "[earlier lines left out]\n" + strings.ToValidUTF8(text[len(text)-maxAnswerBytes:], "")
		}
		return "```\n" + text + "\n```", nil
	}
	number, reason, _ := strings.Cut(rest, " ")
	step, err := strconv.Atoi(number)
	if err != nil {
		return "", errors.New("name a step: /jump STEP [REASON]; /timeline lists them")
	}
	if strings.TrimSpace(reason) == "" {
		reason = "the user went back"
	}
	done, err := beside.Jump(ctx, p.svc, p.task, "", op.JumpRequested{To: step, Reason: reason, By: op.ByUser},
		session.Client{})
	text := strings.Join(done.Warnings, "\n")
	if err != nil {
		return text, err
	}
	return strings.TrimSpace(text + fmt.Sprintf(
			"\nThe files are as at the end of step %d. Your next prompt tells the agent what was reverted.", step)),
		nil
}
