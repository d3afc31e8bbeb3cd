// Package gate decides on the agent's calls: Checks.Decide runs a list of checks. Its own are those
// of arguments, rules and approvals; runtime/wiring.go lists them with those of the features.
package gate
