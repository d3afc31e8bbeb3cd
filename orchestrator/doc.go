// Package orchestrator is a house without a room of its own: its packages run a task.
//
//	stream ──Fold──▶ State ──Next──▶ Action ──perform──▶ new operations ──▶ stream
//	                   └──Projection──▶ what the model is sent
//
// Package state folds, decides and projects; it is pure. Package runtime performs.
// Package journal is the one way into the stream, workspace relates the stream to the
// world, notice writes what the model is told, taskdir keeps and finds tasks, inspect
// answers questions about them.
//
// Everything the loop knows is in the stream, so a process that is killed at any
// moment is followed by one that folds the same operations and continues: an intent
// without a result becomes "outcome unknown", a jump past its intent is finished, and
// no tool runs a second time by itself.
package orchestrator
