// Package runtime performs what package state decides for one task in this process:
// it asks the model, runs calls, jumps, and hands work to subagents and background
// commands. Task is the process's hold on a task: a journal.Ledger, a workspace.Place and
// a memory.Memory. Step.go has the loop, call.go the way of one call, jump.go the jumps;
// wiring.go alone names the features.
package runtime
