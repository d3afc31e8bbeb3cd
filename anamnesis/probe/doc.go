// Package probe measures a model's effective attention span: the longest text
// over which it still answers nearly as well as over a short one.
//
// It asks questions of its own making, of five families (Families), whose
// answers are hidden in filler text of its own making. Both are generated
// from a seed, so that a run can be repeated and no model was trained on it. The score at a base length of 1,000 tokens is the model's own measure.
// Longer lengths are then bisected; at each, Wald's sequential probability
// ratio test decides between 0.90 and 0.75 of the base score, with as few
// questions as that takes. The result is a proposal (Result.Row): nothing is
// written here.
//
// Sources: A. Wald, "Sequential Tests of Statistical Hypotheses", Annals of
// Mathematical Statistics 16 (1945); E. B. Wilson, "Probable Inference, the
// Law of Succession, and Statistical Inference", JASA 22 (1927). The families
// follow what RULER, NoLiMa and MRCR measure; their texts are not used.
package probe
