//go:build unix

// Package command makes tools of a user's own commands: a file tools/NAME.yaml
// says what a command is called with, and what it is good for. The command gets
// the call's arguments as JSON on its standard input, and, where its words name
// them, as words; no shell reads them. Files are looked at before each step, so
// that one that is added, changed or removed takes effect at the next.
package command
