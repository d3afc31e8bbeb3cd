// Package counterparts measures opstream beside what one would take instead:
// SQLite in WAL mode with synchronous=FULL, bbolt, and the log of
// hashicorp/raft-wal, each told to have a record on disk before it returns.
// What opstream cannot beat, a bare write and fdatasync, is beside them.
//
// It is a module of its own, so that who uses the program does not carry these
// libraries. It has tests and benchmarks only:
//
//	go test -run '^$' -bench . anamnesis/opstream/counterparts
package counterparts
