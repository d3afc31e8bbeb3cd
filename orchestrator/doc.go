// Package orchestrator only documents its subpackages, which run a task.
//
//	stream ──Fold──▶ State ──Next──▶ Action ──perform──▶ new operations ──▶ stream
//	                   └──Projection──▶ the request to the model
//
// Package state folds, decides and projects; it is pure. Package runtime performs. Package
// journal is the only way into the stream, workspace relates the stream to the world, notice
// writes what the model is shown beside results, taskdir locates tasks, inspect answers
// questions about them.
//
// Everything the loop knows is in the stream, so after a process is killed, the next one folds
// the same operations and continues: an intent without a result becomes "outcome unknown", a
// jump past its intent is finished, and no tool runs a second time by itself.
package orchestrator
