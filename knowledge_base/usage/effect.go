package usage

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Effect is what the experiment says of unreviewed cards: how often tasks ended well
// that were shown one, and that one was withheld from. A task counts once for each card.
type Effect struct {
	Tasks        int     `json:"tasks"`
	Shown        int     `json:"shown"` // pairs of a card and a task
	ShownGood    int     `json:"shown_good"`
	Withheld     int     `json:"withheld"`
	WithheldGood int     `json:"withheld_good"`
	Difference   float64 `json:"difference"` // of the shares, shown less withheld
	// Low and High bound it with 95 %: a percentile bootstrap over tasks.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

const resamples = 2000

// Effect compares the tasks of the experiment, nil: there are none of both kinds.
func (t *Tally) Effect() *Effect {
	byTask := make(map[string]Effect)
	for key, e := range t.ends {
		if e.Trial == "" || e.Ending == Unknown {
			continue
		}
		x, good := byTask[key[1]], 0
		if e.Ending == Good {
			good = 1
		}
		if e.Trial == Withheld {
			x.Withheld, x.WithheldGood = x.Withheld+1, x.WithheldGood+good
		} else {
			x.Shown, x.ShownGood = x.Shown+1, x.ShownGood+good
		}
		byTask[key[1]] = x
	}
	var tasks []Effect
	for _, x := range byTask {
		tasks = append(tasks, x)
	}
	slices.SortFunc(tasks, func(a, b Effect) int { // the same log, the same interval
		return cmp.Or(cmp.Compare(a.Shown, b.Shown), cmp.Compare(a.ShownGood, b.ShownGood), cmp.Compare(a.Withheld, b.Withheld), cmp.Compare(a.WithheldGood, b.WithheldGood))
	})
	all := sum(tasks)
	if all.Shown == 0 || all.Withheld == 0 {
		return nil
	}
	r := rand.New(rand.NewPCG(1, uint64(len(tasks))))
	var drawn []float64
	for range resamples {
		sample := make([]Effect, len(tasks))
		for i := range sample {
			sample[i] = tasks[r.IntN(len(tasks))]
		}
		if s := sum(sample); s.Shown > 0 && s.Withheld > 0 {
			drawn = append(drawn, s.Difference)
		}
	}
	slices.Sort(drawn)
	all.Low, all.High = drawn[len(drawn)*25/1000], drawn[len(drawn)*975/1000]
	return &all
}

func sum(tasks []Effect) (s Effect) {
	for _, x := range tasks {
		s.Shown, s.ShownGood, s.Withheld, s.WithheldGood = s.Shown+x.Shown, s.ShownGood+x.ShownGood, s.Withheld+x.Withheld, s.WithheldGood+x.WithheldGood
	}
	s.Tasks = len(tasks)
	if s.Shown > 0 && s.Withheld > 0 {
		s.Difference = float64(s.ShownGood)/float64(s.Shown) - float64(s.WithheldGood)/float64(s.Withheld)
	}
	return s
}

// String says it in one line.
func (e *Effect) String() string {
	return fmt.Sprintf("experiment: %d of %d ended well with an unreviewed card, %d of %d where it was withheld: %+.0f points (95 %% interval %+.0f to %+.0f), %d tasks",
		e.ShownGood, e.Shown, e.WithheldGood, e.Withheld, 100*e.Difference, 100*e.Low, 100*e.High, e.Tasks)
}
