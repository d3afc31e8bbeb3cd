// Package price holds the prices of models: a table by model names, and a model that counts
// the cost of its replies.
package price

import (
	"context"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// perTokens is the number of tokens that prices refer to.
const perTokens = 1_000_000

// Price is a model's price, in US dollars for a million tokens.
type Price struct {
	Input  float64 // of a prompt
	Cached float64 // of the part of a prompt that the provider had in its cache
	Output float64 // of a reply, with its reasoning
}

// Cost returns the cost of a reply, in US dollars.
func (p Price) Cost(u op.Usage) float64 {
	fresh := max(u.Prompt-u.Cached, 0)
	return (float64(fresh)*p.Input + float64(u.Prompt-fresh)*p.Cached + float64(u.Completion)*p.Output) / perTokens
}

// Most returns the maximal cost of tokens of an unknown kind, in US dollars.
func (p Price) Most(tokens int) float64 {
	return float64(tokens) * max(p.Input, p.Cached, p.Output) / perTokens
}

// Model returns a model whose replies state their cost, except where m stated it itself. It is as safe for concurrent
// use as m.
func Model(m model.Model, p Price) model.Model { return priced{m, p} }

type priced struct {
	model.Model
	price Price
}

func (m priced) Ask(ctx context.Context, r model.Request, on func(model.Delta)) (model.Reply, error) {
	reply, err := m.Model.Ask(ctx, r, on)
	if err == nil && reply.Usage.Priced == 0 {
		reply.Usage.Priced = reply.Usage.Tokens()
		reply.Usage.USD = m.price.Cost(reply.Usage)
	}
	return reply, err
}
