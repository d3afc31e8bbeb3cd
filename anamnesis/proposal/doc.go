// Package proposal finds reasons to change the table of effective attention
// spans: a model's own work history, measurements of the probe, and published
// figures. What it finds are proposals, each with its evidence; a
// user accepts or rejects them one by one (Decisions). All figures come from
// code.
package proposal
