// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/hostfile"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/wire"
)

// kernels are the installed packages with a kernel, or that lead to one.
type kernels struct {
	held, free []string // of dpkg
	conf       string   // of dnf; "": the node has no dnf
}

// kernels asks the package manager.
func (w work) kernels(ctx context.Context) (k kernels, err error) {
	out, err := w.nodes.Run(ctx, w.node, onnode.Command{Argv: []string{"dpkg-query", "--show", "--showformat=${Package}\t${Status}\n", "linux-*"}}) // another status: there are none, or no dpkg
	if err != nil {
		return k, fmt.Errorf("node %s: list the packages of the kernel: %w", w.node, err)
	}
	names := distribution.KernelPackages()
	for line := range strings.Lines(string(out.Stdout)) {
		name, status, _ := strings.Cut(strings.TrimSpace(line), "\t")
		words := strings.Fields(status)
		switch {
		case len(words) != 3 || words[2] != "installed" || !hostfile.Matches(name, names.Dpkg):
		case words[0] == "hold":
			k.held = append(k.held, name)
		default:
			k.free = append(k.free, name)
		}
	}
	k.conf, _, err = w.read(ctx, "/"+hostfile.DnfConf)
	return k, err
}

// excluded reports whether dnf leaves the kernel alone.
func (k kernels) excluded(names []string) bool {
	return hostfile.Exclude(k.conf, names, true) == k.conf
}

// compareHold looks what is held.
func (w work) compareHold(ctx context.Context, want, last wire.HostSettings) ([]string, error) {
	if want.HoldKernel == nil && last.HoldKernel == nil {
		return nil, nil
	}
	k, err := w.kernels(ctx)
	if err != nil {
		return nil, err
	}
	switch names := distribution.KernelPackages().Dnf; {
	case want.HoldKernel == nil && len(k.held) > 0:
		return []string{"on hold: " + strings.Join(k.held, ", ")}, nil
	case want.HoldKernel == nil && k.conf != "" && hostfile.Exclude(k.conf, names, false) != k.conf:
		return []string{"/" + hostfile.DnfConf + " leaves the kernel out of updates"}, nil
	case want.HoldKernel == nil:
		return nil, nil
	case len(k.free) > 0:
		return []string{"not on hold: " + strings.Join(k.free, ", ")}, nil
	case k.conf != "" && !k.excluded(names):
		return []string{"/" + hostfile.DnfConf + " does not leave the kernel out of updates"}, nil
	case len(k.held) == 0 && k.conf == "":
		return []string{"neither dpkg nor dnf has a package with a kernel, so that nothing can be held"}, nil
	}
	return nil, nil
}

// hold holds the kernel, or lets go of it where it was held before.
func (w work) hold(ctx context.Context, want, last wire.HostSettings) error {
	if want.HoldKernel == nil && last.HoldKernel == nil {
		return nil
	}
	k, err := w.kernels(ctx)
	if err != nil {
		return err
	}
	hold := want.HoldKernel != nil
	verb, names := "unhold", k.held
	if hold {
		verb, names = "hold", k.free
	}
	if len(names) > 0 {
		if err := onnode.Exec(ctx, w.nodes, w.node, slices.Concat([]string{"apt-mark", verb}, names)...); err != nil {
			return err
		}
	}
	if k.conf == "" {
		return nil
	}
	conf := hostfile.Exclude(k.conf, distribution.KernelPackages().Dnf, hold)
	if conf == k.conf {
		return nil
	}
	return onnode.Write(ctx, w.nodes, w.node, "/"+hostfile.DnfConf, 0o644, []byte(conf))
}
