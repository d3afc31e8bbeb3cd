package autorun

import (
	"iter"
	"strings"
)

// rules visits the forms of paths, each with the program that runs or loads such a file by itself, and when.
// A form ends the path of such a file, in any directory; its last name may be a pattern of path.Match, and a
// form that ends with / covers everything beneath it.
func rules() iter.Seq2[string, string] {
	return func(yield func(form, by string) bool) {
		for _, p := range programs() {
			for form := range strings.FieldsSeq(p.forms) {
				if !yield(form, p.by) {
					return
				}
			}
		}
	}
}

// program is what runs or loads files by itself.
type program struct {
	by    string // its name, and when
	forms string // of paths, separated by blanks
}

// programs lists what runs by itself when a user opens or enters a directory, or gives an ordinary
// command there. Files that are the command's own input, such as a Makefile or the scripts of a
// package.json, are not listed. Sources: each program's own documentation.
func programs() []program {
	return []program{
		// Editors: a folder is opened.
		{"VS Code, tasks, servers and paths of tools", ".vscode/tasks.json .vscode/settings.json .vscode/launch.json " +
			".vscode/extensions.json .vscode/mcp.json *.code-workspace"},
		{"Zed, tasks and language servers", ".zed/"},
		{"JetBrains IDEs, run configurations, watchers and startup tasks", ".idea/ .run/"},
		{"Fleet, run configurations", ".fleet/"},
		{"Visual Studio, tasks and launch settings", ".vs/"},
		{"development containers, initializeCommand on the host", ".devcontainer/ .devcontainer.json"},
		{"Vim, with exrc", ".vimrc .exrc .lvimrc"},
		{"Neovim, with exrc", ".nvimrc .nvim.lua"},
		{"Helix, language servers and formatters", ".helix/"},
		{"Sublime Text, build systems and language servers", "*.sublime-project"},
		{"Metals and JetBrains IDEs, build servers", ".bsp/"},
		{"Haskell Language Server, programs of a cradle", "hie.yaml"},
		{"rust-analyzer, commands in place of Cargo", "rust-analyzer.toml .rust-analyzer.toml"},
		{"Lua language server, plugins", ".luarc.json*"},
		{"Elixir, when an editor formats", ".formatter.exs"},
		{"ESLint, when an editor opens a file", ".eslintrc* eslint.config.*"},
		{"Prettier, when an editor formats", ".prettierrc* prettier.config.*"},
		{"Stylelint, when an editor opens a file", ".stylelintrc* stylelint.config.*"},
		{"pylint, init-hook and plugins", ".pylintrc* pylintrc*"},
		{"RuboCop, require", ".rubocop.yml"},
		{"latexmk, when an editor saves", ".latexmkrc latexmkrc"},
		{"Gitpod, tasks of a workspace", ".gitpod.yml"},
		{"Replit, run and onBoot", ".replit"},
		{"Firebase Studio, onCreate and onStart", ".idx/"},
		{"Emacs, directory variables", ".dir-locals.el .dir-locals-2.el"},
		// Shells and version managers: a directory is entered, or a shim is run.
		{"direnv, at cd", ".envrc"},
		{"autoenv, at cd", ".autoenv*"},
		{"mise, hooks and env at cd, and tasks", "mise.toml mise.*.toml .mise.toml .mise.*.toml .mise/ " +
			"mise/config.toml mise/config.*.toml mise/conf.d/ .mise-tasks/ .rtx.toml"},
		{"mise and asdf, at each shim", ".tool-versions"},
		{"devbox, init_hook", "devbox.json"},
		{"shells, at each start", ".bashrc .bash_profile .profile .zshrc .zshenv .zprofile"},
		// Version control: an ordinary command.
		{"git, hooks by husky", ".husky/"},
		{"git, hooks by core.hooksPath", ".githooks/ .git-hooks/"},
		{"git, hooks by lefthook", "lefthook.* .lefthook.* lefthook-local.* .lefthook-local.* .lefthook/"},
		{"git, hooks by pre-commit", ".pre-commit-config.yaml .pre-commit-config.yml prek.toml"},
		{"git, hooks by overcommit", ".overcommit.yml"},
		{"git, hooks by simple-git-hooks", ".simple-git-hooks.* simple-git-hooks.*"},
		{"git, hooks by CaptainHook", "captainhook.json"},
		{"git, hooks by commitlint", ".commitlintrc* commitlint.config.*"},
		{"git, hooks by lint-staged", ".lintstagedrc* lint-staged.config.*"},
		{"git, where an include names it", ".gitconfig"},
		{"git, configuration, hooks, another repository",
			".git/config .git/config.worktree .git/commondir .git/hooks/"},
		{"Mercurial, configuration, hooks, another repository", ".hg/hgrc* .hg/sharedpath"},
		{"Jujutsu, configuration", ".jj/repo/config.toml .jj/workspace-config.toml"},
		{"Sapling, configuration and hooks", ".sl/config"},
		{"Bazaar, configuration", ".bzr/branch/branch.conf"},
		// Agents: a session starts.
		{"Claude Code, hooks, permissions and MCP servers", ".claude/settings.json .claude/settings.local.json " +
			".claude/hooks/ .claude/agents/ .claude/commands/ .claude/skills/ .mcp.json"},
		{"agents, skills and commands", ".agents/skills/ .agents/commands/"},
		{"Cursor, hooks, MCP servers, start commands", ".cursor/mcp.json .cursor/hooks.json .cursor/environment.json"},
		{"Gemini CLI, MCP servers and hooks", ".gemini/settings.json"},
		{"Codex, MCP servers, hooks and notify", ".codex/config.toml .codex/hooks.json"},
		{"opencode, MCP servers, formatters and plugins", "opencode.json opencode.jsonc .opencode/"},
		{"Kimi Code, MCP servers and hooks", ".kimi/"},
		{"Windsurf, hooks and MCP servers", ".windsurf/"},
		{"Qwen Code, MCP servers and hooks", ".qwen/settings.json"},
		{"Amp, MCP servers", ".amp/settings.json"},
		{"Roo Code, MCP servers", ".roo/mcp.json"},
		{"Continue, MCP servers", ".continue/"},
		{"aider, lint-cmd and test-cmd", ".aider.conf.yml"},
		{"Kiro, hooks and MCP servers", ".kiro/"},
		{"Factory, hooks and MCP servers", ".factory/"},
		{"Kilo Code, MCP servers", ".kilocode/mcp.json"},
		{"Trae, MCP servers", ".trae/mcp.json"},
		{"Junie, MCP servers", ".junie/mcp/"},
		{"Crush, language and MCP servers", "crush.json .crush.json"},
		{"Copilot, hooks", ".github/hooks/"},
		// Package managers: any command of theirs.
		{"npm and pnpm, script-shell, registry and hooks",
			".npmrc .pnpmfile.cjs .pnpmfile.mjs pnpmfile.js pnpm-workspace.yaml"},
		{"Yarn, the program itself and plugins", ".yarnrc .yarnrc.yml .yarn/releases/ .yarn/plugins/"},
		{"Node.js under Yarn, at each start", ".pnp.cjs"},
		{"Bun, preload", "bunfig.toml"},
		{"pip, index addresses", "pip.conf"},
		{"Bundler and RubyGems, paths and sources", ".bundle/config .gemrc"},
		// Interpreters, test runners, debuggers and databases: each start.
		{"pytest, at each run", "conftest.py"},
		{"Python, at each start", "sitecustomize.py usercustomize.py *.pth pyvenv.cfg .pdbrc"},
		{"Jupyter, at each start", "jupyter*_config.*"},
		{"Ruby's consoles and debuggers", ".irbrc .pryrc .rdbgrc .byebugrc"},
		{"R, at each start", ".Rprofile .Renviron .RData"},
		{"GHCi, at each start", ".ghci"},
		{"OCaml, at each start", ".ocamlinit"},
		{"Elixir and Erlang, at each start", ".iex.exs .erlang"},
		{"Octave, at each start", ".octaverc"},
		{"Perl's debugger and tests", ".perldb .proverc"},
		{"Clojure, at each start", ".nrepl.edn profiles.clj"},
		{"RSpec, --require", ".rspec"},
		{"Mocha, require", ".mocharc.*"},
		{"gdb and lldb, at each start", ".gdbinit .lldbinit"},
		{"sqlite3 and psql, at each start", ".sqliterc .psqlrc"},
		// Build tools: any command of theirs.
		{"Cargo, runner, linker and wrappers", ".cargo/config.toml .cargo/config"},
		{"rustup, a toolchain by path", "rust-toolchain.toml rust-toolchain"},
		{"Gradle, its wrapper, options of the JVM and scripts",
			"gradle/wrapper/ gradle.properties init.gradle init.gradle.kts"},
		{"Maven, extensions, JVM options and wrapper", ".mvn/"},
		{"Ansible, plugins and connections", "ansible.cfg"},
		{"Bazel", ".bazelrc .bazeliskrc tools/bazel"},
		{"sbt", ".sbtopts .jvmopts"},
		{"MSBuild and NuGet", "Directory.Build.props Directory.Build.targets Directory.Build.rsp nuget.config"},
		// Services that run what is pushed.
		{"continuous integration, when it is pushed", ".github/workflows/ .github/actions/ .gitlab-ci.yml .circleci/ " +
			".forgejo/workflows/ .gitea/workflows/ .buildkite/ .woodpecker/ .woodpecker.y*ml .drone.yml .travis.yml " +
			".cirrus.yml Jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml"},
	}
}
