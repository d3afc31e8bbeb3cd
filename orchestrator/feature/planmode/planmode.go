// Package planmode lets the agent read and ask, and refuses every call that can change something, until the user
// ends that. The turn ends with the plan as its answer. The mode is part of the task's record: an op.ModeSet begins
// and ends it. A subagent's calls are held back by the mode of the task that began it, whenever that changes.
package planmode

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/tool"
)

// Carry is the user's request that accepts a plan; Edited precedes a plan that the user has changed.
const (
	Carry  = "The plan is accepted. Carry it out."
	Edited = "The plan is accepted as edited below. Carry it out.\n\n"
)

// By is the decision that refuses a call in plan mode.
const By = "mode:plan"

const begun = "[plan mode] The user wants a plan before anything is changed. Until the user ends plan mode, only " +
	"calls that read and ask run: reading and searching files, commands that change nothing such as git log, " +
	"read-only subagents, AskUser. All other calls are refused. Do not try to carry the plan out. End your turn with " +
	"the plan as your answer: what to change, in which files, in which order, and how to check it. The user then " +
	"accepts, edits or rejects it."

// Set returns the operation by which the mode changes: was and plan say whether the agent only plans, before and
// after; mode is the approval mode from then on, empty if it stays.
func Set(was, plan bool, mode string) *op.ModeSet {
	b := &op.ModeSet{Plan: plan, Approval: mode}
	switch {
	case plan && !was:
		b.Notice = begun
	case was && !plan:
		b.Notice = "[plan mode] The user ended plan mode: calls that change something run again, where the user's " +
			"approval allows them."
	}
	return b
}

// On reports whether a task is in plan mode. It may be called from any goroutine.
func On(l *journal.Ledger) (on bool) {
	l.Journal.ReadQueue(func(queue []op.Op) {
		on = l.State().Grants.Plan
		for _, o := range queue {
			if b, ok := o.Body.(*op.ModeSet); ok {
				on = b.Plan
			}
		}
	})
	return on
}

// Check returns the check that refuses calls which can change something while on returns true. stop names the tool
// that ends a background command, which it refuses, too.
func Check(on func() bool, stop string) gate.Check {
	return func(_ context.Context, c *gate.Call) ([]op.Body, error) {
		if !on() {
			return nil, nil
		}
		why := changes(c, stop)
		if why == "" {
			return nil, nil
		}
		return c.Refuse(fmt.Sprintf("%s was not run: the task is in plan mode, and %s. Read what you need by other "+
			"calls, and end your turn with the plan as your answer; calls that change something run once the user "+
			"has accepted it.", c.Name, why), &op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: By}), nil
	}
}

// Confine returns the check that lets commands write nothing in the directory while on returns true: programs that
// only read start others by their configuration and by PATH, which a command line does not show. Without a sandbox
// nothing holds those. About a command that then shows files of the directory alone, and none of secrets, no mode asks.
func Confine(on func() bool) gate.Check {
	return func(_ context.Context, c *gate.Call) ([]op.Body, error) {
		if c.Env.Sandbox != nil && on() {
			c.Env.Sandbox = c.Env.Sandbox.ReadOnly()
			line := gate.TextArg(c.Input, c.Spec.Command)
			c.Reads = line != "" && c.Env.Sandbox.HoldsNetwork() && shell.Local(line, c.Env.Dir) &&
				!slices.ContainsFunc(strings.Fields(line), func(word string) bool { return tool.SecretFile(word, nil) })
		}
		return nil, nil
	}
}

// changes says why a call may change something; empty: it certainly does not.
func changes(c *gate.Call, stop string) string {
	switch s := c.Spec; {
	case s.Rewinds:
		return "it may move files"
	case c.Name == stop:
		return "it ends a command"
	case s.Command != "":
		if !shell.ReadsOnly(gate.TextArg(c.Input, s.Command)) {
			return "the command is not known to change nothing: those that run are pipes and lists of programs such " +
				"as ls, cat, head, grep, rg, find, wc, git log, git diff, go doc, without redirections to files, " +
				"variables or substitutions"
		}
	case s.Delegates && !s.ReadOnly:
		return "this subagent can change files: use a read-only one, without isolation"
	case !s.Looks():
		return "this tool can change something"
	}
	return ""
}
