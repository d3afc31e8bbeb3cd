// Package inspect answers questions about a task without holding or changing it:
// whether all that it rests on is whole, why its context looks as it does, and what
// a jump or a restore would do.
package inspect
