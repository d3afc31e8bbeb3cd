package shell

import (
	"context"
	"io"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

// MaxBackgroundSeconds is how long a background command runs at most, and by default.
const MaxBackgroundSeconds = 86_400

func begin(ctx context.Context, env *tool.Env, e Exec, line string) tool.Result {
	if env.Jobs == nil {
		return tool.Errorf("Bash was not run: there is nothing to run it in the background.")
	}
	c := command(env, e)
	id, err := env.Jobs.Begin(ctx, tool.JobStart{Call: env.Call, Command: line, Timeout: e.Timeout,
		Run: func(ctx context.Context, out io.Writer, started func(op.ToolStarted) error) (tool.JobEnd, error) {
			redacted := env.Redaction().Writer(out)
			defer redacted.Close()
			c.Started = started
			c.Output = func(_ guard.Stream, p []byte) { // bytes that cannot be kept are counted
				_, _ = redacted.Write(p)
				_ = redacted.Lines() // TaskOutput may be waiting for them
			}
			o, err := guard.Run(ctx, c)
			return jobEnd(o, err, ctx.Err() != nil), err
		}})
	if err != nil {
		return tool.Errorf("Bash was not run: %v.", err)
	}
	r := tool.Textf("Started in the background as %s. TaskOutput shows what it prints, TaskStop ends it; it is ended "+
		"after %v, when the task's program ends, and by a jump to a step before this one.", id, e.Timeout)
	r.Isolated = c.Sandbox.Isolates()
	return r
}

// notRun is a shell's exit code for a command that did not run.
const notRun = 126

func jobEnd(o guard.Outcome, err error, stopped bool) tool.JobEnd {
	end := tool.JobEnd{Exit: o.Exit, TimedOut: o.TimedOut, Note: o.Note}
	if doing := running(o.Running); doing != "" {
		end.Note = strings.TrimSpace(end.Note + " " + doing)
	}
	if len(o.Alive) > 0 {
		end.Note = strings.TrimSpace(
			"could not be ended and still runs: " + list(o.Alive, len(o.Alive)) + ". " + end.Note)
	}
	if err != nil && !stopped {
		end.Exit, end.Note = notRun, strings.TrimSpace(err.Error()+". "+end.Note)
	}
	return end
}
