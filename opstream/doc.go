// Package opstream is an append-only log of operations in files of JSON lines:
// durable, hash-chained, with one writer and any number of live readers.
//
// The log does not interpret operations. It owns bytes, order and durability; the kinds and
// their bodies are in opstream/op. docs/reference/format-opstream.md specifies the format. In
// short:
//
//	DIR/ops/<first seq, 16 digits>.jsonl   segments, one JSON object a line
//	DIR/blobs/sha256/ab/<hex>              bodies too large, or not UTF-8
//	DIR/torn-<segment>-<offset>-<hex>.bin  bytes a recovery set aside
//	DIR/checkpoint.bin                     derived: index and a caller's fold
//	DIR/ops.lock                           flock of the one writer
//
// # What acknowledged means
//
// Append returns when its lines were written by one write call and fdatasync
// returned (for a new segment, the directory's fsync too). Callers that arrive
// while a sync is under way share the next one. The next batch is written only
// after the one before it is durable, so at most one batch is ever in doubt;
// every line carries in `ack` the last sequence number that was durable when
// it was written, and the existence of a segment vouches for every line before
// its first.
//
// # Crash rules
//
// A line is bad when its form, checksum, sequence number or chain is wrong. A bad line that no
// later line vouches for is a torn tail: a crash leaves exactly that, in any mixture of
// written, lost and zeroed sectors. The next writer copies the bytes from there on to
// torn-*.bin, cuts them off, rewrites the lines no later line vouches for (a page that failed
// to reach the disk may look clean to the kernel), syncs, and appends log.recovered. A bad
// line that is vouched for is corruption: no writer opens the stream, and readers return the
// prefix before it and then a CorruptError.
//
// A failed sync poisons the writer for good: what the disk holds is unknown
// until a new writer has read it back. A short write is cut back and the cut
// is synced; the writer then continues.
package opstream
