// Package workspace relates a task's stream to its world: which commit a step ended
// with, which changes are the user's, how a plan starts from them, and what no
// snapshot holds.
package workspace
