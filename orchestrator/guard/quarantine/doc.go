// Package quarantine keeps git in a world from running, outside the sandbox, what commands
// wrote: it knows which files lead git to programs, makes them read-only for commands, and
// moves away what a command left.
package quarantine
