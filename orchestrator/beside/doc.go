// Package beside keeps streams and cards of the sessions of other coding agents. An
// imported session is a task that can be read and has no snapshots.
package beside
