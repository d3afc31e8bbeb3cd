package memory

import (
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
)

// completeTasks is how many tasks are played on the complete path, per arm.
const completeTasks = 1

// CompleteReport tells whether the fast path and the complete one agree: the
// same tasks with real processes under the supervisor and a real disk.
type CompleteReport struct {
	Played int      `json:"played"`
	Differ []string `json:"differ"` // tasks whose figures differ in anything
}

// complete plays some tasks of each row both ways.
func (b *bench) complete(ctx context.Context, rows []Row) (*CompleteReport, error) {
	rep := &CompleteReport{Differ: []string{}}
	disk, err := os.MkdirTemp("", "anamnesis-bench-disk-")
	if err != nil {
		return nil, fmt.Errorf("bench memory, complete path: %w", err)
	}
	defer os.RemoveAll(disk)
	slow := &bench{Options: b.Options, dir: disk, src: b.src}
	for _, row := range rows {
		for _, arm := range Arms() {
			if arm.Name != ArmAnamnesis+"-w10" && arm.Name != ArmMaskJump {
				continue
			}
			for task := range completeTasks {
				fast, err := b.one(ctx, &row.Params, &arm, task, "")
				if err != nil {
					return nil, err
				}
				full, err := slow.one(ctx, &row.Params, &arm, task, b.Program)
				if err != nil {
					return nil, err
				}
				rep.Played++
				if !reflect.DeepEqual(fast, full) {
					rep.Differ = append(rep.Differ, fmt.Sprintf("%s, task %d, %s: fast %+v, complete %+v", row.Name, task, arm.Name, fast, full))
				}
			}
		}
	}
	return rep, nil
}

func (r *CompleteReport) writeText(w io.Writer) {
	fmt.Fprintf(w, "\nThe complete path (processes under the supervisor, a real disk): %d tasks played both ways, %d differ\n", r.Played, len(r.Differ))
	for _, d := range r.Differ {
		fmt.Fprintln(w, d)
	}
}
