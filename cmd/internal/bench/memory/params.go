package memory

import (
	"fmt"

	"anamnesis/cmd/internal/bench/depot"
)

// Params are the numbers of World B and of its agent. They were committed
// before the first result and are not fitted to one.
type Params struct {
	depot.Params

	// Compliance is the probability that the agent avoids an option it recalls
	// to have failed in the present state. Recorded models repeat a failed call
	// that they can see in 4 to 27 % of cases; in the tau-bench runs this bench
	// reads, gpt-4o repeats 22 % of them to the letter.
	Compliance float64
	// Care is the probability that the agent, writing down a failure in its own
	// words, says in which state it happened.
	Care float64
	// Whim is how much of the agent's preference among options is a new draw each
	// time and not a habit.
	Whim float64

	EAS    int // of the model, tokens
	Window int // of the model, tokens

	MaxSteps int // of a task
	// Budget of a task in tokens, priced as MaxBudget says.
	Budget int
}

// The prices of tokens beside one uncached prompt token, as with the large
// providers' list prices: a cached one costs a tenth, one of output five.
const (
	cachedPrice = 0.1
	outputPrice = 5.0
)

// Defaults are the parameters of the headline row: deep worlds, compliance
// 0.85, a model of EAS 16k with a window of 128k.
func Defaults() Params {
	return Params{
		Params: depot.Params{
			Deep: true, Decisions: 2, Options: 4, Garden: 0.35, Hint: 0.5, Licence: 0.5, Activations: 3, OutputTokens: [2]int{80, 900},
		},
		Compliance: 0.85, Care: 0.8, Whim: 0.5, EAS: 16_000, Window: 128_000, MaxSteps: 200, Budget: 500_000,
	}
}

// Row is one row of the sweep.
type Row struct {
	Name   string
	Params Params
}

// headlines is how many rows of Sweep are played without `--sweep`.
const headlines = 3

// Sweep is the rows of `--sweep`: the headline, the flat worlds, errors without a
// state, and the corners of compliance, EAS and depth.
func Sweep() []Row {
	rows := []Row{
		{"deep, compliance 0.85, EAS 16k", Defaults()}, {"flat, compliance 0.85, EAS 16k", with(func(p *Params) { p.Deep = false })},
		{"deep, compliance 0.85, EAS 16k, errors that do not name their state", with(func(p *Params) { p.Bare = true })},
	}
	for _, deep := range []bool{true, false} {
		for _, eas := range []int{4_000, 64_000} {
			for _, compliance := range []float64{0.5, 0.95} {
				rows = append(rows, Row{rowName(deep, compliance, eas), with(func(p *Params) { p.Deep, p.EAS, p.Compliance = deep, eas, compliance })})
			}
		}
	}
	return rows
}

func with(change func(*Params)) Params {
	p := Defaults()
	change(&p)
	return p
}

func rowName(deep bool, compliance float64, eas int) string {
	world := "flat"
	if deep {
		world = "deep"
	}
	return fmt.Sprintf("%s, compliance %.2f, EAS %dk", world, compliance, eas/1000)
}
