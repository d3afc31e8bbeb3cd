// Package notice writes the texts that the model is shown beside the results of its calls:
// notices of jumps, restores and changed files, D-Mails, the user's words carried over, and
// the marks that a command's output cannot forge. It makes text from values only.
package notice
