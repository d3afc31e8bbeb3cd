// Package quarantine keeps git in a world from running, outside of the sandbox, what
// commands wrote: it knows which files lead git to programs, closes them to commands, and
// moves away what a command left.
package quarantine
