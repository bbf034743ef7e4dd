// SPDX-License-Identifier: Apache-2.0

// Package onnode is how stages work on an installed node: one command at a
// time, bytes in and bytes out. The caller gives the way there (SSH with pinned
// host keys, or a rehearsal's simulated nodes) as a Nodes.
package onnode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// AgentPath is where the agent program lies on an installed node.
const AgentPath = "/usr/local/sbin/ironrail-agent"

// Command is one program with its arguments; no shell sees it. Stdin may be nil.
type Command struct {
	Argv  []string
	Stdin []byte
	// Stdout and Stderr, where one is set, are given all of their streams while they
	// come, each from one goroutine, and nothing after Run has returned. While a
	// Write does not return, the command waits.
	Stdout, Stderr io.Writer
	// StatusOnly says that the exit status alone decides, and that what the command
	// printed is shown to people only.
	StatusOnly bool
}

// NeedsWhole reports whether the caller reads the Output itself, so that a part of
// it is worth nothing: Run then returns an error when bytes had to be left out.
func (c Command) NeedsWhole() bool { return !c.StatusOnly && c.Stdout == nil && c.Stderr == nil }

// Output is how a command ended. Of long streams the beginning and the end are
// kept, with a line between them that says how much is left out.
type Output struct {
	Stdout, Stderr []byte
	Exit           int
	Omitted        int64 // bytes that were left out
}

// ErrCut is within the error about an output that is longer than what is kept of
// it. It says nothing about the node.
var ErrCut = errors.New("not judged: output cut")

// Whole returns an error around ErrCut when bytes were left out.
func (o Output) Whole() error {
	if o.Omitted == 0 {
		return nil
	}
	kept := int64(len(o.Stdout) + len(o.Stderr))
	return errkind.New(errkind.Unsupported, "%w after %d bytes: %d more were printed", ErrCut, kept, o.Omitted).
		Do("Run the program by hand on the node and see why it prints so much.")
}

// Nodes runs commands on installed nodes. Run returns an error, with its kind,
// only when the command could not be run to its end, or when its output was cut and
// the caller reads it; a status other than zero is no error. When ctx ends, the command is killed. It is safe for concurrent
// use, also for one node.
type Nodes interface {
	Run(ctx context.Context, node string, c Command) (Output, error)
}

// ExitError is a command that ended with a status other than zero.
type ExitError struct {
	Node   string
	Argv   []string
	Output Output
}

// Error names the node, the program, the status and the last line of what it
// said. The line is text from outside: whoever displays it escapes it.
func (e *ExitError) Error() string {
	text := lastLine(e.Output.Stderr)
	if text == "" {
		text = lastLine(e.Output.Stdout)
	}
	if text != "" {
		text = ": " + text
	}
	return fmt.Sprintf("node %s: %s: exit status %d%s", e.Node, e.Argv[0], e.Output.Exit, text)
}

// Text returns all that the command said, errors first.
func (e *ExitError) Text() []byte {
	return bytes.TrimSpace(bytes.Join([][]byte{e.Output.Stderr, e.Output.Stdout}, []byte("\n")))
}

// Do runs a command that must end with status zero and returns its standard
// output; another status is an *ExitError.
func Do(ctx context.Context, nodes Nodes, node string, argv ...string) ([]byte, error) {
	return Feed(ctx, nodes, node, nil, argv...)
}

// NoProgram is the status of a shell that does not have a program (POSIX, XCU 2.8.2).
const NoProgram = 127

// bootIDTime is how long a node may take to say which boot it is.
const bootIDTime = 15 * time.Second

// BootID asks the installed system of a node which boot it is (random(4)); a node that does
// not answer in 15 s is an error.
func BootID(ctx context.Context, nodes Nodes, node string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, bootIDTime)
	defer cancel()
	out, err := Do(ctx, nodes, node, "cat", "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(out)), err
}

// Exec runs a command that must end with status zero, and of which nothing but that
// is read; another status is an *ExitError.
func Exec(ctx context.Context, nodes Nodes, node string, argv ...string) error {
	_, err := finishCommand(ctx, nodes, node, Command{Argv: argv, StatusOnly: true})
	return err
}

// Feed is Do with bytes on the standard input.
func Feed(ctx context.Context, nodes Nodes, node string, stdin []byte, argv ...string) ([]byte, error) {
	return finishCommand(ctx, nodes, node, Command{Argv: argv, Stdin: stdin})
}

// finishCommand runs a command that must end with status zero.
func finishCommand(ctx context.Context, nodes Nodes, node string, c Command) ([]byte, error) {
	out, err := nodes.Run(ctx, node, c)
	if err != nil {
		return nil, fmt.Errorf("node %s: %s: %w", node, c.Argv[0], err)
	}
	if out.Exit != 0 {
		return out.Stdout, &ExitError{Node: node, Argv: c.Argv, Output: out}
	}
	return out.Stdout, nil
}

// writeScript writes its standard input to $1 with mode $2: a temporary file in
// the same folder, flushed, then renamed, so that a cut connection leaves the
// old file or the new one and nothing between.
const writeScript = `set -e
umask 077
d=$(dirname -- "$1")
mkdir -p -- "$d"
t=$(mktemp -- "$d/.ironrail.XXXXXXXX")
trap 'rm -f -- "$t"' EXIT
cat >"$t"
chmod "$2" "$t"
sync "$t"
mv -fT -- "$t" "$1"
`

// Write puts content into a file of the node, atomically, with the folders that
// it needs.
func Write(ctx context.Context, nodes Nodes, node, path string, mode uint32, content []byte) error {
	_, err := Feed(ctx, nodes, node, content, "sh", "-c", writeScript, "sh", path, fmt.Sprintf("%04o", mode))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Agent runs a subcommand of the node's agent with in as JSON on its standard
// input and decodes its standard output into out. When the agent says what went
// wrong, the error has its kind, its words and its action.
func Agent(ctx context.Context, nodes Nodes, node string, in, out any, args ...string) error {
	what := "agent " + strings.Join(args, " ")
	stdin, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	stdout, err := Feed(ctx, nodes, node, stdin, append([]string{AgentPath}, args...)...)
	if err != nil {
		var answer struct {
			Error *wire.TaskError `json:"error"`
		}
		if json.Unmarshal(stdout, &answer) != nil || answer.Error == nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return errkind.New(errkind.Named(answer.Error.Kind), "node %s: %s: %s", node, what, answer.Error.Text).Do(answer.Error.Action)
	}
	if err := json.Unmarshal(stdout, out); err != nil {
		return errkind.New(errkind.Internal, "node %s: %s: answer is not the JSON expected: %w", node, what, err)
	}
	return nil
}

// lastLine returns the last line that says something, cut to a readable length.
func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if r := []rune(line); len(r) > 300 {
		line = string(r[:300]) + "…"
	}
	return line
}
