package inbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/provision/onnode"
	"github.com/ironrail/ironrail/provision/stage"
)

// probes are programs that must run when their package is asked for: a package
// that is installed and cannot start is no driver.
var probes = []struct {
	pkg  string
	argv []string
}{
	{"ibverbs-utils", []string{"ibv_devices"}},
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
	have, err := b.installed(ctx, t.Node.Name, slices.Sorted(maps.Keys(repo.Packages)))
	if err != nil {
		return none, driver.Installed{}, err
	}
	in := driver.Installed{Packages: have, Modules: needed(t.Node)}
	if wrong := differences(t.Driver.Packages, repo.Packages, have); len(wrong) > 0 {
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

// installed asks dpkg which of the packages are fully installed. dpkg-query
// ends with status 1 when it does not know one; what it does know it prints.
func (b *Inbox) installed(ctx context.Context, node string, packages []string) (map[string]string, error) {
	argv := append([]string{"dpkg-query", "--show", "--showformat=${Package}\t${Version}\t${db:Status-Status}\n", "--"}, packages...)
	out, err := b.nodes.Run(ctx, node, onnode.Command{Argv: argv})
	if err != nil {
		return nil, fmt.Errorf("node %s: dpkg-query: %w", node, err)
	}
	if out.Exit > 1 {
		return nil, &onnode.ExitError{Node: node, Argv: argv, Output: out}
	}
	return parseInstalled(out.Stdout), nil
}

// parseInstalled reads name, version and status, split by tabs, a line each.
func parseInstalled(b []byte) map[string]string {
	have := map[string]string{}
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) == 3 && f[0] != "" && f[1] != "" && f[2] == "installed" {
			have[f[0]] = f[1]
		}
	}
	return have
}

// differences lists what is missing or of another version. Packages that were
// asked for must be there; others of the repository may have been replaced by an
// alternative, but when they are there they are its version.
func differences(asked []string, repo, have map[string]string) []string {
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
