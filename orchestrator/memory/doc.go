// Package memory is what a task finds beside its context and what it leaves for other
// tasks: the cards. It recalls them, says how far each may be believed, and runs the
// passes that fold steps and write cards.
package memory
