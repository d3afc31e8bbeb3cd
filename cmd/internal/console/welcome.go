//go:build unix

package console

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/settings"
	view "anamnesis/cmd/internal/term"
)

// maxAsked is how often a name is asked for.
const maxAsked = 3

// Welcome explains to a user without a model, or without a server for the model that a flag names,
// what to do. A model found on this machine can be used at once, and is then written to the user's
// configuration.
func (c *Console) Welcome(ctx context.Context, set *settings.Settings, flag string) (taken bool, err error) {
	offers := settings.Offers(ctx, c.Getenv, settings.LocalServers(c.Getenv))
	fmt.Fprint(c.Err, view.Fit(c.Err, set.Welcome(offers, flag)))
	noModel := exit.Report(exit.Usagef("no model"))
	if len(offers) == 0 {
		return false, noModel
	}
	question := fmt.Sprintf("Use which, 1 to %d? It is written to that file.", len(offers))
	if len(offers) == 1 {
		question = "Use it? 1 writes it to that file."
	}
	n := 0
	for n < 1 || n > len(offers) {
		text, err := c.Ask(ctx, "\n"+question+" Enter leaves: ")
		if err != nil || text == "" {
			return false, noModel
		}
		if n, err = strconv.Atoi(text); err != nil || n < 1 || n > len(offers) {
			c.notef("%q is not a number from 1 to %d", text, len(offers))
		}
	}
	offer, model := offers[n-1], ""
	for range maxAsked {
		if offer.NeedsModel() {
			if model, err = c.Ask(ctx, "Name of the model, as its provider writes it: "); err != nil {
				return false, noModel
			}
		}
		if err = offer.Save(set.UserFile, model); !errors.Is(err, settings.ErrName) {
			break
		}
		c.notef("%v", err)
	}
	return err == nil, err
}
