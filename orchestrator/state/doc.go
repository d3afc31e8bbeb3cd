// Package state is what the loop knows and how it decides. Fold takes operations
// into a State, Next decides what to do in it, and Projection is the context that
// the model is sent. All three are pure: they depend on their arguments alone.
// Marshal writes the state for the snapshot of the index that stands beside a
// stream; FromSnapshot reads it back.
package state
