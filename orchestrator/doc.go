// Package orchestrator runs a task: it folds the operation stream into a
// State, decides with the pure Next, and performs what was decided. Step.go is
// the only place where the loop has effects; jump.go performs jumps.
//
//	stream ──Fold──▶ State ──Next──▶ Action ──perform──▶ new operations ──▶ stream
//	                   └──Projection──▶ what the model is sent
//
// Everything the loop knows is in the stream, so a process that is killed at
// any moment is followed by one that folds the same operations and goes on:
// an intent without a result becomes "outcome unknown", a jump past its
// intent is finished, and no tool runs a second time by itself.
package orchestrator
