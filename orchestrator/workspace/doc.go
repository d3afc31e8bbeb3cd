// Package workspace relates a task's stream to its world: which commit a step ended with,
// which changes are the user's, how a plan starts from them, what no snapshot holds, and how
// commands in the directory are confined. Place is a task's directory: it saves steps, records
// changes, and moves the files for jumps and restores.
package workspace
