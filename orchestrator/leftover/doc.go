// Package leftover closes what a crashed process left open in a task: running processes, calls
// without a result, background commands and subagents.
package leftover
