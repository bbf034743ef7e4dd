// SPDX-License-Identifier: Apache-2.0

package onnode_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
)

// local runs commands here, as a node would.
type local struct{}

func (local) Run(ctx context.Context, _ string, c onnode.Command) (onnode.Output, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin = bytes.NewReader(c.Stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ee, ok := errors.AsType[*exec.ExitError](err); ok {
		return onnode.Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: ee.ExitCode()}, nil
	}
	return onnode.Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}, err
}

func TestWriteInARealShell(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a b", "-x '\"$(id)", "conf")
	for _, content := range []string{"first\n", "second\x00with zero\n"} {
		if err := onnode.Write(t.Context(), local{}, "n1", file, 0o640, []byte(content)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(file)
		if err != nil || string(got) != content {
			t.Fatalf("got %q, %v; want %q", got, err, content)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}

func TestExitErrorSaysTheLastLine(t *testing.T) {
	t.Parallel()
	_, err := onnode.Do(t.Context(), local{}, "n7", "sh", "-c", "echo out; echo first >&2; echo 'E: no space' >&2; exit 100")
	ee, ok := errors.AsType[*onnode.ExitError](err)
	if !ok || ee.Output.Exit != 100 {
		t.Fatalf("got %v", err)
	}
	if want := "node n7: sh: exit status 100: E: no space"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !strings.Contains(string(ee.Text()), "first") || !strings.Contains(string(ee.Text()), "out") {
		t.Errorf("text %q", ee.Text())
	}
}

// agents answer the agent's commands by name, and keep what they were given.
type agents struct {
	answers map[string]onnode.Output
	stdin   map[string]string
}

func (a agents) Run(_ context.Context, _ string, c onnode.Command) (onnode.Output, error) {
	if len(c.Argv) != 2 || c.Argv[0] != onnode.AgentPath {
		return onnode.Output{}, errors.New("not the agent: " + strings.Join(c.Argv, " "))
	}
	a.stdin[c.Argv[1]] = string(c.Stdin)
	return a.answers[c.Argv[1]], nil
}

func TestAgent(t *testing.T) {
	t.Parallel()
	nodes := agents{stdin: map[string]string{}, answers: map[string]onnode.Output{
		"good": {Stdout: []byte(`{"a":1}`)},
		"odd":  {Stdout: []byte("Segmentation fault")},
		"bad":  {Stdout: []byte("{}"), Exit: 1},
	}}
	var out struct{ A int }
	if err := onnode.Agent(t.Context(), nodes, "n1", map[string]int{"mtu": 9000}, &out, "good"); err != nil || out.A != 1 {
		t.Errorf("got %+v, %v", out, err)
	}
	if got := nodes.stdin["good"]; got != `{"mtu":9000}` {
		t.Errorf("stdin %s", got)
	}
	if err := onnode.Agent(t.Context(), nodes, "n1", nil, &out, "odd"); err == nil || errkind.Of(err) != errkind.Internal {
		t.Errorf("odd: %v", err)
	}
	if err := onnode.Agent(t.Context(), nodes, "n1", nil, &out, "bad"); err == nil {
		t.Error("bad: no error")
	}
}
