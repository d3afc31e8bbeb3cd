// Package journal is the only way into a task's stream. Journal signs and redacts operations,
// makes them durable from any goroutine, queues them for the goroutine that owns the state,
// and publishes what others may read of the state. Ledger is a journal with the state folded
// from it. The vault beside the stream holds the values of its markers.
package journal
