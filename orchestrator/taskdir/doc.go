// Package taskdir knows where tasks are kept and how to read them from outside: the
// home, the hold on a directory, the socket of a running task, and its stream read
// whole, as it grows, or as a line of a list. Only the hold and the socket's file
// change anything.
package taskdir
