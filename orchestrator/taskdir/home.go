package taskdir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

const worldsDir = "worlds"

// Home holds the paths of the program's files. $ANAMNESIS_HOME moves all of them to one
// place; without it they are in the XDG base directories. Directories are created with mode
// 0700, files with 0600.
type Home struct {
	User   string // the user's home directory: refused as a world
	State  string // tasks, worlds, live tasks
	Data   string // the knowledge base
	Config string // eas.yaml overlay
	// FileLimitBytes is worldstate.Options.FileLimitBytes of every world.
	FileLimitBytes int64
	// StoreLimitBytes is worldstate.Options.SizeLimitBytes of every world.
	StoreLimitBytes int64
	// Secrets is worldstate.Options.Secrets of every world.
	Secrets []string
	// ReviewedOnly: tasks are shown reviewed cards only.
	ReviewedOnly bool
	// Remote is the bucket whose tasks this home has copies of, to be read; empty: it has tasks of its own.
	Remote string
	// Share stores an object in a bucket that the user set, where homes tell one another what tasks showed and users
	// reviewed, and Shared is the folder with what this home has read of it; nil and empty: there is none.
	Share  func(ctx context.Context, name string, data []byte) error
	Shared string
	// Standing says how a task stands if no process of this machine runs it; nil: state.State.Standing does.
	Standing func(task string, st *state.State) string
}

// FindHome derives the places, and the limits of snapshots, from the environment.
func FindHome(getenv func(string) string) (Home, error) {
	h, err := findPlaces(getenv)
	if err == nil {
		h.FileLimitBytes, h.StoreLimitBytes, err = SnapshotLimits(getenv)
		h.Secrets = keptIgnored(h.Setting("keep_ignored", getenv))
		h.ReviewedOnly = h.Setting("recall", getenv) == RecallReviewed
	}
	return h, err
}

// RecallReviewed is the value of the setting recall with which tasks are shown reviewed cards only.
const RecallReviewed = "reviewed-only"

// Setting reads a setting from the environment or the user's config.yaml. Package settings checks the file.
func (h *Home) Setting(key string, getenv func(string) string) string {
	if text := getenv("ANAMNESIS_" + strings.ToUpper(key)); text != "" {
		return text
	}
	data, err := os.ReadFile(filepath.Join(h.Config, "config.yaml"))
	// Patterns begin with characters that YAML quotes.
	line := regexp.MustCompile(`(?m)^` + key + `:[ \t]*["']?([^"'#\n]*?)["']?[ \t]*(?:#.*)?$`)
	if found := line.FindSubmatch(data); err == nil && found != nil {
		return string(found[1])
	}
	return ""
}

// keptIgnored reads which ignored files snapshots hold: patterns of names, separated by spaces;
// none: no file. nil: not set.
func keptIgnored(text string) []string {
	switch text {
	case "":
		return nil
	case "none":
		return []string{}
	}
	return strings.Fields(text)
}

// SnapshotLimits reads how large a file in a snapshot may be, and a directory's store of
// snapshots, from ANAMNESIS_FILE_LIMIT and ANAMNESIS_STORE_LIMIT: a number of bytes, of
// K, M or G, or none. 0: it is not set; negative: none.
func SnapshotLimits(getenv func(string) string) (file, store int64, err error) {
	if file, err = sizeLimit(getenv, "ANAMNESIS_FILE_LIMIT"); err == nil {
		store, err = sizeLimit(getenv, "ANAMNESIS_STORE_LIMIT")
	}
	return file, store, err
}

func sizeLimit(getenv func(string) string, name string) (int64, error) {
	text := getenv(name)
	switch text {
	case "":
		return 0, nil
	case "none":
		return -1, nil
	}
	digits, shift := text, 0
	if i := strings.IndexByte("KMG", text[len(text)-1]); i >= 0 {
		digits, shift = text[:len(text)-1], 10*(i+1)
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%s %q: not a size; set a number of bytes such as 500M or 2G, or none", name, text)
	}
	return n << shift, nil
}

func findPlaces(getenv func(string) string) (Home, error) {
	user := getenv("HOME")
	if root := getenv("ANAMNESIS_HOME"); root != "" {
		abs, err := filepath.Abs(root)
		if err != nil {
			return Home{}, fmt.Errorf("ANAMNESIS_HOME %q: %w", root, err)
		}
		return Home{User: user, State: abs, Data: abs, Config: abs}, nil
	}
	if user == "" {
		return Home{}, errors.New(
			"neither ANAMNESIS_HOME nor HOME is set: set one of them, so that tasks have a folder")
	}
	xdg := func(name, fallback string) string {
		if dir := getenv(name); filepath.IsAbs(dir) {
			return filepath.Join(dir, "anamnesis")
		}
		return filepath.Join(user, fallback, "anamnesis")
	}
	return Home{
		User:   user,
		State:  xdg("XDG_STATE_HOME", ".local/state"),
		Data:   xdg("XDG_DATA_HOME", ".local/share"),
		Config: xdg("XDG_CONFIG_HOME", ".config"),
	}, nil
}

// Task is the folder of one task's stream.
func (h Home) Task(id string) string { return filepath.Join(h.State, "tasks", id) }

// Vault is the file with the values of the markers in a task's stream.
func (h Home) Vault(id string) string { return filepath.Join(h.Task(id), VaultName) }

// Cache is where commands in a sandbox keep the caches of their build tools.
func (h Home) Cache() string { return filepath.Join(h.State, "cache") }

// Projects is where programs that projects bring keep caches and their own home directories;
// see guard.Sandbox.ForProject.
func (h Home) Projects() string { return filepath.Join(h.State, "projects") }

// Empty is the empty directory where the user's own MCP servers run.
func (h Home) Empty() string { return filepath.Join(h.State, "empty") }

// Temp is /tmp of a task's commands.
func (h Home) Temp(id string) string { return filepath.Join(h.Task(id), "tmp") }

// Quarantine is where files of a task's commands that git would run are moved to.
func (h Home) Quarantine(id string) string { return filepath.Join(h.Task(id), "quarantine") }

// Runs is where commands that run are recorded; see package quarantine.
func (h Home) Runs() string { return filepath.Join(h.State, "runs") }

// Socket is where a live task listens.
func (h Home) Socket(id string) string { return filepath.Join(h.Task(id), "live.sock") }

// Worlds is the folder of the stores of all directories.
func (h Home) Worlds() string { return filepath.Join(h.State, worldsDir) }

// Store is the bare repository with the snapshots of a directory. Tasks on one directory share
// it, and so share unchanged objects.
func (h Home) Store(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(h.State, worldsDir, hex.EncodeToString(sum[:8])+".git")
}

// StoreOf is the store of a task's snapshots, whose name the record has: this home's, also if the
// record was made in a home at another path.
func (h Home) StoreOf(o *op.TaskOpened) string {
	return filepath.Join(h.State, worldsDir, filepath.Base(o.Store))
}

// ErrElsewhere: a task's directory was named in another home, of which this one is a copy, or
// before this home was moved.
var ErrElsewhere = errors.New("recorded in another home")

// CheckOwn returns ErrElsewhere, with the remedy, unless a task's directory was named in this
// home: another home's tasks may work in it.
func (h Home) CheckOwn(o *op.TaskOpened) error {
	home := filepath.Dir(filepath.Dir(o.Store))
	there, thereErr := os.Stat(home)
	here, err := os.Stat(h.State)
	if home == h.State || err == nil && thereErr == nil && os.SameFile(here, there) {
		return nil
	}
	err = fmt.Errorf("task %s: %w, %s, in the directory %s", o.Task, ErrElsewhere, home, o.Dir)
	return remedy.With(err, remedy.Relocate, o.Task)
}

// Stores lists the stores of all directories, sorted.
func (h Home) Stores() ([]string, error) {
	stores, err := h.folders(worldsDir, func(name string) bool { return strings.HasSuffix(name, ".git") })
	for i, name := range stores {
		stores[i] = filepath.Join(h.Worlds(), name)
	}
	return stores, err
}

// folders lists the folders in a folder of the state that fit, sorted.
func (h Home) folders(in string, fits func(name string) bool) (names []string, err error) {
	entries, err := os.ReadDir(filepath.Join(h.State, in))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", in, err)
	}
	for _, e := range entries {
		if e.IsDir() && fits(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// KnowledgeBase is the folder of the global cards.
func (h Home) KnowledgeBase() string { return filepath.Join(h.Data, "knowledge_base") }

// EASOverlay is the user's own EAS table.
func (h Home) EASOverlay() string { return filepath.Join(h.Config, "eas.yaml") }

// Embedder is the file that names the embedding model, if it is not the built-in one.
func (h Home) Embedder() string { return filepath.Join(h.Config, "embedder.yaml") }

// MCPServers is the user's own list of MCP servers.
func (h Home) MCPServers() string { return filepath.Join(h.Config, "mcp.json") }

// Logins is the folder of the user's logins at MCP servers.
func (h Home) Logins() string { return filepath.Join(h.State, "mcp-logins") }

// Agents is the folder of the user's own agent specs.
func (h Home) Agents() string { return filepath.Join(h.Config, "agents") }

// Instructions are the folders that hold the user's own instructions, this program's last.
func (h Home) Instructions() []string {
	return []string{filepath.Join(h.User, ".claude"), h.Config}
}

// Prices is the user's own table of what models cost.
func (h Home) Prices() string { return filepath.Join(h.Config, "prices.yaml") }

// Web is the user's configuration of the network tools.
func (h Home) Web() string { return filepath.Join(h.Config, "web.yaml") }

// Rules is the user's own file of rules.
func (h Home) Rules() string { return filepath.Join(h.Config, "rules.yaml") }

// Approvals is the file of approvals of what repositories bring.
func (h Home) Approvals() string { return filepath.Join(h.State, "approvals.json") }

// Excluded are the folders that are never part of a world.
func (h Home) Excluded() []string { return append(h.Roots(), sharedLivePath()) }

// Roots are the home's folders.
func (h Home) Roots() []string {
	roots := []string{h.State, h.Data, h.Config}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// Tasks lists the ids of all tasks, sorted.
func (h Home) Tasks() ([]string, error) {
	return h.folders("tasks", func(name string) bool { return CheckTaskID(name) == nil })
}

// HasTask reports whether a task exists. If that cannot be determined, it reports true.
func (h Home) HasTask(id string) bool {
	_, err := os.Lstat(h.Task(id))
	return !errors.Is(err, os.ErrNotExist)
}

// NoTask returns the error for a task that does not exist. Its folder may exist.
func (h Home) NoTask(id string) error {
	if h.HasTask(id) {
		err := fmt.Errorf("%w: %s: there is no stream in %s", ErrNoTask, id, h.Task(id))
		return remedy.With(err, remedy.FindStream, id)
	}
	return remedy.With(fmt.Errorf("%w: %s", ErrNoTask, id), remedy.ListTasks, "")
}

var taskID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// CheckTaskID returns an error for a name that cannot be a task's id, which is also a folder
// and part of a git ref.
func CheckTaskID(id string) error {
	inRef := !strings.Contains(id, "..") && !strings.HasSuffix(id, ".") && !strings.HasSuffix(id, ".lock")
	if len(id) > 80 || !taskID.MatchString(id) || !inRef {
		return fmt.Errorf("%w: %q cannot be a task's name: letters, digits, '_', '-' and '.', at most 80",
			ErrNoTask, id)
	}
	return nil
}

var nonWord = regexp.MustCompile(`[^a-z0-9]+`)

// NewTaskID makes an id from a request: task_N_first_words, with the next free N among the
// user's tasks, and ends it with suffix. It creates the task's folder, which reserves the id.
func NewTaskID(h Home, request, suffix string) (string, error) {
	gate, err := lockGate(h)
	if err != nil {
		return "", fmt.Errorf("reserve a task's name: %w", err)
	}
	defer gate.Close()
	ids, err := h.Tasks()
	if err != nil {
		return "", err
	}
	words := strings.Trim(nonWord.ReplaceAllString(strings.ToLower(request), "_"), "_")
	if parts := strings.SplitN(words, "_", 5); len(parts) == 5 {
		words = strings.Join(parts[:4], "_")
	}
	words = strings.Trim(words[:min(len(words), 32)], "_")
	own := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { // subagents' are PARENT.N
		parent, _, _ := strings.Cut(id, ".")
		_, found := slices.BinarySearch(ids, parent)
		return found && parent != id
	})
	for n := len(own) + 1; ; n++ {
		id := strings.TrimSuffix(fmt.Sprintf("task_%d_%s", n, words), "_") + suffix
		prefix := fmt.Sprintf("task_%d_", n)
		taken := slices.ContainsFunc(ids, func(o string) bool { return o == id || strings.HasPrefix(o+"_", prefix) })
		if taken {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(h.Task(id)), 0o700); err != nil {
			return "", fmt.Errorf("reserve a task's name: %w", err)
		}
		if err := os.Mkdir(h.Task(id), 0o700); err == nil {
			return id, nil
		} else if !errors.Is(err, os.ErrExist) { // a named task has taken it
			return "", fmt.Errorf("reserve a task's name: %w", err)
		}
	}
}

// OutsideHome rejects a world inside the program's state: a jump would revert the state, too.
// A world around the state is fine: it excludes the state.
func OutsideHome(h Home, dir string) error {
	for _, root := range h.Roots() {
		real, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue // it does not exist yet
		}
		if dir == real || strings.HasPrefix(dir, real+string(filepath.Separator)) {
			err := fmt.Errorf("world %s: %w: it is inside %s, where the program keeps its state", dir,
				worldstate.ErrRefused, real)
			return remedy.With(err, remedy.OtherDirectory, "")
		}
	}
	return nil
}

// WorldDir resolves the directory of a world: absolute, without links. Errors:
// worldstate.ErrNoDirectory.
func WorldDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	info, statErr := os.Stat(abs)
	switch err = cmp.Or(err, statErr); {
	case err == nil && info.IsDir():
		return abs, nil
	case err == nil:
		err = &fs.PathError{Op: "open", Path: abs, Err: syscall.ENOTDIR}
	case errors.Is(err, fs.ErrNotExist) && dir == ".":
		return "", fmt.Errorf("%w: the current one was removed; change to another", worldstate.ErrNoDirectory)
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s", worldstate.ErrNoDirectory, dir)
	}
	return "", fmt.Errorf("%w: %w", worldstate.ErrNoDirectory, err)
}

// RemoteName is the file, beside the stream, of a task that is kept in a bucket: this home has a copy.
const RemoteName = "remote.json"

var ErrKept = errors.New("kept in a bucket, and this home has a copy of it")

// KeptAs returns the task, or the one whose agent began it, if it is kept in a bucket; else an empty name.
func (h Home) KeptAs(task string) string {
	for {
		if _, err := os.Lstat(filepath.Join(h.Task(task), RemoteName)); err == nil {
			return task
		}
		i := strings.LastIndexByte(task, '.')
		if i < 0 {
			return ""
		}
		task = task[:i]
	}
}

// BundlesName is the folder, beside the stream, with bundles of git commits.
const BundlesName = "bundles"

// VaultName is the file's name, beside the stream.
const VaultName = "vault.jsonl"

// SubagentID returns the id of the n-th subagent's task.
func SubagentID(parent string, n int) string {
	const most = 74 // bytes of the parent's id, so that the whole is a valid id
	return fmt.Sprintf("%s.%d", strings.TrimRight(parent[:min(len(parent), most)], "."), n)
}
