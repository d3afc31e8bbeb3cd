// Package gate decides which calls of the agent run: standing rules and the user's
// approval, research that has to come first, and calls that were made before.
package gate
