// Package taskdir locates tasks and reads them from outside: the home, the hold on a
// directory, the socket of a running task, and its stream, read whole, as it grows, or as one
// line of a list. Only the hold and the socket's file are written.
package taskdir
