// Package runtime performs what package state decides for one task in this process:
// it asks the model, runs calls, jumps, delivers D-Mails, and hands work to subagents
// and background commands. Task is the process's hold on a task: a journal.Ledger, a
// workspace.Place, a memory.Memory and a gate.Gate. Step.go has the loop, jump.go the
// jumps.
package runtime
