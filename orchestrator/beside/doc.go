// Package beside keeps streams, snapshots and cards of the sessions of other coding
// agents. An imported session is a task that can only be read, without snapshots.
// A recorded session is reported by hooks, each a process of
// its own: a hook first writes its event to a file, and the process that holds the
// directory's lock records the waiting events in order.
package beside
