package beside

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/sessions"
)

// recordEvent records one event. If again, it may have been recorded before. user is the user's home directory.
func recordEvent(ctx context.Context, task *runtime.Task, e *event, again bool, user string) error {
	t := runtime.Outside{Task: task}
	if again {
		if had, err := recorded(t, e); err != nil || had {
			return errors.Join(err, t.Advance(ctx))
		}
	}
	first := task.Ledger.State().Last <= 2 // only the beginning and its request are recorded
	switch e.Name {
	case "SessionStart":
		if first {
			return t.Unknown(ctx) // saves step 0
		}
	case "UserPromptSubmit":
		if first && e.Prompt == task.Ledger.State().Said.Request {
			return t.Unknown(ctx)
		}
		if err := t.Unknown(ctx); err != nil {
			return err
		}
		if err := t.Said(ctx, e.Prompt); err != nil {
			return err
		}
		if e.Agent == ACP { // it reports most calls after they began
			if err := t.RecordUserChanges(ctx); err != nil {
				return err
			}
		}
		return t.Memory.Recall(ctx, memory.RecallPrompt)
	case "PreToolUse":
		if err := closeUntold(ctx, t, e); err != nil {
			return err
		}
		if c := e.call(task.Place.Dir); c != nil && e.Running {
			return t.Began(ctx, callOf(c, e.Writes || writes(c)))
		} else if c != nil {
			return t.Begin(ctx, callOf(c, e.Writes || writes(c)))
		}
	case "PostToolUse", "PostToolUseFailure":
		e.match(t.Open())
		if c := e.call(task.Place.Dir); c != nil {
			return t.Returned(ctx, callOf(c, e.Writes || writes(c)), returned(c.ID, c))
		}
	case "PostToolBatch":
		return closeBatch(ctx, t, e)
	case "Stop":
		if err := closeUntold(ctx, t, e); err != nil {
			return err
		}
		return t.Answered(ctx, cmp.Or(e.LastAnswer, kimiAnswer(user, e)))
	case "SessionEnd":
		return t.Answered(ctx, "")
	}
	return nil
}

// kimiAnswer returns the answer at the end of a turn of Kimi Code, whose hooks do not have it, from
// the session's file; empty if it is not there.
func kimiAnswer(user string, e *event) string {
	if e.Agent != sessions.Kimi {
		return ""
	}
	files, err := sessions.Find(e.Agent, user, os.Getenv)
	i := slices.IndexFunc(files, func(f string) bool {
		return strings.HasSuffix(f, filepath.Join(e.SessionID, "agents", "main", "wire.jsonl"))
	})
	if err != nil || i < 0 {
		return ""
	}
	data, err := durable.ReadTail(files[i], transcriptTail)
	if err != nil {
		return ""
	}
	return sessions.KimiAnswer(data)
}

// recorded reports whether an event is in the stream already, because the process that
// recorded it died before it removed the file. The others may be recorded again without
// effect.
func recorded(t runtime.Outside, e *event) (bool, error) {
	switch e.Name {
	case "UserPromptSubmit":
		said, err := t.LastSaid()
		return said == e.Prompt, err
	case "PostToolUse", "PostToolUseFailure":
		return t.Recorded(e.ToolUseID)
	}
	return false, nil
}

// closeUntold closes calls whose result only Codex's rollout holds.
func closeUntold(ctx context.Context, t runtime.Outside, e *event) error {
	if e.Agent != sessions.Codex {
		return nil
	}
	for _, c := range t.Open() {
		done, ok := transcriptOutput(e.TranscriptPath, c)
		if !ok {
			continue
		}
		done.Normalise(t.Place.Dir)
		if err := t.Returned(ctx, runtime.OutsideCall{Call: c}, returned(c.ID, done)); err != nil {
			return err
		}
	}
	return nil
}

// closeBatch records the calls of a batch that no other event reported: denied calls, and
// calls that failed before they began.
func closeBatch(ctx context.Context, t runtime.Outside, e *event) error {
	for _, b := range e.ToolCalls {
		one := *e
		one.ToolName, one.ToolInput, one.ToolUseID = b.ToolName, b.ToolInput, b.ToolUseID
		c := one.call(t.Place.Dir)
		if c == nil {
			continue
		}
		if had, err := t.Recorded(c.ID); err != nil {
			return err
		} else if had {
			continue
		}
		c.Text, _ = sessions.ResultText(b.ToolResponse)
		c.Done, c.Failed, c.Refused = true, true, sessions.ClaudeDenied(c.Text)
		if err := t.Returned(ctx, callOf(c, false), returned(c.ID, c)); err != nil {
			return err
		}
	}
	return nil
}
