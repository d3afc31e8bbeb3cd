// Package beside keeps streams, snapshots and cards of the sessions of other coding
// agents. An imported session is a task that can be read and has no snapshots. A
// recorded one is told of by hooks, each a process of its own: the event is written
// down first, and whoever holds the directory's lock records what is there, in order.
package beside
