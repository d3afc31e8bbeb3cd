// Package loop finds loops in a record of an agent's calls: the same call repeated in an
// unchanged world, and cycles of calls. Its functions are pure. The orchestrator keeps a
// [Tally] in its state and asks it before each call; [Detect] examines a whole recorded run.
package loop
