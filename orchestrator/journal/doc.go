// Package journal is the one way into a task's stream. Journal signs and redacts
// operations, makes them durable from any goroutine, queues them for the goroutine that
// owns the state, and publishes of the state what others may know. Ledger is a journal
// with the state folded from it. The vault beside the stream holds what its markers
// stand for; a Scrubber redacts what another program recorded.
package journal
