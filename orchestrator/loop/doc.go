// Package loop finds repetitions in an agent's calls: the same call in an unchanged world, and the
// same call in a row. Its functions are pure. The orchestrator keeps a [Tally] in its state and asks
// it before each call.
package loop
