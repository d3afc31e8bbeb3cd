//go:build unix

// Package agent reads agent specs: YAML files that say what an agent is told,
// which model answers, which tools it is offered, which subagents it may call,
// and by which rules its calls are decided. It resolves what a spec extends,
// fills in system prompts and gathers the instructions a repository brings
// (AGENTS.md).
//
// A spec is found by its name in three places: in the project
// (.anamnesis/agents/NAME.yaml), in the user's configuration, and among those
// that come with the program (agents/). What a project brings is used only
// when a user approved it as it is; see Loaded.Allow.
//
// Everything here looks at files when it is called and keeps nothing; a Loader
// is safe for concurrent use.
package agent
