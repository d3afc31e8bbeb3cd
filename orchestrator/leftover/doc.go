// Package leftover closes what a process that died left open in a task: processes that
// still run, calls without a result, background commands and subagents.
package leftover
