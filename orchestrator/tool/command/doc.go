// Package command makes tools of a user's own commands: a file tools/NAME.yaml describes a
// tool and its command. The command gets the call's arguments as JSON on its standard input,
// and, where its words name them, as words; no shell parses them. Files are read before each
// step, so that changes take effect at the next.
package command
