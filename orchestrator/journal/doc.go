// Package journal keeps what is recorded free of secrets: the vault beside a stream
// holds what markers stand for.
package journal
