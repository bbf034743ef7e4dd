// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/internal/onnode"
)

// probes are programs that must run when their package is asked for: a package
// that is installed and cannot start is no driver.
var probes = []struct {
	pkg  string
	argv []string
}{
	{"ibverbs-utils", []string{"ibv_devices"}},
	{"libibverbs-utils", []string{"ibv_devices"}}, // of RHEL
	{"openmpi-bin", []string{"mpirun", "--version"}},
	{"python3-mpi4py", []string{"/usr/bin/python3", "-c", "import mpi4py"}},
}

// Verify implements driver.Kind: the versions of the repository are installed,
// the modules are loaded and the programs start.
func (b *Inbox) Verify(ctx context.Context, t driver.Target) (stage.Observation, driver.Installed, error) {
	none := stage.Observation{State: stage.Unknown}
	repo, ok, err := b.repos.Find(ctx, t.Driver, t.Node.Image.Name)
	if err != nil || !ok {
		none.Evidence = "there is no whole repository to compare the node with"
		return none, driver.Installed{}, err
	}
	m, err := b.on(nil, t)
	if err != nil {
		return none, driver.Installed{}, err
	}
	have, err := m.Installed(ctx, slices.Sorted(maps.Keys(repo.Packages)))
	if err != nil {
		return none, driver.Installed{}, err
	}
	in := driver.Installed{Packages: have, Modules: neededPackages(t.Node)}
	if wrong := listDifferences(t.Driver.Packages, repo.Packages, have); len(wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, in, nil
	}
	for _, m := range in.Modules {
		out, err := b.nodes.Run(ctx, t.Node.Name, onnode.Command{Argv: []string{"test", "-d", "/sys/module/" + m}})
		if err != nil {
			return none, in, fmt.Errorf("node %s: %w", t.Node.Name, err)
		}
		if out.Exit != 0 {
			return stage.Observation{State: stage.Differs, Evidence: "kernel module " + m + " is not loaded"}, in, nil
		}
	}
	for _, p := range probes {
		if !slices.Contains(t.Driver.Packages, p.pkg) {
			continue
		}
		out, err := b.nodes.Run(ctx, t.Node.Name, onnode.Command{Argv: p.argv})
		if err != nil {
			return none, in, fmt.Errorf("node %s: %s: %w", t.Node.Name, p.argv[0], err)
		}
		if out.Exit != 0 {
			return stage.Observation{State: stage.Differs, Evidence: fmt.Sprintf("%s ends with status %d", p.argv[0], out.Exit)}, in, nil
		}
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d packages installed as in the repository", len(have))}, in, nil
}

// listDifferences lists what is missing or of another version. Packages that were
// asked for must be there; others of the repository may have been replaced by an
// alternative, but when they are there they are its version.
func listDifferences(asked []string, repo, have map[string]string) []string {
	var out []string
	for _, p := range slices.Sorted(maps.Keys(repo)) {
		switch {
		case have[p] == repo[p]:
		case have[p] != "":
			out = append(out, fmt.Sprintf("%s is %s, not %s", p, have[p], repo[p]))
		case slices.Contains(asked, p):
			out = append(out, p+" is not installed")
		}
	}
	for _, p := range asked {
		if repo[p] == "" {
			out = append(out, p+" is not in the repository")
		}
	}
	return out
}
