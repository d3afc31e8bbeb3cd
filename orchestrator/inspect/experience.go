package inspect

import (
	"anamnesis/anamnesis/experience"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// Experienced reads a task's operations for the counters of its cards.
func Experienced(h taskdir.Home, id string) (*experience.Log, error) {
	e := new(experience.Log)
	err := taskdir.EachOp(h, id, func(o op.Op) error {
		e.Add(&o)
		return nil
	})
	return e, err
}
