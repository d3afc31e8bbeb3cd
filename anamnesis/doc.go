// Package anamnesis decides what to remember when a future is thrown away.
//
// Two things live here:
//
//   - the rule (Overflows) that says when discarded memory is too much for a
//     model to carry raw (how much that is, package attention knows);
//   - the pass (Pass), which turns discarded operations into one hot block for
//     the model's context and into knowledge cards for later tasks.
//
// A pass asks a model when it is given one, never for more attention than the
// model has, and checks what comes back against the operations themselves.
// Without a model, or with one that answers rubbish, a deterministic extractor
// writes block and card from the operations alone, so a jump never leaves the
// agent without its memory.
//
// What tools printed is evidence and only ever quoted: nothing in it is taken
// as an instruction by the code, and the model is told the same.
package anamnesis
