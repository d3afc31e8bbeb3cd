//go:build unix

package tui

import (
	"errors"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/orchestrator/feature/jobs"
)

// maxJobBytes is how much of the end of a job's output is shown.
const maxJobBytes = 32 << 10

// jobsVerb lists the background commands and subagents, or ends one.
func (m *screen) jobsVerb(args []string) tea.Cmd {
	stop := len(args) == 2 && args[0] == "stop"
	if len(args) > 0 && !stop {
		m.fail(fmt.Errorf("/jobs %s: want /jobs, or /jobs stop ID", strings.Join(args, " ")))
		return nil
	}
	return m.withJobs(func(js *jobs.Jobs) (string, error) {
		if stop {
			j, err := js.Stop(args[1], jobs.ByUser)
			return jobLine(j), err
		}
		list, err := js.List()
		var lines []string
		for _, j := range list {
			lines = append(lines, jobLine(j))
		}
		if len(lines) == 0 {
			return paint.Faint.Render("nothing was begun in the background"), err
		}
		lines = append(lines, paint.Faint.Render("/out ID shows the output, /jobs stop ID ends it"))
		return strings.Join(lines, "\n"), err
	})
}

// jobOut shows the end of a job's output.
func (m *screen) jobOut(id string) tea.Cmd {
	return m.withJobs(func(js *jobs.Jobs) (string, error) {
		out, err := js.Output(id, -maxJobBytes, maxJobBytes)
		if err != nil {
			return "", err
		}
		text := strings.TrimRight(term.Output(strings.ToValidUTF8(out.Text, "\uFFFD")), "\n")
		if out.From > 0 {
			text = fmt.Sprintf("… %d bytes\n%s", out.From, text)
		}
		return jobLine(out.Job) + "\n" + text, nil
	})
}

// withJobs prints what a function says of the background commands.
func (m *screen) withJobs(read func(*jobs.Jobs) (string, error)) tea.Cmd {
	s := m.s
	return m.withTask(func() (string, error) {
		if s == nil {
			return "", errors.New("the task is not open here, so none of its jobs runs; your next message opens it")
		}
		return read(s.Jobs())
	})
}

func jobLine(j jobs.Job) string {
	return paint.Bold.Render(j.ID) + " " + clean(oneLine(j.Command)) + paint.Faint.Render("  "+clean(jobs.StatusOf(j)))
}

// askToLeave leaves, but asks first if that ends something in the background.
func (m *screen) askToLeave() tea.Cmd {
	n := len(m.st.Jobs.Running)
	if n == 0 || m.s == nil || m.pick != nil && m.pick.leaves {
		return m.quit()
	}
	var names []string
	for _, j := range m.st.Jobs.Running {
		names = append(names, j.Job+" "+quote.OneLine(clean(j.Command), 60))
	}
	m.pick = &picker{title: "Leave, and end " + quote.Number(n, "background job") + "? " + strings.Join(names, ", "),
		yesNo: true, leaves: true, rows: []pickRow{{text: "Yes, end and leave", step: 1}, {text: "No, stay"}},
		then: func(m *screen, r pickRow) tea.Cmd {
			if r.step == 0 {
				return nil
			}
			return m.quit()
		}}
	return nil
}
