// Package anamnesis decides what to remember of a discarded span of operations: Pass turns
// it into one hot block for the model's context and into knowledge cards for later tasks. When
// a pass is due, note.Overflows says.
//
// A pass asks a model when it is given one, never for more attention than the
// model has, and checks what comes back against the operations themselves.
// Without a model, or with one that answers rubbish, a deterministic extractor
// writes block and card from the operations alone, so a jump never leaves the
// agent without its memory.
//
// The output of tools is evidence and is only quoted. The code takes nothing in it as
// an instruction, and the prompt tells the model the same.
package anamnesis
