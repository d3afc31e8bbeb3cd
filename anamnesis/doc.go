// Package anamnesis decides what to remember of a discarded span of operations. Pass turns the span
// into one hot block for the model's context and into knowledge cards for later tasks.
// note.Overflows is the rule that requires a pass.
//
// A pass asks a model if it is given one, never about more text than the model attends to, and checks
// the reply against the operations. Without a usable reply a deterministic extractor writes the block
// from the operations alone, so that a jump never leaves the agent without its memory. Only models
// word cards; PairCards offers a user the evidence for cards of their own.
//
// The output of tools is evidence and is only quoted. The code follows no instruction in it, and the
// prompt tells the model the same.
package anamnesis
