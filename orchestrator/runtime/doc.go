// Package runtime performs what package state decides for one task in this process:
// it asks the model, runs calls, saves the world, jumps, runs passes and hands work
// to subagents and background commands. Task is the process's hold on a task. Step.go
// has the loop, jump.go the jumps.
package runtime
