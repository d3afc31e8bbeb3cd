// Package inspect answers questions about a task without holding or changing it: whether
// everything it depends on is whole, why its context looks as it does, and what a jump or a
// restore would do.
package inspect
