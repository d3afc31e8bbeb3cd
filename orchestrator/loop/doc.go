// Package loop finds an agent going round in a record of its calls: the same
// call made again in a world that has not changed, and cycles of calls. Its
// functions are pure. The orchestrator keeps a [Tally] in its state and asks it
// before each call; [Detect] looks at a whole recorded run.
package loop
