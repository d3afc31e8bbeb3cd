// Package counterparts measures opstream beside its alternatives: SQLite in WAL mode with
// synchronous=FULL, bbolt, and the log of hashicorp/raft-wal, each configured to have a record
// on disk before it returns. A bare write with fdatasync is the lower bound.
//
// It is a module of its own, so that users of the program do not depend on these libraries. It
// has tests and benchmarks only:
//
//	go test -run '^$' -bench . anamnesis/opstream/counterparts
package counterparts
