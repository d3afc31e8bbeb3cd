// Package gate decides which calls of the agent run: by rules and the user's approval, by
// research that must come first, and by earlier calls.
package gate
