// Package agent reads agent specs: YAML files that define an agent's prompt, model, tools,
// subagents, and the rules for its calls. It resolves what a spec extends, fills in system
// prompts and collects a repository's instructions (AGENTS.md).
//
// A spec is found by its name in the project (.anamnesis/agents/NAME.yaml), in the user's
// configuration, or among those embedded in the program (agents/). What a project brings is
// used only if a user approved its present content; see Loaded.Allow.
//
// Each call reads the files anew; a Loader is safe for concurrent use.
package agent
