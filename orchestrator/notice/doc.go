// Package notice writes what the model is told beside the results of its calls: the
// notices of jumps, restores and changes of files, D-Mails as they arrive, the
// user's words that are carried over, and the marks that text of a command cannot
// forge. All of it is text from values.
package notice
