package orchestrator

import (
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
	"iter"
)

// RecordedCalls reads the calls of a stream in dir, a task's folder, for
// loop.Detect: what the model asked for, in its order, whether it ran or was
// refused, and wherever the task jumped meanwhile.
func RecordedCalls(dir string) ([]loop.Recorded, error) {
	r, err := opstream.OpenReader(dir, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var calls []loop.Recorded
	open := make(map[string]int)    // calls by id
	results := make(map[uint64]int) // and by the seq of their result
	err = eachDecoded(r.Since(0), func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.ModelReplied:
			for _, c := range b.Calls {
				open[c.ID] = len(calls)
				calls = append(calls, loop.Recorded{Tool: c.Name, Args: c.Args, Seq: o.Seq})
			}
		case *op.ToolCalled:
			if i, ok := open[b.Call]; ok {
				calls[i].World, calls[i].Effects, calls[i].Seq = b.World, b.Effects, o.Seq
			}
		case *op.ToolReturned:
			i, ok := open[b.Call]
			if !ok {
				break
			}
			delete(open, b.Call)
			results[o.Seq] = i
			c := &calls[i]
			c.Result, c.Failed = withoutReminder(b), b.IsError || b.Exit != nil && *b.Exit != 0
			if earlier, known := results[b.Repeats]; known && b.Refused {
				c.World = calls[earlier].World // the guard found it to be the same
			}
		}
		return nil
	})
	return calls, err
}

// eachDecoded visits records as operations.
func eachDecoded(records iter.Seq2[opstream.Record, error], visit func(op.Op) error) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		o, err := decode(rec)
		if err != nil {
			return err
		}
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}
