// Package state holds the loop's state and its decisions. Fold applies operations to a
// State, Next decides what to do in it, and State.Context.Chat is what the model is sent. All
// three are pure: they depend on their arguments alone. Marshal writes the state for the
// snapshot of the index beside a stream; FromSnapshot reads it back.
package state
